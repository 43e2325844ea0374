"""The socket on which systemd gets the states of its services."""

from __future__ import annotations

import socket
from pathlib import Path


class NotifySocket:
    """systemd's end of the socket. `next` waits for the next state that the service sends."""

    def __init__(self, address: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(address))
        self._socket.settimeout(60)

    def next(self) -> str:
        return self._socket.recv(1024).decode()

    def close(self) -> None:
        self._socket.close()
