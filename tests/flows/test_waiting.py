"""Requests that send a message and wait for its turn."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.errors import ProviderError
from agents.messages import Json, ToolCall
from agents.providers.scripted import Gate
from chat.api import messages, waiting
from chat.api.commands import run_command
from chat.live.turn_wait import TurnWait
from chat.models import ApiToken, ChatMessage, Session, User
from chat.queries.turn_outcomes import TurnOutcome, outcome_of
from chat.runner import runtime
from chat.services.messages import sending
from chat.services.people import api_tokens, sharing
from chat.services.sessions.lifecycle import configure
from tests.api.asking import token_of
from tests.support.socket import PATIENCE
from tests.support.step_viewer import Connection
from tests.support.testing_node import TestNode


class Waiter:
    """A waiting request; `answer` reads its body."""

    def __init__(self, session: Session, secret: str, body: Json, seconds: int = 60) -> None:
        written = json.dumps(body).encode()
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"/api/sessions/{session.pk}/messages",
            "query_string": f"wait={seconds}".encode(),
            "headers": [
                (b"host", b"testserver"),
                (b"authorization", f"Bearer {secret}".encode()),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(written)).encode()),
                (b"accept-encoding", b"gzip"),
            ],
        }
        self._connection = Connection(scope, 0, written)
        self.text = ""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    async def begun(self) -> None:
        start = await asyncio.wait_for(self._connection.sent.get(), PATIENCE)
        self.status, self.headers = start["status"], dict(start["headers"])

    async def answer(self) -> Json:
        if not self.status:
            await self.begun()
        content, more = b"", True
        while more:
            body = await asyncio.wait_for(self._connection.sent.get(), PATIENCE)
            content += body.get("body", b"")
            more = body.get("more_body", False)
        is_compressed = self.headers.get(b"Content-Encoding") == b"gzip"
        self.text = (gzip.decompress(content) if is_compressed else content).decode()
        answer: Json = json.loads(self.text)
        return answer


@pytest.fixture
async def secret(node: TestNode, ana: User) -> str:
    return await node.do(token_of, ana)


async def test_answer_comes_with_the_turn(node: TestNode, ana: User, secret: str) -> None:
    """RUN-01, MSG-02: the response has the turn's messages and outcome.

    A repeated request with the same key finds the same turn.
    """
    call = ToolCall("c1", "calculator", {"expression": "1+1"}, '{"expression":"1+1"}')
    node.script([["Let me see. ", call], ["Two."]])
    session = await node.session(ana)
    body = {"text": "1+1?", "key": "k"}
    waiter = Waiter(session, secret, body)
    result = await waiter.answer()
    rows = await node.rows(session)
    assert (waiter.status, result["id"], result["outcome"], result["more"]) == (201, rows[1].pk, "completed", False)
    assert (result["turn_id"], result["sequence"], result["queued"], result["repeated"]) == (
        rows[1].turn_id,
        2,
        False,
        False,
    )
    assert [row["id"] for row in result["messages"]] == [row.pk for row in rows]
    again = Waiter(session, secret, body)
    assert await again.answer() == {**result, "repeated": True}
    assert again.status == 200


async def test_failure_and_stop_are_outcomes(node: TestNode, ana: User, secret: str) -> None:
    """A waiting request reports a failed and a stopped turn (RUN-08, RUN-10)."""
    gate = Gate()
    node.script([[ProviderError("The model is away.")], ["Once", gate]])
    session = await node.session(ana)
    result = await Waiter(session, secret, {"text": "Go"}).answer()
    assert result["outcome"] == "failed"
    assert "The model is away." in next(row for row in result["messages"] if row["type"] == "error")["text"]
    stopped = Waiter(session, secret, {"text": "Again"})
    await gate.reached()
    await node.cancel(session, ana)
    result = await stopped.answer()
    assert (result["outcome"], result["messages"][-1]["status"]) == ("interrupted", "interrupted")


async def test_queued_message_is_waited_for(node: TestNode, ana: User, secret: str) -> None:
    """RUN-06: the request waits for the queued message's own turn, and ends without one if the message is withdrawn."""
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    first = Waiter(session, secret, {"text": "First"})
    await gate.reached()
    second, third = (Waiter(session, secret, {"text": text}) for text in ("Second", "Third"))
    for waiter in (second, third):
        await waiter.begun()
    queued = await node.do(lambda: ChatMessage.objects.queued(session.pk).get(text="Third").pk)
    await node.do(sending.withdraw, session=session, author=ana, message_id=queued)
    assert (await third.answer())["outcome"] == "withdrawn"
    gate.open()
    result = [await waiter.answer() for waiter in (first, second)]
    assert [each["outcome"] for each in result] == ["completed", "completed"]
    assert result[1]["turn_id"] != result[0]["turn_id"]
    assert [row["text"] for row in result[1]["messages"] if row["type"] == "text"] == ["Second", "Two"]


async def test_message_for_no_agent_is_not_waited_for(node: TestNode, ana: User, secret: str) -> None:
    """RUN-17, RUN-01: the response to a message that mentions no agent comes immediately, because no turn begins."""
    gate = Gate()
    node.script([["One", gate]])
    session = await node.session(ana)
    await node.do(configure, session=session, author=ana, replies="mentions")
    result = await Waiter(session, secret, {"text": "Hello, all"}, seconds=600).answer()
    row = (await node.rows(session))[-1]
    assert (result["outcome"], result["turn_id"], result["sequence"], result["messages"]) == (
        "completed",
        None,
        row.sequence,
        [],
    )
    first = Waiter(session, secret, {"text": "@agent Go"})
    await gate.reached()
    queued = Waiter(session, secret, {"text": "And hello"}, seconds=600)
    await queued.begun()
    gate.open()
    assert ((await first.answer())["outcome"], (await queued.answer())["outcome"]) == ("completed", "completed")


async def test_held_message_is_not_waited_for(
    node: TestNode, ana: User, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-06: if a stop holds the message, the response reports it immediately, because only a user can send the
    message."""
    monkeypatch.setattr(waiting, "KEEP_ALIVE", 600.0)
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    first = Waiter(session, secret, {"text": "First"})
    await gate.reached()
    second = Waiter(session, secret, {"text": "Second"})
    await second.begun()
    await node.cancel(session, ana)
    assert (await first.answer())["outcome"] == "interrupted"
    result = await second.answer()
    assert (result["outcome"], result["queued"], result["turn_id"], result["messages"]) == ("held", True, None, [])


async def test_time_runs_out_and_proxies_do_not(
    node: TestNode, ana: User, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-01: at the time limit, the response has the running turn's state.

    Spaces before it keep the connection alive.
    """
    monkeypatch.setattr(waiting, "KEEP_ALIVE", 0.05)
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    waiter = Waiter(session, secret, {"text": "Go"}, seconds=1)
    result = await waiter.answer()
    assert (result["outcome"], result["messages"][-1]["text"]) == ("running", "Once")
    assert waiter.text.startswith("  ")
    gate.open()
    await node.idle(session)


async def test_wait_ends_without_notices(
    node: TestNode, ana: User, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02: a waiting request reads the turn again although all notices of changes were lost."""
    is_read = threading.Event()

    def read(*given: Any) -> TurnOutcome:
        found = outcome_of(*given)
        is_read.set()
        return found

    monkeypatch.setattr(waiting, "outcome_of", read)
    monkeypatch.setattr(TurnWait, "notify", lambda self, revision=None: None)
    monkeypatch.setattr(waiting, "KEEP_ALIVE", 0.05)
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    waiter = Waiter(session, secret, {"text": "Go"}, seconds=20)
    assert await asyncio.to_thread(is_read.wait, PATIENCE)  # the turn cannot end before
    gate.open()
    assert (await waiter.answer())["outcome"] == "completed"


async def test_revoked_token_and_stopping_server_end_the_wait(node: TestNode, ana: User, secret: str) -> None:
    """LIVE-06: a revoked token or a stopping server ends the wait, and the response has nothing more of the turn."""
    gate = Gate()
    node.script([["Secret", gate]])
    session = await node.session(ana)
    other = await node.do(token_of, ana)
    waiters = [Waiter(session, each, {"text": "Go", "key": "k"}) for each in (secret, other)]
    await gate.reached()
    for waiter in waiters:
        await waiter.begun()
    token = await node.do(lambda: ApiToken.objects.order_by("pk")[0].pk)
    await node.do(api_tokens.revoke, user=ana, token_id=token)
    first = await waiters[0].answer()
    runtime.end_streams()
    result = [first, await waiters[1].answer()]
    assert [(each["outcome"], each["messages"]) for each in result] == [("unknown", [])] * 2
    gate.open()
    await node.idle(session)


async def test_waiting_requests_count_as_streams(node: TestNode, ana: User, secret: str, settings: Settings) -> None:
    """LIVE-03: a waiting request beyond the limit of streams is refused before its message is written, so its key can
    be reused."""
    settings.STREAMS_PER_USER = 1
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    first = Waiter(session, secret, {"text": "First"})
    await gate.reached()
    await first.begun()
    body = {"text": "Second", "key": "k"}
    refused = Waiter(session, secret, body)
    problem = await refused.answer()
    assert (refused.status, problem["code"], refused.headers[b"Retry-After"]) == (429, "too_many_streams", b"10")
    assert refused.headers[b"Content-Type"] == b"application/problem+json"
    assert not await node.do(ChatMessage.objects.filter(session=session, text="Second").exists)
    gate.open()
    assert (await first.answer())["outcome"] == "completed"
    again = Waiter(session, secret, body)
    result = await again.answer()
    assert (again.status, result["repeated"], result["outcome"]) == (201, False, "completed")


async def test_request_without_room_after_its_message_is_sent_does_not_wait(
    node: TestNode, ana: User, secret: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-03: if parallel requests exceed the limit after the first check, the response of the excess one comes
    immediately."""
    settings.STREAMS_PER_USER = 1
    monkeypatch.setattr(runtime, "may_stream", lambda user_id: True)
    gate = Gate()
    node.script([["One", gate], ["Two"]])
    session = await node.session(ana)
    first = Waiter(session, secret, {"text": "First"})
    await gate.reached()
    await first.begun()
    second = Waiter(session, secret, {"text": "Second"}, seconds=600)
    result = await second.answer()
    assert (second.status, result["outcome"], result["messages"]) == (201, "queued", [])
    gate.open()
    assert (await first.answer())["outcome"] == "completed"
    await node.idle(session)


async def test_access_that_ends_after_the_message_is_sent_leaves_its_response(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-03: a refusal would say that nothing was sent."""
    node.script([["One"]])
    session = await node.session(ana)
    await node.do(sharing.share, session=session, author=ana, user=bo, role="editor")

    def lose_access_after(*args: Any, **values: Any) -> Any:
        sent = run_command(*args, **values)
        sharing.unshare(session=session, author=ana, user=bo)
        return sent

    monkeypatch.setattr(messages, "run_command", lose_access_after)
    waiter = Waiter(session, await node.do(token_of, bo), {"text": "Hello"})
    result = await waiter.answer()
    assert (waiter.status, result["outcome"], result["messages"]) == (201, "unknown", [])
    await node.idle(session)


async def test_waiting_holds_no_thread(node: TestNode, ana: User, secret: str, settings: Settings) -> None:
    """RUN-01: waiting requests hold no thread, so many of them need only memory."""
    settings.STREAMS_PER_USER = 0
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    first = Waiter(session, secret, {"text": "Go", "key": "k"})
    await gate.reached()
    await first.begun()
    threads = threading.active_count()
    waiters = [Waiter(session, secret, {"text": "Go", "key": "k"}) for _ in range(8)]
    for waiter in waiters:
        await waiter.begun()
    await asyncio.to_thread(lambda: None)
    assert threading.active_count() - threads < len(waiters)
    gate.open()
    outcomes = {(await waiter.answer())["outcome"] for waiter in (first, *waiters)}
    assert outcomes == {"completed"}
