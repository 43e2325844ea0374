"""A viewer that follows a session over a real connection and signs in to the server that the test chooses."""

from __future__ import annotations

import asyncio
import json

from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar

from agents.messages import Json
from tests.support.client import EventsClient
from tests.support.entering import sign_in as enter_by_link
from tests.support.socket import PATIENCE
from tests.support.viewer import Viewer


class RemoteViewer(Viewer[EventsClient]):
    """The reference client on a socket to a server process. `open` also reconnects, to the same or another server."""

    async def open(self, server: str, sign_in: str) -> RemoteViewer:
        """Sign in at a server's address with the token of a link, and open the socket."""
        self.address = server
        self.http = ClientSession(cookie_jar=CookieJar(unsafe=True))  # allows cookies for an IP address
        await enter_by_link(self.http, f"{server}/accounts/link/{sign_in}")
        self._socket = await self.http.ws_connect(f"{server}/ws/sessions/{self.session.pk}/", origin=server)
        self._sending: list[asyncio.Task[None]] = []
        self._reading = asyncio.create_task(self._read(self._socket))
        self.client.reconnected()
        self.ask()
        return self

    def send(self, command: Json) -> None:
        self._sending.append(asyncio.create_task(self._socket.send_json(command)))

    async def ended(self) -> None:
        """Wait until the server closes the connection."""
        async with asyncio.timeout(PATIENCE):
            await self._reading

    async def leave(self) -> None:
        """Close the connection, also after the server has exited."""
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self._socket.close()
        await self._reading
        await self.http.close()

    async def _read(self, socket: ClientWebSocketResponse) -> None:
        async for message in socket:
            self.take(json.loads(message.data))
