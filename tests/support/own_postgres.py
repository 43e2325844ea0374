"""PostgreSQL servers for a single test, which can be frozen, killed and replaced by a replica."""

from __future__ import annotations

import runpy
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

from tests.commands.process import ROOT
from tests.support.silent_proxy import SilentProxy

_script = runpy.run_path(str(ROOT / "scripts" / "on-postgres"), run_name="on_postgres")
PROGRAMS: Path = _script["programs"]()


class OwnPostgres:
    """A server that listens on a socket in its folder. `settings` are written to its configuration file."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._settings = [
            *_script["HASTY"],
            *_script["ALONE"],
            *(f"{name}={value}" for name, value in settings.items()),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root. Other users cannot read the tests' folders if root has made them.
        self._identity: dict[str, Any] = {"cwd": folder, "start_new_session": True, **_script["identity"]()}
        if "user" in self._identity:
            shutil.chown(folder, "postgres", "postgres")

    @property
    def address(self) -> str:
        return f"postgres://postgres@/postgres?host={self._folder}"

    @property
    def socket(self) -> Path:
        return self._folder / ".s.PGSQL.5432"

    def create(self) -> None:
        """Create an empty server."""
        self._run("initdb", "--pgdata=data", "--username=postgres", "--auth=trust", "--no-sync", *_script["ORDER"])

    def copy(self, primary: SilentProxy | OwnPostgres) -> None:
        """Create a streaming replica of a running server, which may be behind a proxy."""
        host, port = ("127.0.0.1", primary.port) if isinstance(primary, SilentProxy) else (primary._folder, 5432)
        options = ("--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--username=postgres")
        self._run("pg_basebackup", "--pgdata=data", f"--host={host}", f"--port={port}", *options)

    def start(self) -> None:
        words = [word for setting in self._settings for word in ("-c", setting)]
        with (self._folder / "log").open("w") as log:
            command = [PROGRAMS / "postgres", "-D", "data", "-k", self._folder, *words]
            self._process = subprocess.Popen(command, **self._identity, stdout=log, stderr=log)
        _script["wait_for"](self._process, self._folder)

    def promote(self) -> None:
        """Promote a replica to a primary, which accepts writes."""
        self._run("pg_ctl", "promote", "--pgdata=data", "--wait")

    def freeze(self) -> None:
        """Suspend the server and all its processes. Connections stay open, but are not answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, how: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        postmaster = psutil.Process(self._process.pid)
        postmaster.send_signal(how)  # first, because it would replace its children
        for child in postmaster.children(recursive=True):
            child.send_signal(how)

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [PROGRAMS / program, *words], **self._identity, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def own_servers(count: int = 1, **settings: str) -> Iterator[list[OwnPostgres]]:
    """Yield servers that must still be created. At the end, kill those that are running."""
    with ExitStack() as stack:
        servers = []
        for _ in range(count):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-postgres-"))
            servers.append(server := OwnPostgres(Path(folder), **settings))
            stack.callback(server.kill)
        yield servers


@asynccontextmanager
async def in_front_of(server: OwnPostgres) -> AsyncIterator[SilentProxy]:
    """Yield a proxy whose address can be used for this server and later for others."""
    async with SilentProxy(server.socket) as proxy:
        yield proxy


def address_of(proxy: SilentProxy) -> str:
    return f"postgres://postgres@127.0.0.1:{proxy.port}/postgres"


@contextmanager
def looking_at(proxy: SilentProxy) -> Iterator[None]:
    """Let threads that are started now use the server behind a proxy instead of the tests' database."""
    there = {"HOST": "127.0.0.1", "PORT": str(proxy.port), "NAME": "postgres", "USER": "postgres"}
    here = {name: connection.settings_dict[name] for name in there}
    connection.settings_dict |= there
    try:
        yield
    finally:
        connection.settings_dict |= here
