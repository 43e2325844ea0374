"""The event loop of a test."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet


class TestLoop(asyncio.SelectorEventLoop):
    """A loop that leaves no half-closed connections.

    If a client is closed before the server has read all of its request, it keeps the socket until the rest is written.
    If the loop ends first, the garbage collector finds the socket later, and the test that is running then fails.
    """

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self._made: WeakSet[Any] = WeakSet()

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """Connect like other loops, and remember the transport."""
        transport, protocol = await super().create_connection(*args, **options)
        self._made.add(transport)
        return transport, protocol

    def close(self) -> None:
        """Drop unsent data of closed clients, and close the loop. Connections that were left open stay reported."""
        if not self.is_closed():
            for transport in self._made:
                if transport.is_closing() and transport.get_write_buffer_size():
                    transport.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()
