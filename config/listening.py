"""Open the sockets of the web server and of the monitoring port."""

from __future__ import annotations

import socket

BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address. Connections wait until the server accepts them. Raise OSError.

    The address `::` also gets the connections over IPv4. asyncio's own sockets would not.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _name, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
