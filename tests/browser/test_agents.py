"""The choice between several agents in a real browser: on the home page and in a session."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.server import WireServer

REVIEWER = """
[agents.reviewer]
title = "Reviewer"
model = "wire/wire-small"
system_prompt = "You review what you are shown."
"""


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + REVIEWER) as server:
        yield server


async def test_agent_is_chosen_for_a_new_session(model: WireServer, server: Server, browser: Browser) -> None:
    """UI-08: a new session keeps the agent's model and instructions; the page shows the agent's title."""
    model.script(reply("Fine"))
    ana = await Person.enter(browser, server.link)
    button = ana.page.get_by_role("button", name="Agent:")
    await expect(button).to_have_accessible_name("Agent: assistant Model: wire-large")
    await button.press("Enter")
    agents = ana.page.get_by_role("group", name="Agents")
    await expect(agents.get_by_role("option", selected=True)).to_contain_text("assistant")
    models = ana.page.get_by_role("group", name="wire")
    await expect(models.get_by_role("option", selected=True)).to_contain_text("large")
    await ana.page.keyboard.type("rev")
    await ana.page.keyboard.press("Enter")
    await expect(ana.page.get_by_label("First message")).to_be_focused()
    await expect(button).to_have_accessible_name("Agent: Reviewer Model: wire-small")
    await ana.page.get_by_label("First message").fill("Is this good?")
    await ana.page.get_by_role("button", name="Send").click()
    await expect(ana.answers.first).to_contain_text("Fine")
    await expect(ana.composer).to_have_attribute("placeholder", "Message Reviewer…")
    await expect(ana.page.locator("[data-part=model]").first).to_contain_text("wire-small")
    assert "You review what you are shown." in str(model.requests[0].body["messages"][0])
    ana.check_console()


async def test_agent_is_changed_in_a_session(model: WireServer, server: Server, browser: Browser) -> None:
    """UI-08, RUN-16: all users see the change, and the next answer uses the new agent's model and instructions."""
    model.script(reply("Hello"), reply("Fine"))
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.say("Hi")
    await expect(ana.answers).to_have_count(1)
    await ana.sees_state("idle")
    await ana.page.get_by_role("button", name="Agent: assistant").click()
    options = ana.page.get_by_role("group", name="Agents").get_by_role("option")
    await expect(options.and_(ana.page.get_by_role("option", selected=True))).to_contain_text("assistant")
    await options.filter(has_text="Reviewer").click()
    for person in (ana, bo):
        button = person.page.get_by_role("button", name="Agent:")
        await expect(button).to_have_accessible_name("Agent: Reviewer Model: wire-small")
        await expect(person.composer).to_have_attribute("placeholder", "Message Reviewer…")
    await bo.say("Is this good?")
    await expect(ana.answers.last).to_contain_text("Fine")
    assert [request.body["model"] for request in model.requests] == ["wire-large", "wire-small"]
    assert "You review what you are shown." in str(model.requests[1].body["messages"][0])
    ana.check_console()
    bo.check_console()


async def test_agent_is_chosen_by_command(server: Server, browser: Browser) -> None:
    """UI-09, RUN-16: /agent accepts a title or a part of it. An unknown name is reported and stays in the composer."""
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    await ana.composer.press_sequentially("/agent rev")
    await expect(ana.page.get_by_role("listbox", name="Suggestions").get_by_role("option")).to_have_count(1)
    await ana.composer.press("Enter")
    button = ana.page.get_by_role("button", name="Agent:")
    await expect(button).to_have_accessible_name("Agent: Reviewer Model: wire-small")
    await ana.say("/agent unknown")
    await expect(ana.page.get_by_role("alert")).to_contain_text("No agent is called unknown here.")
    await expect(ana.composer).to_have_value("/agent unknown")
    ana.check_console()


async def test_agent_is_chosen_by_mention_on_the_home_page(server: Server, browser: Browser) -> None:
    """UI-09: on the home page, "@" chooses the agent, because there are no other users yet. The text stays."""
    ana = await Person.enter(browser, server.link)
    field = ana.page.get_by_label("First message")
    await field.press_sequentially("Is it good? @rev")
    await expect(ana.page.get_by_role("listbox", name="Suggestions").get_by_role("option")).to_have_count(1)
    await field.press("Tab")
    await expect(field).to_have_value("Is it good? ")
    button = ana.page.get_by_role("button", name="Agent:")
    await expect(button).to_have_accessible_name("Agent: Reviewer Model: wire-small")
    ana.check_console()


async def test_several_agents_answer_when_they_are_addressed(
    model: WireServer, server: Server, browser: Browser
) -> None:
    """RUN-17, CTX-06: agents are added in the panel, completed after "@", and answer under their names on all pages."""
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    bo = await invited(ana, browser, "Bo")
    await ana.page.get_by_role("button", name="Session details").click()
    agents = ana.page.get_by_role("region", name="Agents")
    await agents.get_by_label("Agent to add").select_option("reviewer")
    await agents.get_by_role("button", name="Add agent").click()
    await expect(agents.get_by_role("listitem")).to_have_count(2)
    model.script(reply("A verse."), reply("A fact."))
    await bo.composer.press_sequentially("@rev")
    await bo.page.get_by_role("option", name="reviewer").click()
    await expect(bo.composer).to_have_value("@Reviewer ")
    await bo.composer.press_sequentially("and @agent, begin")
    await bo.composer.press("Enter")
    for person in (ana, bo):
        await expect(person.answers).to_have_count(2)
        await expect(person.answers.nth(0)).to_contain_text("A verse.")
        await expect(person.answers.nth(1)).to_contain_text("A fact.")
        await expect(person.page.locator(".message.user .mention")).to_have_text(["@Reviewer", "@agent"])
    names = await bo.answers.locator(".who").all_text_contents()
    assert names[0] == "Reviewer"
    assert names[0] != names[1]
    assert "[Reviewer] A verse." in str(model.requests[-1].body["messages"])
    await bo.sees_state("idle")
    assert await violations(ana.page) == []
    before = await bo.transcript()
    await bo.page.reload()
    assert await bo.transcript() == before
    await agents.get_by_role("button", name="Remove Reviewer").press("Enter")
    await expect(agents.get_by_role("listitem")).to_have_count(1)
    await expect(agents.get_by_role("button", name="Add agent")).to_be_focused()
    removed = ana.page.locator(".toast")
    await expect(removed).to_contain_text("Reviewer removed")
    await removed.get_by_role("button", name="Undo").click()
    await expect(agents.get_by_role("listitem")).to_have_count(2)
    ana.check_console()
    bo.check_console()


async def test_focus_waits_for_the_content_without_the_removed_agent(server: Server, browser: Browser) -> None:
    """UI-11: the focus is moved to "Add agent" after a removal, even if the panel is updated again."""
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    await ana.page.get_by_role("button", name="Session details").click()
    agents = ana.page.get_by_role("region", name="Agents")
    await agents.get_by_role("button", name="Add agent").click()
    await expect(agents.get_by_role("listitem")).to_have_count(2)
    address = str(await ana.page.locator("#panel").get_attribute("data-address"))
    requests: list[Route] = []
    # The removal and the frame that reports it both update the panel. So can the frame of the addition, if it is late.
    both, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if released.is_set():
            await route.continue_()
            return
        requests.append(route)
        if len(requests) == 2:
            both.set()

    await ana.page.route(f"**{address}", hold)
    await agents.get_by_role("button", name="Remove Reviewer").press("Enter")
    await both.wait()
    async with ana.page.expect_event("requestfinished", lambda request: request == requests[0].request):
        await requests[0].continue_()
    await ana.page.evaluate("new Promise(requestAnimationFrame)")
    released.set()
    for held in requests[1:]:
        await held.continue_()
    await expect(agents.get_by_role("button", name="Add agent")).to_be_focused()
    ana.check_console()


async def test_context_tab_shows_the_request_to_each_agent(server: Server, browser: Browser) -> None:
    """CTX-06: the context tab shows the prompt of the chosen agent. The choice stays while the session changes."""
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    await ana.page.get_by_role("button", name="Session details").click()
    agents = ana.page.get_by_role("region", name="Agents")
    await agents.get_by_role("button", name="Add agent").click()
    await expect(ana.page.get_by_role("heading", name="System prompt of assistant")).to_be_visible()
    await ana.page.get_by_role("tab", name="Context").click()
    await ana.page.get_by_label("Agent", exact=True).select_option("Reviewer")
    prompt_region = ana.page.get_by_role("region", name="System prompt of Reviewer")
    await expect(prompt_region).to_contain_text("You review what you are shown.")
    await ana.page.get_by_role("button", name="Rename").click()
    await ana.page.keyboard.type("Plan")
    await ana.page.keyboard.press("Enter")
    await expect(ana.page.get_by_label("Agent", exact=True)).to_have_value("reviewer")
    await expect(prompt_region).to_be_visible()
    ana.check_console()


async def test_mentioned_agent_that_is_absent_can_be_added(model: WireServer, server: Server, browser: Browser) -> None:
    """RUN-17: the page reports that a mentioned agent is not in the session, and can add it."""
    model.script(reply("Fine"))
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    await ana.say("@reviewer is this good?")
    hint = ana.page.locator(".toast")
    await expect(hint).to_contain_text("Reviewer isn’t in this session.")
    await hint.get_by_role("button", name="Add it").click()
    await expect(ana.page.locator("main")).to_have_attribute("data-agents", re.compile("reviewer"))
    await expect(ana.answers).to_have_count(1)
    ana.check_console()


async def test_retry_of_a_failed_agent_keeps_the_other_answer(
    model: WireServer, server: Server, browser: Browser
) -> None:
    """RUN-12, RUN-17: Retry at the error asks nothing and keeps the other answer, on both pages and after a reload."""
    ana = await Person.enter(browser, server.link)
    await ana.begin()
    bo = await invited(ana, browser, "Bo")
    await ana.page.get_by_role("button", name="Session details").click()
    agents = ana.page.get_by_role("region", name="Agents")
    await agents.get_by_label("Agent to add").select_option("reviewer")
    await agents.get_by_role("button", name="Add agent").click()
    await expect(agents.get_by_role("listitem")).to_have_count(2)
    model.script(openai.error(400, "No verse today"), reply("A fact."))
    await bo.say("@Reviewer and @agent, begin")
    problem = bo.page.locator("article.error")
    await expect(bo.answers).to_have_text([re.compile("A fact.")])
    await expect(problem).to_contain_text("No verse today")
    await bo.sees_state("idle")
    model.script(reply("A verse."))
    await problem.get_by_role("button", name="Retry").click()
    for person in (ana, bo):
        await expect(person.answers).to_have_text([re.compile("A fact."), re.compile("A verse.")])
        await expect(person.page.locator("article.error")).to_have_count(0)
        await person.sees_state("idle")
    await bo.page.reload()
    await expect(bo.answers).to_have_text([re.compile("A fact."), re.compile("A verse.")])
    assert "[assistant] A fact." in str(model.requests[-1].body["messages"])
    ana.check_console()
    bo.check_console()
