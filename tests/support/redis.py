"""A Redis server for a single test, which can be frozen, killed and restarted."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import time
from pathlib import Path

PATIENCE = 20.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


class Redis:
    """The installed redis-server on a free port, without persistence. With `is_cluster`, the only one of a cluster."""

    def __init__(self, folder: Path, *, is_cluster: bool = False) -> None:
        self._is_cluster = is_cluster
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Start the server and wait until it answers."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        options: dict[str, object] = {"port": self.port, "bind": "127.0.0.1", "save": "", "dir": self._folder}
        if self._is_cluster:
            options |= {"cluster-enabled": "yes", "cluster-port": free_port()}
        command = ["redis-server", *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.02)
        if self._is_cluster:
            self._command("CLUSTER ADDSLOTSRANGE 0 16383")
            while b"cluster_state:ok" not in self._command("CLUSTER INFO"):
                time.sleep(0.02)

    async def command(self, word: str) -> bytes:
        """Send a command without arguments and return the answer."""
        return await asyncio.to_thread(self._command, word)

    def _command(self, word: str) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(f"{word}\r\n".encode())
            return connection.recv(64)

    def _answers(self) -> bool:
        try:
            return self._command("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def kill(self) -> None:
        """Kill the server. Messages that it has not delivered are lost."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Suspend the server, which then accepts connections, but does not answer."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
