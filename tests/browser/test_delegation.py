"""An agent that asks another agent, in real browsers: two users go from the card to its session and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, make_viewer, reply
from tests.browser.test_questions import SUM, asking
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TEAM = """
tools = ["agent__helper", "agent__pair"]
[agents.helper]
title = "Helper"
model = "wire/wire-large"
tools = ["calculator"]
[agents.helper.approval]
ask = ["calculator"]
[agents.pair]
title = "Pair"
model = "wire/wire-large"
tools = ["calculator"]
[agents.pair.approval]
ask = [{{ rule = "calculator", approvals = 2 }}]
"""


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TEAM, TITLES="words") as server:
        yield server


def asks(task: str, agent: str = "helper") -> Reply:
    call = openai.tool_call(0, "call_a", f"agent__{agent}", json.dumps({"task": task}))
    return Reply(openai.sse(openai.role(), *call, openai.finish("tool_calls")))


def card(person: Person) -> Locator:
    return person.messages.filter(has=person.page.locator(".tool-session"))


async def test_work_of_another_agent_is_followed_and_stopped(
    ana: Person, browser: Browser, model: WireServer, server: Server
) -> None:
    """RUN-18: both users open its session from the card. One stops it, and both see the asking agent continue."""
    gate = asyncio.Event()
    model.script(asks("Find the key"), reply("I look ", gate=gate, rest=("everywhere.",)), reply("We stopped looking."))
    bo = await invited(ana, browser, "Bo")
    await ana.say("Where is the key?")
    for person in (ana, bo):
        await expect(card(person)).to_contain_text("Helper")
        await expect(card(person)).to_contain_text("Find the key")
        await person.sees_state("tool_calling")
    assert await violations(ana.page) == []
    listed = bo.page.locator(".session-row", has_text="Find the key")
    await expect(listed).to_contain_text("Sub-agent of")
    for person in (ana, bo):
        await card(person).get_by_role("link", name="Open session Helper").press("Enter")
        await expect(person.answers.last).to_contain_text("I look")
        await expect(person.page.locator(".origin")).to_contain_text("Sub-agent of Where is the key?")
    await expect(ana.page.get_by_role("button", name="People", exact=True)).to_be_visible()
    assert await violations(bo.page) == []
    await ana.stop.click()
    await expect(bo.page.locator("#messages")).to_contain_text("Stopped by Admin")
    for person in (ana, bo):
        await person.page.locator(".origin a").click()
        await expect(person.answers.last).to_contain_text("We stopped looking.")
        await expect(card(person)).to_contain_text("failed")
        # A stopped response has not reported its tokens.
        await expect(card(person).locator(".tool-session")).not_to_contain_text("tokens")
        await expect(person.page.locator(".session-row", has_text="Find the key")).to_have_count(0)
    ana.check_console()
    bo.check_console()


async def test_question_of_another_agent_is_shown_in_the_calling_session(
    ana: Person, browser: Browser, model: WireServer
) -> None:
    """RUN-18, UI-12: the calling session shows a question of the other agent, live and after a reload.

    It links to the question until that is answered.
    """
    gate = asyncio.Event()
    model.script(
        asks("Find the key"),
        asking(SUM),
        reply("I look ", gate=gate, rest=("everywhere.",)),
        reply("We have it."),
    )
    bo = await invited(ana, browser, "Bo")
    await make_viewer(ana, bo)
    await ana.say("Where is the key?")
    status, wait = ana.page.locator("#status"), "Helper needs your approval"
    for reloads in (False, True):
        if reloads:
            await ana.page.reload()
        await expect(status).to_contain_text(wait, use_inner_text=True)
        if not reloads:
            await expect(ana.page.locator("#announcer")).to_have_text(wait)
        await expect(card(ana)).to_contain_text(wait, use_inner_text=True)
        await expect(card(ana).locator(".tool-state")).to_contain_text("waiting")
    await expect(bo.page.locator("#status")).to_contain_text("Helper needs an approval", use_inner_text=True)
    assert await violations(ana.page) == []
    helper = await ana.page.context.new_page()
    await helper.goto(urljoin(ana.page.url, await status.get_by_role("link", name="Open").get_attribute("href") or ""))
    await helper.get_by_role("button", name="Allow once").click()
    for person in (ana, bo):
        await expect(person.page.locator("#status")).to_contain_text("Asking Helper…", use_inner_text=True)
        await expect(card(person).locator(".tool-state")).to_contain_text("running")
    gate.set()
    await expect(ana.answers.last).to_contain_text("We have it.")
    ana.check_console()
    bo.check_console()


async def test_user_who_has_approved_sees_that_others_are_needed(
    ana: Person, browser: Browser, model: WireServer
) -> None:
    """RUN-18, UI-12: in the calling session, a user who has approved sees that others must approve, too.

    Other users see that their approval is needed, live and after a reload.
    """
    model.script(asks("Find the key", "pair"), asking(SUM), reply("Found."), reply("We have it."))
    bo = await invited(ana, browser, "Bo")
    await ana.say("Where is the key?")
    for person in (ana, bo):
        await expect(card(person)).to_contain_text("Pair needs your approval", use_inner_text=True)
    helper = await ana.page.context.new_page()
    await helper.goto(
        urljoin(ana.page.url, await card(ana).get_by_role("link", name="Open session Pair").get_attribute("href") or "")
    )
    await helper.get_by_role("button", name="Approve").click()
    wait = "Pair needs the approval of others"
    for reloads in (False, True):
        if reloads:
            await ana.page.reload()
        for part in (card(ana), ana.page.locator("#status")):
            await expect(part).to_contain_text(wait, use_inner_text=True)
            await expect(part).not_to_contain_text("your approval", use_inner_text=True)
    for part in (card(bo), bo.page.locator("#status")):
        await expect(part).to_contain_text("Pair needs your approval", use_inner_text=True)
        await expect(part).not_to_contain_text(wait, use_inner_text=True)
    ana.check_console()
    bo.check_console()


async def test_archived_session_of_another_agent_is_restored_and_deleted(
    ana: Person, browser: Browser, model: WireServer
) -> None:
    """RUN-18, UI-11: the owner restores it by its banner and deletes it by its menu, though no list contains it.

    Its other users cannot leave it, because it has the users of the caller's session.
    """
    model.script(asks("Find the key"), reply("Under the mat."), reply("We have it."))
    bo = await invited(ana, browser, "Bo")
    await ana.say("Where is the key?")
    await expect(ana.answers.last).to_contain_text("We have it.")
    for person in (ana, bo):
        await card(person).get_by_role("link", name="Open session Helper").press("Enter")
        await expect(person.answers.last).to_contain_text("Under the mat.")
        await person.page.get_by_role("button", name="More", exact=True).click()
    await expect(bo.page.get_by_role("menuitem", name="Export…")).to_be_visible()
    await expect(bo.page.get_by_role("menuitem", name="Leave", exact=True)).to_have_count(0)
    await ana.page.get_by_role("menuitem", name="Archive", exact=True).click()
    await expect(bo.page.locator("footer")).to_contain_text("Its owner can restore it.")
    await ana.page.reload()
    await ana.page.get_by_role("button", name="Restore", exact=True).click()
    await expect(ana.composer).to_be_focused()
    await expect(bo.composer).to_be_visible()
    await ana.page.get_by_role("button", name="More", exact=True).click()
    await ana.page.get_by_role("menuitem", name="Delete", exact=True).click()
    await ana.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await ana.page.wait_for_url(lambda url: "/sessions/" not in url)
    bo.check_console()
