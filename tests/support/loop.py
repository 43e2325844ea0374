"""The event loop of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet


class TestLoop(asyncio.SelectorEventLoop):
    """A loop that leaves no half-closed connections.

    A closed connection keeps its socket until the other side has read the rest, and with TLS until the other side has
    closed it, too. If the loop ends first, the garbage collector finds the socket later, and the test that is running
    then fails.
    """

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self._plain: WeakSet[Any] = WeakSet()
        # Protocols, because a TLS transport that is closed twice forgets its socket's transport.
        self._tls: WeakSet[Any] = WeakSet()

    # asyncio calls these two methods for the connections of clients and of servers.

    def _make_socket_transport(self, *args: Any, **options: Any) -> Any:
        """Create a transport like other loops, and remember it."""
        transport = super()._make_socket_transport(*args, **options)  # type: ignore[misc]  # left out of the stubs
        self._plain.add(transport)
        return transport

    def _make_ssl_transport(self, *args: Any, **options: Any) -> Any:
        """Create a transport like other loops, and remember its protocol."""
        transport = super()._make_ssl_transport(*args, **options)  # type: ignore[misc]  # left out of the stubs
        self._tls.add(transport._ssl_protocol)
        return transport

    def _connected(self) -> Iterator[tuple[Any, bool]]:
        """Yield the transports of sockets that are still connected, and whether the connection was closed here."""
        for transport in self._plain:
            if transport._loop is not None:
                yield transport, transport.is_closing()
        for protocol in self._tls:
            if protocol._transport is not None:
                yield protocol._transport, protocol._app_transport.is_closing()

    def abort_connections_to(self, port: int) -> None:
        """End the connections to a port that are still open, for clients that drop some without closing them."""
        for transport, _is_closed in self._connected():
            if (transport.get_extra_info("peername") or ("", 0))[1] == port:
                transport.abort()

    def close(self) -> None:
        """End closed connections at once, and close the loop. Connections that were left open stay reported."""
        if not self.is_closed():
            for transport, is_closed in self._connected():
                if is_closed:
                    transport.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()
