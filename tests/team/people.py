"""Users who talk to the demo agent over sockets that break, with only the rules of docs/protocol.md."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from aiohttp import ClientError, ClientSession, ClientWebSocketResponse

from agents.messages import Json
from chat.models import Session, User
from tests.support.client import EventsClient
from tests.support.viewer import Viewer

# Messages that the demo agent answers in several rows and many pieces, without a question.
TEXTS = ("markdown", "think", "tools", "calculate 6 * 7", "echo {number}", "error busy")
# The seconds without an answer after which a command is sent again.
REPEAT = 4.0
# The codes of refusals after which to retry.
TRY_AGAIN = ("unavailable", "busy", "rate_limited")


class Teammate(Viewer[EventsClient]):
    """A user in their own session, who reconnects to any web process and repeats messages until they are
    acknowledged."""

    def __init__(self, session: Session, user: User, token: str, addresses: Sequence[str], chance: Random) -> None:
        super().__init__(EventsClient(), session, user)
        self.acknowledged: dict[str, str] = {}  # texts by key
        self.refusals: list[Json] = []
        self._token = token
        self._addresses = addresses
        self._chance = chance
        self._socket: ClientWebSocketResponse | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._answers: dict[str, asyncio.Future[Json]] = {}

    async def stay_connected(self) -> None:
        """Follow the session until the task is cancelled."""
        async with ClientSession(headers={"Authorization": f"Bearer {self._token}"}) as http:
            while True:
                with suppress(ClientError, OSError, TimeoutError):
                    address = f"{self._chance.choice(self._addresses)}/ws/sessions/{self.session.pk}/"
                    async with http.ws_connect(address, heartbeat=5) as self._socket:
                        self.client.reconnected()
                        self.ask()
                        async for message in self._socket:
                            self.take(json.loads(message.data))
                self._socket = None
                await asyncio.sleep(self._chance.uniform(0.05, 0.3))  # like the page between attempts

    async def talk(self, is_over: asyncio.Event) -> None:
        """Send messages, sometimes before the agent is idle, and stop it at times."""
        number = 0
        while not is_over.is_set():
            number += 1
            await self.say(f"{self.session.pk}-{number}", self._chance.choice(TEXTS).format(number=number))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._chance.uniform(0.2, 6)):
                    await self.until(lambda: self.client.session.get("agent_status") == "idle")
            if self._chance.random() < 0.15:
                self.send({"type": "cancel"})

    async def say(self, key: str, text: str) -> None:
        """Send a message with one key until the server acknowledges it."""
        while key not in self.acknowledged:
            answer = self._answers[key] = asyncio.get_running_loop().create_future()
            self.send({"type": "send", "ref": key, "key": key, "text": text})
            with suppress(TimeoutError):
                frame = await asyncio.wait_for(answer, REPEAT)
                if frame["type"] == "ack":
                    self.acknowledged[key] = text
                elif frame["code"] not in TRY_AGAIN:
                    self.refusals.append(frame)
                    return

    def take(self, frame: Json) -> None:
        answer = self._answers.get(frame.get("ref", ""))
        if answer is not None and not answer.done() and frame["type"] in ("ack", "refused"):
            answer.set_result(frame)
        super().take(frame)

    def send(self, command: Json) -> None:
        """Send a command if there is a connection."""
        if self._socket is not None:
            task = asyncio.create_task(_send(self._socket, command))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)


async def _send(socket: ClientWebSocketResponse, command: Json) -> None:
    with suppress(ClientError, ConnectionError):
        await socket.send_json(command)
