"""The event loop of a test."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet


class TestLoop(asyncio.SelectorEventLoop):
    """A loop that leaves no half-closed connection behind.

    A client that is closed while the server has not read all of its request keeps its socket until that is written. If
    the loop ends first, the garbage collector finds the socket later and fails whatever test is running then.
    """

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self._made: WeakSet[Any] = WeakSet()

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """Connect as any loop does."""
        transport, protocol = await super().create_connection(*args, **options)
        self._made.add(transport)
        return transport, protocol

    def close(self) -> None:
        """Drop what closed clients have not sent, and close the loop. What no one closed is still reported."""
        if not self.is_closed():
            for transport in self._made:
                if transport.is_closing() and transport.get_write_buffer_size():
                    transport.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()
