"""UI-18: questions of an MCP server to users during a call, on the pages of two users."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, make_viewer, reply
from tests.browser.test_questions import asking, card, press, results
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

SERVER = Path(__file__).parents[1] / "agents/mcp/server.py"
MORE = f"""
tools = ["tests__*"]
[agents.assistant.approval]
allow = ["*"]
[mcp.tests]
command = ["{sys.executable}", "{SERVER}"]
sandbox = false
"""
WHEN = "When do you want to come to the inn?"


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent uses an MCP server that asks users."""
    async with servers.use(CONFIG + MORE, LEASE_SECONDS="2") as server:
        yield server


async def offered(person: Person, model: WireServer, tool: str) -> None:
    """Wait until the agent has a tool of an MCP server, which may only be starting now. The session must be empty."""
    async with asyncio.timeout(60):
        for number in count():
            model.script(reply("Hello."))
            await person.say("Hello")
            await expect(person.answers.nth(number)).to_contain_text("Hello.")
            await person.sees_state("idle")
            if tool in str(model.requests[-1].body.get("tools")):
                break


async def ask(person: Person, model: WireServer, tool: str, then: str) -> None:
    """Let the agent call a tool that asks users."""
    await offered(person, model, f"tests__{tool}")
    model.script(asking((f"tests__{tool}", {})), reply(then))
    await person.say("Go")
    await person.sees_state("waiting")


async def test_form_of_a_server_is_answered_by_one_of_two_people(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-18: both users see the form with its origin. A refusal keeps the input, and both users see the answer."""
    bo = await invited(ana, browser, "Bo")
    await ask(ana, model, "book", "Booked.")
    for person in (ana, bo):
        await expect(card(person, WHEN)).to_contain_text(
            "The MCP server tests needs an answer to continue with tests__book"
        )
        await expect(card(person, WHEN)).to_contain_text("Don’t enter passwords.")
    await expect(ana.page.locator("#announcer")).to_contain_text(f"tests asks: {WHEN}")
    assert await violations(ana.page) == []
    form = card(bo, WHEN)
    await form.get_by_label("Day").fill("2026-12-24")
    await form.get_by_label("How many people").fill("9")
    await form.get_by_label("room").select_option("Hall")
    await form.get_by_role("radio", name="No").check()
    await form.get_by_role("checkbox", name="music").check()
    await press(form, "Send")
    await expect(form.get_by_role("alert")).to_have_text("“How many people” must be at most 8.")
    bo.ignore_refusals()
    await form.get_by_label("How many people").fill("4")
    await bo.page.reload()
    await expect(form.get_by_label("How many people")).to_have_value("4")
    await expect(form.get_by_label("room")).to_have_value("Hall")
    await press(form, "Send")
    for person in (ana, bo):
        await expect(person.answers.last).to_contain_text("Booked.")
        await expect(person.page.locator(".decision")).to_contain_text("Bo answered a question from tests")
        filled = person.page.locator(".replied")
        await filled.locator("summary").click()
        await expect(filled).to_contain_text(re.compile("How many people.*4", re.S))
    assert await violations(ana.page) == []
    (result,) = results(model)
    assert "('people', 4), ('room', 'h'), ('vegan', False)" in str(result)
    bo.check_console()


async def test_question_is_declined_by_keyboard_and_a_viewer_only_looks_on(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    bo = await invited(ana, browser, "Bo")
    await make_viewer(ana, bo)
    await ask(ana, model, "book", "Then not.")
    await expect(card(bo, WHEN)).to_contain_text("Only editors can answer")
    await expect(card(bo, WHEN).get_by_role("button")).to_have_count(0)
    await card(ana, WHEN).get_by_role("button", name="Decline").focus()
    await ana.page.keyboard.press("Enter")
    await expect(bo.answers.last).to_contain_text("Then not.")
    await expect(bo.page.locator(".decision")).to_contain_text("Admin declined a question from tests")
    assert "decline []" in str(results(model))
    bo.check_console()


async def test_page_of_an_mcp_server_opens_in_another_tab(ana: Person, model: WireServer) -> None:
    """UI-18: the question shows the host of a page that an MCP server wants opened.

    The page opens in a tab without access to this one, and the server gets the answer that it was opened.
    """

    async def page_there(route: Route) -> None:
        await route.fulfill(body="<title>Pay</title>")

    await ana.page.context.route("https://pay.example.com/**", page_there)
    await ask(ana, model, "sign_in", "You are in.")
    question = card(ana, "Sign in to your account.")
    await expect(question.locator(".question-host")).to_have_text("pay.example.com")
    await expect(question).to_contain_text("https://pay.example.com/sign-in?a=1")
    async with ana.page.expect_popup() as opened:
        await question.get_by_role("link", name="Open pay.example.com").click()
    tab = await opened.value
    await expect(tab).to_have_title("Pay")
    assert await tab.evaluate("window.opener") is None
    await expect(ana.answers.last).to_contain_text("You are in.")
    await expect(ana.page.locator(".decision")).to_contain_text("Admin opened pay.example.com for tests")
    assert "accept" in str(results(model))


async def test_stop_ends_a_question_of_a_server(ana: Person, model: WireServer) -> None:
    await ask(ana, model, "book", "Never said.")
    await ana.page.get_by_role("button", name="Stop").click()
    await expect(card(ana, WHEN)).to_have_count(0)
    await expect(ana.page.locator(".decision")).to_contain_text("A question from tests was not answered")
