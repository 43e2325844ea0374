"""The context preview equals the request that a vendor's server receives next, after any changes of users."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.config import Config
from agents.messages import Message
from agents.providers.base import Request, ToolSpec
from agents.providers.dialect import Dialect
from agents.providers.openai.request import to_request
from agents.registry import Registry
from chat import agents_setup
from chat.errors import ServiceError
from chat.models import ChatMessage, ModelRequest, Session, User
from chat.projections.context import context, system_prompt
from chat.projections.context_view import blocks
from chat.queries.context_rows import context_rows
from chat.queries.model_requests import past_request
from chat.runner.agent_input import build_session_agent
from chat.services.messages import context_inclusion, editing
from chat.services.runs import control
from chat.services.sessions import lifecycle
from tests.support.testing_node import TestNode
from tests.wire.server import WireServer

pytestmark = pytest.mark.both_databases

STEPS = 12
ASKS = ("Hello", "calculate 6 * 7", "再见", "calculate 2 ** 10")


def config(model: WireServer) -> Config:
    wire = {"type": "openai", "base_url": model.openai_url, "models": {"wire-large": {"context_window": 100_000}}}
    agent = {"model": "wire/wire-large", "tools": ["calculator"], "system_prompt": "Be kind."}
    return Config.model_validate({"providers": {"wire": wire}, "agents": {"agent": agent}})


def expected(session_id: str, before: str) -> list[dict[str, Any]]:
    """Return the preview's messages up to a message, in the vendor's form."""
    session = Session.objects.get(pk=session_id)
    rows = context_rows(session)
    last = next(index for index, row in enumerate(rows) if row.pk == before)
    rows = rows[: last + 1]
    agent = build_session_agent(session, rows)
    shown = tuple(Message(block.role, block.parts) for block in blocks(rows) if block.role)
    return body(shown, agent.system, agent.tools)


def body(messages: tuple[Message, ...], system: str, tools: Any) -> list[dict[str, Any]]:
    specs = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)
    made: list[dict[str, Any]] = to_request(Request("wire-large", messages, system, specs), "wire", Dialect())[
        "messages"
    ]
    return made


def last_words(session: Session) -> str | None:
    """Return the id of the last user message that the model gets, or None."""
    rows = ChatMessage.objects.in_conversation(session.pk).filter(role="user", include_in_context=True).exclude(text="")
    found = rows.order_by("sequence").last()
    return found.pk if found else None


def change(chance: random.Random, session: Session, author: User) -> None:
    """Change a random message or the prompt."""
    rows = list(ChatMessage.objects.in_conversation(session.pk).exclude(type__startswith="turn").order_by("sequence"))
    what: dict[str, Any] = {"session": session, "author": author, "message_id": chance.choice(rows).pk}
    actions: list[Callable[[], object]] = [
        lambda: editing.edit(text=f"Edited {chance.random()}", **what),
        lambda: editing.set_included(included=chance.random() < 0.5, **what),
        lambda: editing.remove(**what),
        lambda: context_inclusion.include_before(included=chance.random() < 0.7, **what),
        lambda: lifecycle.set_system_prompt(session=session, author=author, system_prompt=f"Be {chance.random()}."),
    ]
    try:
        chance.choice(actions)()
    except ServiceError:
        return


def rebuilt(session: Session) -> list[list[dict[str, Any]]]:
    """Rebuild every request of the session, in the vendor's form."""
    present = Session.objects.get(pk=session.pk)
    found = []
    for made in ModelRequest.objects.filter(session=session).order_by("revision"):
        past = past_request(present, made.pk)
        assert past is not None
        agent = replace(build_session_agent(present, past.rows), system=system_prompt(past.rows, past.system_prompt))
        found.append(body(tuple(context(past.rows)), agent.system, agent.tools))
    return found


async def test_panel_shows_what_the_server_is_sent(node: TestNode, ana: User) -> None:
    """CTX-01, CTX-02, MSG-09, MSG-11, ADM-02: the preview is right after messages were edited, excluded, removed and
    answered again, and each earlier request can be rebuilt from the records."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201  # shown when it fails, to be put in its place
    chance = random.Random(seed)
    async with WireServer() as model:
        agents_setup.install(Registry(config(model), {}))
        session = await node.session(ana)
        for text in ASKS:
            await node.send(session, ana, text)
            await node.idle(session)
        for _ in range(STEPS):
            for _ in range(chance.randint(1, 3)):
                await node.do(change, chance, session, ana)
            asked = await node.do(last_words, session)
            if asked is None:
                await node.send(session, ana, chance.choice(ASKS))
                await node.idle(session)
                continue
            shown = await node.do(expected, session.pk, asked)
            before = len(model.requests)
            await node.do(control.retry, session=session, author=ana, message_id=asked)
            await node.idle(session)
            assert model.requests[before].body["messages"] == shown
        sent = [request.body["messages"] for request in model.requests]
    assert await node.do(rebuilt, session) == sent
