"""A session's title: from its first words, then from its model, until a user sets one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.config import Config
from agents.errors import RateLimited
from agents.providers.scripted import Gate, HangUp, Reply
from agents.registry import Registry
from chat import agents_setup
from chat.limits import quotas
from chat.models import Session, SessionRevision, User
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import begin_session, create_session, rename, set_model
from chat.services.sessions.titles import MARK
from tests.support.rest import check_rest
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode
from tests.wire.server import WireServer

KEYS = {"ANTHROPIC_API_KEY": "sk-test"}
REAL: dict[str, Any] = {
    "providers": {"house": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": {"one": {}, "two": {}}}},
    "agents": {"agent": {"model": "house/one", "tools": ["calculator"]}},
}


PLAYED: dict[str, Any] = {
    "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
    "agents": {"agent": {"model": "scripted/one"}},
}


async def begin(node: TestNode, ana: User, text: str = "Why is the till slow?") -> Session:
    return await node.do(begin_session, owner=ana, text=text)


async def now(node: TestNode, session: Session) -> tuple[str, bool]:
    """Return the title, and whether Parley may still replace it."""
    row = await node.do(Session.objects.get, pk=session.pk)
    return row.title, MARK in row.config


async def settled(node: TestNode, session: Session) -> str:
    """Wait until no title is due, then return the title."""
    await node.idle(session)
    await node.until(lambda: MARK not in Session.objects.get(pk=session.pk).config)
    return (await now(node, session))[0]


def titles_told(socket: Socket) -> list[str]:
    return [frame["session"]["title"] for frame in socket.frames if frame["type"] == "session_updated"]


async def test_model_names_a_session_after_its_first_turn(node: TestNode, ana: User) -> None:
    """UI-11: viewers get the title immediately, the earlier one is on record, and later turns generate none (MSG-11,
    LIVE-01)."""
    provider = node.script([["Because of Friday."], ['"Slow till on Fridays."\n'], ["Yes."]], REAL)
    session = await node.do(create_session, owner=ana)
    async with Socket(path_of(session), ana) as socket:
        socket.send(type="sync")
        await socket.next(type="changes")
        await node.send(session, ana, "Why is the till slow?")
        await socket.until(lambda: "Slow till on Fridays" in titles_told(socket))
    assert await settled(node, session) == "Slow till on Fridays"
    change = await node.do(SessionRevision.objects.get, session=session, kind=SessionRevision.Kind.TITLE)
    assert (change.user, change.before) == (None, {"title": "Why is the till slow?"})
    asked = provider.requests[1]
    assert (asked.model, asked.tools, len(asked.messages)) == ("one", (), 1)
    assert "User: Why is the till slow?\n\nAssistant: Because of Friday." in asked.messages[0].text
    await node.send(session, ana, "Really?")
    await node.idle(session)
    assert len(provider.requests) == 3
    await node.do(check_rest, session)


async def test_session_answers_while_its_title_is_generated(node: TestNode, ana: User) -> None:
    """RUN-01: while a title is generated, the session is idle and answers the next message."""
    gate = Gate()
    provider = node.script([["One."], [gate, "A title"], ["Two."]], REAL)
    session = await begin(node, ana)
    await gate.reached()
    await node.idle(session)
    await node.send(session, ana, "And?")
    await node.idle(session)
    assert [row.text for row in await node.rows(session) if row.role == "assistant"] == ["One.", "Two."]
    gate.open()
    assert await settled(node, session) == "A title"
    assert len(provider.requests) == 3


@pytest.mark.parametrize("given", ["Tills", "Why is the till slow?"])
async def test_title_set_by_a_user_while_one_is_generated_stays(node: TestNode, ana: User, given: str) -> None:
    """UI-11: a title that a user sets in the meantime stays, even if it equals Parley's earlier one."""
    gate = Gate()
    node.script([["One."], [gate, "A title"], ["Two."]], REAL)
    session = await begin(node, ana)
    await gate.reached()
    await node.do(rename, session=session, author=ana, title=given)
    gate.open()
    await node.send(session, ana, "And?")
    await node.until(lambda: node.provider.streaming == 0 and len(node.provider.requests) == 3)
    assert await now(node, session) == (given, False)


async def test_title_of_a_new_session_stays(node: TestNode, ana: User) -> None:
    provider = node.script([["One."], ["Two."]], REAL)
    session = await node.session(ana)
    for text in ("Hi", "And?"):
        await node.send(session, ana, text)
        await node.idle(session)
    assert (await now(node, session), len(provider.requests)) == (("Talk", False), 2)


@pytest.mark.parametrize(
    "reply",
    [
        [RateLimited("Slow down.", retry_after=60)],
        ["Half a ti", HangUp()],
        [ValueError("a bug")],
        [],
        ["  \n"],
        ["I am sorry, but I cannot name this conversation, because there is not nearly enough in it to go by. " * 9],
    ],
    ids=["refused", "cut", "broken", "nothing", "blank", "excuse"],
)
async def test_title_that_does_not_come_about_is_no_damage(node: TestNode, ana: User, reply: Reply) -> None:
    """RUN-10: if the model fails, the first words stay, there is no second request, and the session shows no error."""
    provider = node.script([["One."], reply, ["Two."]], REAL)
    session = await begin(node, ana)
    assert await settled(node, session) == "Why is the till slow?"
    await node.send(session, ana, "And?")
    await node.idle(session)
    assert [row.type for row in await node.rows(session)].count("error") == 0
    assert len(provider.requests) == 3
    await node.do(check_rest, session)


@pytest.mark.parametrize("titles", ["words", "model"])
async def test_no_title_is_generated_with_the_setting_words_or_for_the_demo_agent(
    node: TestNode, ana: User, settings: Settings, titles: str
) -> None:
    """UI-11: no title is generated with the setting "words", or for the demo agent, as which the test node's own agent
    counts."""
    settings.TITLES = titles
    provider = node.script([["One."], ["Two."]], REAL if titles == "words" else PLAYED)
    session = await begin(node, ana)
    await node.idle(session)
    await node.send(session, ana, "And?")
    await node.idle(session)
    assert (await now(node, session), len(provider.requests)) == (("Why is the till slow?", True), 2)


async def test_turn_without_an_answer_is_not_named(node: TestNode, ana: User) -> None:
    """RUN-10: a session is named after its first turn with an answer."""
    refused = RateLimited("No.", retry_after=600)
    provider = node.script([[refused], ["At last."], ["Patience"]], REAL)
    session = await begin(node, ana)
    await node.idle(session)
    assert (await now(node, session), len(provider.requests)) == (("Why is the till slow?", True), 1)
    await node.send(session, ana, "Again")
    assert await settled(node, session) == "Patience"


async def test_long_texts_are_shown_in_part(node: TestNode, ana: User) -> None:
    """MSG-12: the text that a model gets for a title is bounded."""
    provider = node.script([["x" * 50_000], ["First"]], REAL)
    session = await begin(node, ana, "y" * 1_000_000)
    assert await settled(node, session) == "First"
    assert len(provider.requests[1].messages[0].text) < 5_000
    assert "y" * 100 in provider.requests[1].messages[0].text


async def test_fork_keeps_its_name(node: TestNode, ana: User) -> None:
    """RUN-13: a fork keeps the original's title, no matter who chose it."""
    gate = Gate()
    provider = node.script([["One."], [gate, "A title"], ["Two."]], REAL)
    session = await begin(node, ana)
    await gate.reached()
    session = await node.do(Session.objects.get, pk=session.pk)
    last = (await node.rows(session))[-1]
    made = await node.do(fork, session=session, author=ana, message_id=last.pk)
    await node.send(made, ana, "And?")
    await node.idle(made)
    gate.open()
    assert await settled(node, session) == "A title"
    assert (await now(node, made))[0] == "Why is the till slow? (fork)"
    assert len(provider.requests) == 3


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_title_through_the_real_wire(node: TestNode, ana: User, vendor: str) -> None:
    """CTX-02: both vendors accept the request, and the session contains nothing of it."""
    async with WireServer() as model:
        url = model.openai_url if vendor == "openai" else model.anthropic_url
        options = {"temperature": 0.5} if vendor == "openai" else {"thinking_budget": 2000}
        provider = {"type": vendor, "base_url": url, "models": ["wire-large"], "options": options}
        agents_setup.install(
            Registry(Config.model_validate({"providers": {"wire": provider}, "agents": {"agent": {}}}), KEYS)
        )
        session = await begin(node, ana, "梅花什么时候开？")
        assert await settled(node, session) == "You said: <conversation>"
        await node.do(set_model, session=session, author=ana, provider="wire", model="wire-large")
    assert len(model.requests) == 2
    body = json.dumps(model.requests[1].body, ensure_ascii=False)
    assert "You name conversations" in body
    assert "User: 梅花什么时候开？" in body
    assert "tools" not in model.requests[1].body
    await node.do(check_rest, session)
    used = await node.do(quotas.usage_of, ana)
    await node.do(session.refresh_from_db)
    assert used.responses_today == 2
    assert used.tokens_today > session.total_tokens > 0  # title requests count for the owner, not for the session
