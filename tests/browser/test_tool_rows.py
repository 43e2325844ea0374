"""The line of a tool call and the content below it, live and after a reload, on a desktop and a phone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from agents.messages import Json
from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.support.server import Server, run_in
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TEAM = """
tools = ["agent__helper", "calculator"]
[agents.assistant.approval]
ask = ["calculator"]
[agents.helper]
title = "Helper"
model = "wire/wire-large"
tools = []
"""
CALLS = """
from chat.models import ChatMessage, Session
session = Session.objects.get()
for number, name in enumerate(("selection_of_regions", "tests__ask_nonsense_about_everything"), 1):
    ChatMessage.objects.create(
        session=session, sequence=number, revision=number, type="tool_group", status="complete", tool_name=name,
        tool_call_id=f"call_{number}", arguments={"question": "How long may a line be? " * 20}, result="OK",
    )
Session.objects.update(revision=2)
"""
# Finds faults of the rows: elements that extend beyond their column, overlap others, are too narrow, or are cut off.
WRONG = """rows => rows.flatMap(row => {
  const { left, right } = row.querySelector(".column").getBoundingClientRect();
  const parts = [...row.querySelectorAll(".column > *")].map(part => [part.className, part.getBoundingClientRect()]);
  const isOver = (one, two) => one.left < two.right - 1 && two.left < one.right - 1
    && one.top < two.bottom - 1 && two.top < one.bottom - 1;
  const name = row.querySelector(".tool-name");
  return [
    ...parts.filter(([, place]) => place.left < left - 1 || place.right > right + 1).map(([part]) => `${part} is out`),
    ...parts.filter(([part, place]) => part === "decision" && place.width < 120).map(() => "the decision is narrow"),
    ...parts.flatMap(([part, place], at) =>
      parts.slice(at + 1).filter(([, other]) => isOver(place, other)).map(([other]) => `${part} is over ${other}`)),
    ...(name.scrollWidth > name.clientWidth ? [`${name.textContent} is cut`] : []),
  ];
})"""
SIZES = ((1200, 800), (390, 844))


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent can ask another agent, and needs an approval to calculate."""
    async with servers.use(CONFIG + TEAM) as server:
        yield server


def calling(name: str, arguments: Json) -> Reply:
    call = openai.tool_call(0, f"call_{name}", name, json.dumps(arguments))
    return Reply(openai.sse(openai.role(), *call, openai.finish("tool_calls")))


@pytest.mark.any_browser
async def test_decision_and_link_are_below_the_call(ana: Person, model: WireServer) -> None:
    """RUN-18, UI-12: a decision and a session's link are below their calls, also on a phone."""
    rows = ana.page.locator("article.tool_group")
    model.script(calling("calculator", {"expression": "6*7"}), reply("Forty-two"))
    await ana.say("Six times seven?")
    await ana.page.get_by_role("button", name="Allow once").click()
    await expect(ana.answers.last).to_contain_text("Forty-two")
    model.script(calling("agent__helper", {"task": "Find the key to everything"}), reply("Here"), reply("Found"))
    await ana.say("Where is the key?")
    await expect(ana.answers.last).to_contain_text("Found")
    await ana.sees_state("idle")
    for width, height in SIZES * 2:
        await ana.page.set_viewport_size({"width": width, "height": height})
        await expect(rows.locator(".decision")).to_contain_text("Admin allowed this once")
        await expect(rows.get_by_role("link", name="Open session Helper")).to_be_visible()
        assert await rows.evaluate_all(WRONG) == [], width
        if (width, height) == SIZES[-1]:
            await ana.page.reload()
            await ana.sees_connection("Connected")


@pytest.mark.any_browser
async def test_arguments_of_a_tool_are_shortened_before_its_name(ana: Person, server: Server) -> None:
    """UI-01: the line of a tool shortens the arguments before the name. Between opened calls there is a gap."""
    await asyncio.to_thread(run_in, server, CALLS)
    await ana.page.reload()
    rows = ana.page.locator("article.tool_group")
    await expect(rows).to_have_count(2)
    assert await rows.evaluate_all(WRONG) == []
    await ana.page.set_viewport_size({"width": 390, "height": 844})
    assert await rows.first.evaluate(f"row => ({WRONG})([row])") == []
    for row in await rows.all():
        await row.locator("summary").click()
    first, second = [await row.locator(".tool").bounding_box() for row in await rows.all()]
    assert first
    assert second
    assert second["y"] - first["y"] - first["height"] >= 4
