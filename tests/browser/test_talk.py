"""RUN-17: people talk to each other in a session whose agent answers only messages that mention it."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.wire.server import WireServer

pytestmark = pytest.mark.both_browsers


async def test_people_talk_until_they_ask_the_agent(ana: Person, model: WireServer, browser: Browser) -> None:
    """The switch is in the menu and shows in the composer, for all at once; "@" offers the agent."""
    bo = await invited(ana, browser, "Bo")
    await ana.page.get_by_role("button", name="More", exact=True).first.click()
    await ana.page.get_by_role("menuitem", name="Answer only @mentions").click()
    only = bo.page.get_by_role("button", name="Only @agent")
    await expect(only).to_be_visible()
    await ana.say("When is lunch?")
    await expect(bo.messages).to_have_count(1)
    await bo.say("No idea.")
    await expect(ana.messages).to_have_count(2)
    await ana.sees_state("idle")
    assert model.requests == []

    model.script(reply("At noon."))
    await ana.composer.press_sequentially("@ag")
    await ana.page.get_by_role("option", name="agent").click()
    await expect(ana.composer).to_have_value("@agent ")
    await ana.composer.press_sequentially("When is lunch?")
    await ana.composer.press("Enter")
    for person in (ana, bo):
        await expect(person.answers).to_contain_text(["At noon."])
    before = await bo.transcript()
    await bo.page.reload()
    assert await bo.transcript() == before

    model.script(reply("Hello."))
    await ana.page.get_by_role("button", name="Only @agent").click()
    await expect(only).to_be_hidden()
    await bo.say("Hello")
    await expect(ana.answers).to_have_count(2)
    ana.complain()
    bo.complain()
