"""RUN-17: users talk to each other in a session whose agent answers only messages that mention it."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, make_viewer, reply
from tests.browser.test_retry import PHONE
from tests.wire.server import WireServer

pytestmark = pytest.mark.any_browser


async def test_users_talk_until_they_ask_the_agent(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-17: a user lets the agent answer only mentions, and all composers show this immediately.

    A mention after "@" and the button "Answer" let it answer.
    """
    bo = await invited(ana, browser, "Bo")
    await ana.page.get_by_role("button", name="More", exact=True).first.click()
    await ana.page.get_by_role("menuitem", name="Agent behavior").click()
    await ana.page.get_by_role("menuitemradio", name="Answer only @mentions").click()
    only = bo.page.get_by_role("button", name="Only @agent")
    await expect(only).to_be_visible()
    await ana.say("When is lunch?")
    await expect(bo.messages).to_have_count(1)
    await bo.say("No idea.")
    await expect(ana.messages).to_have_count(2)
    await ana.sees_state("idle")
    assert model.requests == []

    model.script(reply("Ask the canteen."))
    await ana.page.get_by_role("button", name="Answer", exact=True).click()
    for person in (ana, bo):
        await expect(person.answers).to_contain_text(["Ask the canteen."])
    await expect(ana.page.get_by_role("button", name="Answer", exact=True)).to_have_count(0)

    model.script(reply("At noon."))
    await ana.composer.press_sequentially("@ag")
    await ana.page.get_by_role("option", name="agent").click()
    await expect(ana.composer).to_have_value("@agent ")
    await ana.composer.press_sequentially("When is lunch?")
    await ana.composer.press("Enter")
    for person in (ana, bo):
        await expect(person.answers).to_contain_text(["Ask the canteen.", "At noon."])
    await bo.sees_state("idle")
    before = await bo.transcript()
    await bo.page.reload()
    assert await bo.transcript() == before

    model.script(reply("Hello."))
    await ana.page.get_by_role("button", name="Only @agent").click()
    await expect(only).to_be_hidden()
    await bo.say("Hello")
    await expect(ana.answers).to_have_count(3)
    ana.check_console()
    bo.check_console()


async def test_agent_waits_for_a_mention_when_others_come(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-17: a second user makes the agent wait for mentions, until a user decides. The pages show it."""
    model.script(reply("Hello."))
    await ana.say("Hello")
    await expect(ana.answers).to_have_count(1)
    bo = await invited(ana, browser, "Bo", automatic=True)
    toast = ana.page.locator("#toasts .toast").last
    await expect(toast).to_contain_text("Several people can write here now: the agent answers when it is mentioned")
    await toast.hover()  # it stays
    for person in (ana, bo):
        await expect(person.page.get_by_role("button", name="Only @agent")).to_be_visible()
    await bo.say("Between us")
    await expect(ana.messages).to_have_count(3)
    await toast.get_by_role("button", name="Answer every message").click()
    for person in (ana, bo):
        await expect(person.page.get_by_role("button", name="Only @agent")).to_be_hidden()
    model.script(reply("For all."))
    await bo.say("And now?")
    await expect(ana.answers).to_have_count(2)
    ana.check_console()
    bo.check_console()


async def test_mode_is_shown_and_switched(ana: Person, model: WireServer, browser: Browser) -> None:
    """MSG-09: the mode is set by menu, command and button, for all users. Without tools, the model gets none."""
    bo = await invited(ana, browser, "Bo")
    await ana.page.get_by_role("button", name="More", exact=True).first.click()
    await ana.page.get_by_role("menuitem", name="Agent behavior").click()
    await ana.page.get_by_role("menuitemradio", name="Chat without tools").click()
    now = bo.page.get_by_role("button", name="No tools")
    await expect(now).to_be_visible()
    model.script(reply("Plainly."))
    await bo.say("Hello")
    await expect(ana.answers).to_have_count(1)
    assert "tools" not in model.requests[-1].body
    await ana.sees_state("idle")
    await ana.say("/mode-run")
    await expect(bo.page.get_by_role("button", name="Unattended")).to_be_visible()
    await ana.page.get_by_role("button", name="Unattended").click()
    await expect(bo.page.locator(".mode-now")).to_be_hidden()
    model.script(reply("With tools."))
    await ana.say("And now?")
    await expect(bo.answers).to_have_count(2)
    assert model.requests[-1].body["tools"]
    ana.check_console()
    bo.check_console()


async def test_stop_fits_beside_what_limits_the_agent(ana: Person, model: WireServer) -> None:
    """RUN-07: on a phone, Stop is in view while the agent answers only mentions and has no tools."""
    await ana.page.set_viewport_size(PHONE)
    for choice in ("Answer only @mentions", "Chat without tools"):
        await ana.page.get_by_role("button", name="More", exact=True).first.click()
        await ana.page.get_by_role("menuitem", name="Agent behavior").click()
        await ana.page.get_by_role("menuitemradio", name=choice).click()
    gate = asyncio.Event()
    model.script(reply("Slowly", gate=gate))
    await ana.say("@agent Hello")
    await expect(ana.answers.first).to_contain_text("Slowly")
    for name in ("Only @agent", "No tools", "Stop", "Attach files"):
        await expect(ana.page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    gate.set()
    await ana.sees_state("idle")


async def test_only_the_latest_change_of_whom_the_agent_answers_is_shown(ana: Person, browser: Browser) -> None:
    """RUN-17: notices of earlier changes, which no longer apply, disappear."""
    bo = await invited(ana, browser, "Bo", automatic=True)
    toasts = ana.page.locator("#toasts .toast")
    await expect(toasts).to_contain_text(["Several people can write here now"])
    await make_viewer(ana, bo)
    await expect(toasts.filter(has_text="Several people can write here now")).to_have_count(0)
    await expect(toasts.filter(has_text="The agent answers every message again")).to_have_count(1)


async def test_mention_does_not_decide_the_direction_of_a_line(ana: Person, model: WireServer) -> None:
    """MSG-12: Arabic text after "@agent" is aligned to the right."""
    model.script(reply("نعم"))
    await ana.say("@agent مرحبا\nثانيا")
    mention = ana.messages.first.locator(".mention")
    await expect(mention).to_be_visible()
    right = "element => element.getBoundingClientRect().right"
    text_right = await ana.messages.first.locator(".plain").evaluate(right)
    assert await mention.evaluate(right) > text_right - 10
