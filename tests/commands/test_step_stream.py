"""The stream of steps over real connections, resumed at another web server after a kill -9."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from aiohttp import ClientPayloadError, ClientSession

from agents.messages import Json
from tests.commands.process import PATIENCE, Started, manage, serving
from tests.support.step_client import StepClient

pytestmark = pytest.mark.server
UVICORN = ("-m", "uvicorn", "config.asgi:application", "--port", "0", "--lifespan", "on", "--ws", "websockets-sansio")
LEASE = "2.0"
MAKE_TOKEN = """
from chat.models import User
from chat.services.people.api_tokens import create
print(create(user=User.objects.get(), name="Script", scope="write", days=0)[1])
"""


async def read(person: ClientSession, server: Started, session: str, client: StepClient) -> None:
    """Follow the stream until it ends or the task is cancelled."""
    client.connected()
    resumes = {"Last-Event-ID": client.last_event_id} if client.last_event_id else {}
    async with person.get(f"{server.address}/api/sessions/{session}/steps/stream", headers=resumes) as answer:
        assert answer.status == 200
        async for piece, _whole in answer.content.iter_chunks():
            client.read(piece.decode())


async def until_steps(person: ClientSession, server: Started, session: str, client: StepClient) -> None:
    """Wait until the turn has ended and the client has the steps of the list."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with person.get(f"{server.address}/api/sessions/{session}") as answer:
                state = (await answer.json())["agent_status"]
            async with person.get(f"{server.address}/api/sessions/{session}/steps") as answer:
                listed: Json = await answer.json()
            rows = {step["id"]: step for step in listed["steps"]}
            if state == "idle" and client.steps == rows and client.last_event_id == str(listed["revision"]):
                return
            await asyncio.sleep(0.1)  # the list has no event to wait for


def said(client: StepClient) -> str:
    return "".join(step["content"] or "" for step in client.steps.values() if step["role"] == "assistant")


async def until_said(client: StepClient, length: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(said(client)) < length:  # noqa: ASYNC110  # the client is as simple as can be
            await asyncio.sleep(0.01)


async def test_killed_server_costs_a_stream_nothing(data: Path) -> None:
    """LIVE-03, RUN-15: Daphne is killed in mid-answer, and the client reconnects to uvicorn, which can be stopped while
    a client is connected."""
    client = StepClient()
    with serving(data, LEASE_SECONDS=LEASE) as server:
        made = manage("shell", "-c", MAKE_TOKEN, data=data)
        asked = {"Authorization": f"Bearer {made.stdout.split()[-1]}"}
        async with ClientSession(headers=asked) as person:
            async with person.post(f"{server.address}/api/sessions", json={"text": "markdown"}) as begun:
                session = (await begun.json())["id"]
            following = asyncio.create_task(read(person, server, session, client))
            await until_said(client, 80)
            server.end(signal.SIGKILL)
            with pytest.raises(ClientPayloadError):
                await following
    assert client.last_event_id
    with serving(data, *UVICORN, ready="running on", LEASE_SECONDS=LEASE) as server:
        async with ClientSession(headers=asked) as person:
            following = asyncio.create_task(read(person, server, session, client))
            await until_steps(person, server, session, client)
            server.process.send_signal(signal.SIGTERM)
            await following
            assert await asyncio.to_thread(server.process.wait, PATIENCE) in (0, -signal.SIGTERM)
    assert "[interrupted]" in said(client)
