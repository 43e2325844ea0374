"""The panel beside a session in real browsers: opened and closed by mouse and keys, and edited by two users."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.delays import Delay
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.wire.server import WireServer


def panel(person: Person) -> Locator:
    return person.page.get_by_role("complementary", name="Session details")


def prompt(person: Person) -> Locator:
    return panel(person).get_by_role("textbox", name="System prompt")


def press(person: Person, name: str) -> Locator:
    return panel(person).get_by_role("button", name=name, exact=True)


async def opened(person: Person) -> None:
    await person.page.keyboard.press("Control+.")
    await expect(prompt(person)).to_be_visible()


async def test_prompt_is_changed_for_all_users(ana: Person, browser: Browser, model: WireServer) -> None:
    """UI-11, RUN-16: other users see a saved change at once, and the model gets it with its next answer."""
    bo = await invited(ana, browser, "Bo")
    await opened(ana)
    await opened(bo)
    await prompt(ana).fill("Be brief. 简短。\n")
    await expect(panel(ana)).to_contain_text("Not saved yet")
    await press(ana, "Save").click()
    await expect(panel(ana)).to_contain_text("Saved")
    await expect(prompt(bo)).to_have_value("Be brief. 简短。\n")
    await expect(panel(bo)).to_contain_text("Just changed elsewhere")
    model.script(reply("Yes."))
    await bo.say("Hi")
    await expect(bo.answers).to_have_count(1)
    assert "Be brief. 简短。" in str(model.requests[-1].body)
    bo.check_console()


async def test_late_update_does_not_replace_a_saved_prompt(ana: Person) -> None:
    """UI-11, LIVE-01: content that was requested before the user saved the prompt does not show the old one again."""
    await ana.page.clock.install()
    await opened(ana)
    await prompt(ana).fill("Be kind.")
    late = await Delay.next_response(ana.page, "**/panel")
    await press(ana, "Close").click()
    await ana.page.keyboard.press("Control+.")
    await late.read()
    # Pause, so that the page requests no other update.
    await ana.page.clock.pause_at(await ana.page.evaluate("Date.now() + 1"))
    await press(ana, "Save").click()
    await expect(panel(ana)).to_contain_text("Saved")
    await late.release()
    await ana.page.clock.resume()
    await expect(prompt(ana)).to_have_value("Be kind.")
    await expect(panel(ana)).to_contain_text("Saved")
    await expect(panel(ana)).not_to_contain_text("elsewhere")


async def test_concurrent_changes_of_the_prompt_show_both_texts(ana: Person, browser: Browser) -> None:
    """UI-11: no text is overwritten unseen, and none is lost. Each user decides with both texts in view."""
    bo = await invited(ana, browser, "Bo")
    await opened(ana)
    await opened(bo)
    await prompt(ana).fill("Ana's")
    await prompt(bo).fill("Bo's")
    await press(bo, "Save").click()
    await expect(panel(ana).get_by_role("alert")).to_contain_text("Bo edited this while you were typing.")
    await expect(panel(ana).get_by_role("region", name="Current version")).to_have_text("Bo's")
    await expect(panel(ana).locator(".difference del")).to_have_text("Bo")
    await expect(prompt(ana)).to_have_value("Ana's")
    await ana.page.reload()
    await expect(panel(ana).get_by_role("alert")).to_contain_text("Bo edited this while you were typing.")
    await expect(prompt(ana)).to_have_value("Ana's")
    await press(ana, "Use mine").click()
    await expect(prompt(bo)).to_have_value("Ana's")
    await expect(panel(ana).get_by_role("alert")).to_have_count(0)
    await prompt(ana).fill("Ana's again")
    await prompt(bo).fill("Bo's again")
    await press(bo, "Save").click()
    await press(ana, "Keep theirs").click()
    await expect(prompt(ana)).to_have_value("Bo's again")
    await expect(press(ana, "Save")).to_be_hidden()
    bo.check_console()


async def test_conflict_ends_when_the_prompt_is_restored(ana: Person, browser: Browser) -> None:
    """UI-11: if the prompt that a user has changed is saved again elsewhere, there is nothing to decide any more."""
    bo = await invited(ana, browser, "Bo")
    await opened(ana)
    await opened(bo)
    before = await prompt(bo).input_value()
    await prompt(ana).fill("Ana's")
    await prompt(bo).fill("Bo's")
    await press(bo, "Save").click()
    await expect(panel(ana).get_by_role("region", name="Current version")).to_have_text("Bo's")
    await prompt(bo).fill(before)
    await press(bo, "Save").click()
    await expect(panel(ana).get_by_role("alert")).to_have_count(0)
    await expect(prompt(ana)).to_have_value("Ana's")
    await press(ana, "Save").click()
    await expect(prompt(bo)).to_have_value("Ana's")
    bo.check_console()


async def test_panel_shows_people_tools_and_usage(ana: Person, browser: Browser, model: WireServer) -> None:
    """UI-11, LIVE-05: the panel shows the session's users, who is present, and its usage, and keeps them up to date."""
    await opened(ana)
    await expect(panel(ana)).to_contain_text("No requests yet.")
    bo = await invited(ana, browser, "Bo")
    row = panel(ana).locator("[data-member]").filter(has_text="Bo")
    await expect(row).to_contain_text("Editor")
    await expect(row.get_by_text("online")).to_be_visible()
    await bo.page.context.close()
    await expect(row.get_by_text("online")).to_be_hidden()
    model.script(reply("Yes."))
    await ana.say("Hi")
    await ana.sees_state("idle")
    await expect(panel(ana).get_by_role("row").filter(has_text="wire-large")).to_be_visible()
    assert await violations(ana.page) == []


async def test_panel_is_opened_and_closed_by_keys_and_remembered(ana: Person) -> None:
    """UI-11: Ctrl+. opens the panel, Escape closes it and returns the focus, and a reload restores it."""
    await expect(panel(ana)).to_be_hidden()
    await ana.composer.focus()
    await opened(ana)
    await expect(panel(ana)).to_be_focused()
    await ana.page.keyboard.press("Escape")
    await expect(panel(ana)).to_be_hidden()
    await expect(ana.composer).to_be_focused()
    button = ana.page.get_by_role("button", name="Session details")
    await button.click()
    await expect(button).to_have_attribute("aria-expanded", "true")
    await ana.page.reload()
    await expect(prompt(ana)).to_be_visible()
    await press(ana, "Close").click()
    await expect(panel(ana)).to_be_hidden()
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(panel(ana)).to_be_hidden()


async def test_panel_covers_the_page_on_a_phone(ana: Person) -> None:
    """UI-11: at a width of 360 px the panel is a drawer, and nothing behind it can take the focus."""
    await ana.page.set_viewport_size({"width": 360, "height": 700})
    await opened(ana)
    box = await panel(ana).bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, 360)
    await expect(ana.page.locator("main.session")).to_have_attribute("inert", "")
    assert await violations(ana.page) == []
    await press(ana, "Close").click()
    await expect(ana.page.locator("main.session")).not_to_have_attribute("inert", "")


@pytest.mark.parametrize(("tab", "address"), [("Session", "**/panel"), ("Context", "**/context?*")])
async def test_failed_update_is_repeated(ana: Person, model: WireServer, tab: str, address: str) -> None:
    """LIVE-01: if an update of the panel fails, it keeps its content and is updated some seconds later."""
    await ana.page.clock.install()
    await opened(ana)
    await panel(ana).get_by_role("tab", name=tab).click()
    await expect(panel(ana)).to_contain_text("System prompt")
    await ana.page.route(address, lambda route: route.abort())
    model.script(reply("Yes."))
    async with ana.page.expect_event("requestfailed"):
        await ana.say("Hi")
    await ana.sees_state("idle")
    await ana.page.clock.fast_forward(1_000)
    await expect(panel(ana)).to_contain_text("System prompt")
    await ana.page.unroute(address)
    await ana.page.clock.fast_forward(10_000)
    await expect(panel(ana).get_by_role("tabpanel")).to_contain_text({"Session": "wire-large", "Context": "Yes."}[tab])
    # On a slow machine, the end of the run asks for an update of its own.
    assert set(ana.reports) == {"Failed to load resource: net::ERR_FAILED"}
    ana.reports.clear()
