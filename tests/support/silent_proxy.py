"""A proxy between a process and a server that can drop all data without an error."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType


@dataclass(eq=False)
class _Connection:
    """One connection through the proxy. After it is lost, all its data is dropped."""

    is_lost: bool


class SilentProxy:
    """A proxy that listens on a free TCP port and forwards to `target`, a socket or a port of this machine.

    Tests may change `target`. While `flowing` is cleared, data waits.
    """

    def __init__(self, target: Path | int) -> None:
        self.target = target
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[_Connection] = set()
        self._is_losing = False
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.port = 0

    async def __aenter__(self) -> SilentProxy:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def lose(self) -> None:
        """Drop all data of the present connections from now on, and of new ones until `recover`. All stay open."""
        self._is_losing = True
        for connection in self._connections:
            connection.is_lost = True

    def recover(self) -> None:
        """Forward the data of new connections. Connections that have lost data stay silent."""
        self._is_losing = False

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self._is_losing)
        try:
            there, back = await self._open()
        except OSError:
            writer.close()
            return
        self._connections.add(connection)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.get_running_loop().create_task(self._forward(connection, source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.target, int):
            return await asyncio.open_connection("127.0.0.1", self.target)
        return await asyncio.open_unix_connection(self.target)

    async def _forward(self, connection: _Connection, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    await self.flowing.wait()
                    if not connection.is_lost:
                        sink.write(data)
                        await sink.drain()
        finally:
            self._connections.discard(connection)
            sink.close()
