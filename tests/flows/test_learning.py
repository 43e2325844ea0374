"""Parameters that a model server refuses: learned once for all processes, and forgotten after a day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from agents.config import Config
from agents.providers.learned import LIFETIME
from agents.registry import Registry
from chat import agents_setup
from chat.models import ChatMessage, LearnedDialect, Session, User
from chat.runner.request_preview import next_request
from chat.services.runs import dialects
from tests.api.asking import Asker, token_of
from tests.support.testing_node import TestNode
from tests.wire import Reply, WireServer
from tests.wire import openai as chat_api
from tests.wire.vendors import OPENAI


async def start_process(model: WireServer, **provider: Any) -> None:
    """Configure the agents like a new process, without anything learned."""
    await agents_setup.registry().close()
    wire = {"type": "openai", "base_url": model.openai_url, "max_retries": 0, "options": {"temperature": 0.3}}
    config = {
        "providers": {"wire": {**wire, "models": {"wire-large": {}}, **provider}},
        "agents": {"agent": {"model": "wire/wire-large"}},
    }
    agents_setup.install(Registry(Config.model_validate(config), {}))


def script(model: WireServer) -> None:
    """Refuse a parameter once, then answer."""
    words = "Unsupported parameter: 'temperature' is not supported with this model."
    refusal = Reply.of_json(chat_api.error_body(words, param="temperature"), 400)
    model.script(refusal, *(Reply(OPENAI.text("So")) for _ in range(4)))


async def temperatures(node: TestNode, session: Session, author: User, model: WireServer) -> list[bool]:
    """Send a message, and return for each request whether it has the parameter."""
    before = len(model.requests)
    await node.send(session, author, "Hi")
    await node.idle(session)
    assert not await node.do(ChatMessage.objects.filter(type="error").exists)
    return ["temperature" in request.body for request in model.requests[before:]]


@pytest.mark.both_databases
async def test_refusal_outlives_the_process_but_not_the_day(node: TestNode, ana: User) -> None:
    """RUN-10: another process does not send the refused parameter. After a day, it is tried again."""
    async with WireServer() as model:
        await start_process(model)
        session = await node.session(ana)
        script(model)
        assert await temperatures(node, session, ana, model) == [True, False]
        await start_process(model)
        found = await node.do(lambda: next_request(Session.objects.get(pk=session.pk)))
        assert found.agent is not None
        assert found.agent.provider.dialect_for("wire-large").omitted == {"temperature"}  # type: ignore[attr-defined]  # it is an SdkProvider
        assert await temperatures(node, session, ana, model) == [False]
        await start_process(model, api="responses")
        changed = await node.do(lambda: next_request(Session.objects.get(pk=session.pk)))
        assert changed.agent is not None
        assert changed.agent.provider.dialect_for("wire-large").responses  # type: ignore[attr-defined]  # as above
        long_ago = timezone.now() - timedelta(seconds=LIFETIME)
        await node.do(lambda: LearnedDialect.objects.update(learned_at=long_ago))
        await start_process(model)
        assert await temperatures(node, session, ana, model) == [True]


@pytest.mark.both_databases
async def test_learned_ids_of_calls_are_shown_as_sent(node: TestNode, ana: User) -> None:
    """CTX-02, ADM-02: the API shows a call of an earlier request with the id that the server accepts."""
    words = "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40."
    call = chat_api.tool_call(0, "call_" + "a" * 36, "calculator", '{"expression":"6*7"}')
    async with WireServer() as model:
        await start_process(model)
        session = await node.session(ana)
        calling = Reply(chat_api.sse(chat_api.role(), *call, chat_api.finish("tool_calls")))
        model.script(calling, Reply.of_json(chat_api.error_body(words), 400), Reply(OPENAI.text("It is 42.")))
        await node.send(session, ana, "What is 6 times 7?")
        await node.idle(session)
        sent = model.requests[-1].body["messages"]
        assert len(sent[-1]["tool_call_id"]) <= 40
        asker, address = Asker(await node.do(token_of, ana)), f"/api/sessions/{session.pk}"
        newest = (await node.do(asker.get, f"{address}/requests?limit=1")).json()["requests"][0]["response_id"]
        assert (await node.do(asker.get, f"{address}/requests/{newest}")).json()["messages"] == sent
        context = (await node.do(asker.get, f"{address}/context")).json()["messages"]
        assert context[: len(sent)] == sent


@pytest.mark.django_db
@pytest.mark.both_databases
def test_rows_that_are_too_old_are_deleted() -> None:
    """There is one row for each model of an endpoint, and unused rows are deleted."""
    dialects.keep(endpoint="e", model="old", learned={})
    LearnedDialect.objects.update(learned_at=timezone.now() - timedelta(days=2))
    for values in ({"a": 1}, {"a": 2}):
        dialects.keep(endpoint="e", model="new", learned=values)
    assert list(LearnedDialect.objects.values_list("model", "learned")) == [("new", {"a": 2})]


async def test_turn_goes_on_where_nothing_can_be_stored(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-10: if nothing can be stored, the turn continues and the process keeps what it learned."""

    def fail(**_: object) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(dialects, "keep", fail)
    async with WireServer() as model:
        await start_process(model)
        session = await node.session(ana)
        script(model)
        assert await temperatures(node, session, ana, model) == [True, False]
        assert await temperatures(node, session, ana, model) == [False]
