"""A Parley process on its own core, with its CPU time and memory."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import psutil

from bench.machine import SERVER_CORE

PATIENCE = 150.0


class Server:
    """Parley as an operator starts it, with one of its web servers. The process runs until the context ends.

    If it has a `name`, it is one of several processes, with further settings and on all cores.
    """

    def __init__(
        self, kind: str, data: Path, config: Path, name: str = "", command: str = "serve", **settings: str
    ) -> None:
        self.kind = kind
        self._command = [sys.executable, "manage.py", command]
        if not name:
            self._command = ["taskset", "-c", str(SERVER_CORE), *self._command]
        self.port = _free_port()
        self._environment = {
            **os.environ,
            # One user has all sessions.
            "LIMITS": "sends=0, sessions=0, changes=0",
            "QUOTAS": "running_turns=0, tokens_per_day=0",
            "PARLEY_DATA": str(data),
            "PARLEY_CONFIG": str(config),
            "PORT": str(self.port),
            "LOG_LEVEL": "WARNING",
            "WEB_SERVER": kind,
            # One user on one machine represents all viewers.
            "CONNECTIONS_PER_ADDRESS": "0",
            "SOCKETS_PER_USER": "0",
            "BENCH_KEY": "key",
            "TITLES": "words",
            **settings,
        }
        self._log = data / f"{name or kind}.log"
        self._process: psutil.Popen | None = None

    def __enter__(self) -> Server:
        with self._log.open("wb") as log:
            self._process = self._start(log)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process
        try:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(15)
        except psutil.TimeoutExpired:
            self._process.kill()
        except psutil.NoSuchProcess:
            print("\nThe server has ended by itself.")
        if log := self.log():
            print(f"\nThe server's log ends:\n{log[-3000:]}")

    def kill(self) -> None:
        """Kill the process, so that it cannot release anything."""
        assert self._process
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process
        return int(self._process.pid)

    def log(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if "Parley is ready" not in line)

    async def ready(self) -> None:
        """Wait until the server accepts connections and has finished loading in the background."""
        async with asyncio.timeout(PATIENCE):
            while not await self._answers():  # noqa: ASYNC110  # another process has no event to wait for
                await asyncio.sleep(0.1)
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until the server is idle."""
        async with asyncio.timeout(PATIENCE):
            while await self._is_busy():
                pass

    async def _is_busy(self) -> bool:
        before = self.cpu()
        await asyncio.sleep(0.5)
        return self.cpu() - before > 0.05

    def cpu(self) -> float:
        """Return the CPU seconds that all threads of the process have used."""
        assert self._process
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def memory(self) -> int:
        """Return the resident memory of the process in bytes."""
        assert self._process
        return int(self._process.memory_info().rss)

    async def _answers(self) -> bool:
        assert self._process
        if self._process.poll() is not None:
            raise RuntimeError(f"the server has ended ({self._process.poll()}):\n{self.log()}")
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(b"GET /accounts/sign-in/ HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            answer = await reader.readline()
            writer.close()
        except OSError:
            return False
        return answer.startswith(b"HTTP/1")

    def _start(self, log: IO[bytes]) -> psutil.Popen:
        return psutil.Popen(
            self._command,
            env=self._environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
