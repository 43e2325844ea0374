"""OpenAI's Responses API with the rows: items go back to the model that made them, and to no other."""

from __future__ import annotations

import json
from typing import Any

from agents.config import Config
from agents.providers.base import Request
from agents.providers.forms import sent_reasoning
from agents.registry import Registry
from chat import agents_setup
from chat.models import ChatMessage, Session, User
from chat.projections.context_view import ExclusionReason, blocks
from chat.queries.context_rows import context_rows
from chat.services.messages.editing import edit
from chat.services.sessions.lifecycle import set_model, set_reasoning
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.wire.responses import seal
from tests.wire.server import WireServer

SOL, LUNA, CLAUDE = ("openai", "gpt-5.6-sol"), ("openai", "gpt-5.6-luna"), ("anthropic", "claude-haiku-5")


def configure(model: WireServer) -> None:
    openai = {"type": "openai", "api": "responses", "base_url": model.openai_url, "models": {SOL[1]: {}, LUNA[1]: {}}}
    anthropic = {"type": "anthropic", "base_url": model.anthropic_url, "models": {CLAUDE[1]: {}}}
    providers = {"openai": {**openai, "max_retries": 0}, "anthropic": {**anthropic, "max_retries": 0}}
    agent = {"model": "/".join(SOL), "tools": ["calculator"]}
    agents_setup.install(Registry(Config.model_validate({"providers": providers, "agents": {"agent": agent}}), {}))


def ids(body: dict[str, Any]) -> list[str]:
    """Return the kinds of the items that have an id of the API."""
    return [item["id"].split("_")[0] for item in body["input"] if "id" in item]


async def test_reasoning_goes_back_to_its_model_alone(node: TestNode, ana: User) -> None:
    """MSG-08, CTX-03, RUN-16: reasoning goes back byte for byte with its following items, also after switches of model
    and vendor."""
    async with WireServer() as model:
        configure(model)
        session = await node.session(ana)

        async def say(text: str, chosen: tuple[str, str]) -> dict[str, Any]:
            await node.do(set_model, session=session, author=ana, provider=chosen[0], model=chosen[1])
            before = len(model.requests)
            await node.send(session, ana, text)
            await node.idle(session)
            assert not await node.do(ChatMessage.objects.filter(type="error").exists)
            sent: dict[str, Any] = model.requests[before].body
            return sent

        await say("think, then calculate 6 * 7", SOL)
        round_two = model.requests[1].body
        assert ids(round_two) == ["rs", "msg", "fc"]
        sealed = next(item for item in round_two["input"] if item.get("type") == "reasoning")
        assert sealed["encrypted_content"] == seal(SOL[1], sealed["id"])
        kept = next(row for row in await node.rows(session) if row.type == "reasoning")
        assert (kept.model, json.loads((kept.provider_data or {})["item"])) == (SOL[1], sealed)
        assert ids(await say("think once more", LUNA)) == []
        assert ids(await say("And you?", SOL)) == ["rs", "msg", "fc", "rs", "msg"]
        assert "gAAAA" not in json.dumps(await say("think as well", CLAUDE))
        assert ids(await say("Back again", LUNA)) == ["rs", "msg"]
        rows = await node.do(context_rows, session)
        shown = blocks(rows, {}, lambda each: sent_reasoning("responses", Request(LUNA[1], tuple(each)), LUNA[0]))
        said = [line.why for block in shown for line in block.lines if line.row.type == "reasoning"]
        assert (said.count(ExclusionReason.SENT), said.count(ExclusionReason.NOT_GIVEN_BACK)) == (1, len(said) - 1)
    await node.do(check_rest, session)


async def test_edited_answer_goes_without_its_reasoning(node: TestNode, ana: User) -> None:
    """MSG-08, MSG-11: reasoning is dropped if the following item was edited, because that item is no longer the
    model's."""
    async with WireServer() as model:
        configure(model)
        session = await node.session(ana)
        await node.send(session, ana, "think")
        await node.idle(session)
        answer = next(row for row in await node.rows(session) if row.type == "text" and row.role == "assistant")
        await node.do(edit, session=session, author=ana, message_id=answer.pk, text="Something else.")
        await node.send(session, ana, "Go on")
        await node.idle(session)
        body = model.requests[-1].body
        assert ids(body) == []
        assert body["input"][1]["content"] == "Something else."


async def test_chosen_effort_is_asked_for(node: TestNode, ana: User) -> None:
    """RUN-16: the chosen effort is sent from the next response on, and the session's snapshot has it."""
    async with WireServer() as model:
        configure(model)
        session = await node.session(ana)
        for effort in ("", "high"):
            await node.do(set_reasoning, session=session, author=ana, effort=effort)
            await node.send(session, ana, "Hi")
            await node.idle(session)
        assert [request.body["reasoning"].get("effort") for request in model.requests] == [None, "high"]
        assert (await node.snapshot(session)).session.reasoning_effort == "high"
        shown = await node.do(Session.objects.get, pk=session.pk)
        assert shown.config["reasoning_effort"] == "high"
        used = [row.reasoning_tokens for row in await node.rows(session) if row.total_tokens]
        assert used == [0, 0]
