"""The palette by keyboard alone: sessions, messages and all actions."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Browser, Locator, Route, expect

from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_session_list import begin, home
from tests.wire.server import WireServer


def field(person: Person) -> Locator:
    return person.page.get_by_role("combobox", name="Search sessions, messages and actions")


def options(person: Person) -> Locator:
    return person.page.get_by_role("dialog", name="Search").get_by_role("option")


def chosen(person: Person) -> Locator:
    return person.page.get_by_role("dialog", name="Search").get_by_role("option", selected=True)


async def has_results(person: Person) -> None:
    """Wait until the server's results for the present query are shown."""
    await expect(person.page.get_by_role("dialog", name="Search")).to_have_attribute("aria-busy", "false")


async def search(person: Person, words: str) -> None:
    await person.page.keyboard.press("Control+k")
    await expect(field(person)).to_be_focused()
    await person.page.keyboard.type(words)


async def test_palette_finds_messages_by_keyboard(ana: Person, model: WireServer) -> None:
    """UI-11: a few letters within a word find a message in any session, without a mouse."""
    model.script(reply("The 数据库 lacks an index."), reply("Nothing to see."))
    await begin(ana, "Why is it slow?")
    await expect(ana.answers.first).to_contain_text("index")
    await ana.sees_state("idle")
    await begin(ana, "Another matter")
    await search(ana, "据库")
    await expect(options(ana)).to_have_count(1)
    await expect(ana.page.locator("#palette-status")).to_have_text("1 result")
    await expect(chosen(ana).locator("mark")).to_have_text("据库")
    await expect(chosen(ana)).to_contain_text("Why is it slow?")
    await ana.page.keyboard.press("Enter")
    await expect(ana.answers.first).to_contain_text("The 数据库 lacks an index.")
    assert "#m_" in ana.page.url
    assert await violations(ana.page) == []


async def test_slash_search_opens_the_palette_with_its_text(ana: Person) -> None:
    """UI-11: the text after "/search" is what the palette searches for."""
    await ana.say("/search wells")
    await expect(field(ana)).to_have_value("wells")
    await expect(ana.composer).to_have_value("")


async def test_palette_runs_actions_and_opens_sessions(ana: Person, model: WireServer) -> None:
    """UI-11: the palette finds actions, and sessions by title. The arrow keys wrap around. The choice is announced."""
    model.script(reply("Yes."))
    await begin(ana, "Quarterly numbers")
    await expect(ana.answers.first).to_contain_text("Yes.")
    await home(ana)
    await ana.page.keyboard.press("Control+k")
    await expect(options(ana).first).to_contain_text("Quarterly numbers")
    assert await violations(ana.page) == []
    await ana.page.keyboard.type("quarterly")
    await expect(ana.page.get_by_role("group", name="Sessions").get_by_role("option")).to_have_count(1)
    await has_results(ana)
    count = await options(ana).count()
    await expect(chosen(ana)).to_have_id("palette-0")
    await ana.page.keyboard.press("ArrowUp")
    await expect(chosen(ana)).to_have_id(f"palette-{count - 1}")
    await expect(field(ana)).to_have_attribute("aria-activedescendant", f"palette-{count - 1}")
    await ana.page.keyboard.press("ArrowDown")
    await ana.page.keyboard.press("Enter")
    await expect(ana.answers.first).to_contain_text("Yes.")
    await search(ana, "new sess")
    await expect(chosen(ana)).to_contain_text("New session")
    await ana.page.keyboard.press("Enter")
    await expect(ana.page.get_by_role("textbox", name="First message")).to_be_focused()


async def test_titles_and_labels_come_before_keywords(ana: Person, model: WireServer) -> None:
    """UI-11: Enter opens the session with this title, however soon it is pressed; "tools" is a keyword of a panel."""
    model.script(reply("The first."), reply("The second."))
    await begin(ana, "tools")
    await expect(ana.answers.first).to_contain_text("first")
    await ana.sees_state("idle")
    await begin(ana, "About tools")
    await expect(ana.answers.first).to_contain_text("second")
    await search(ana, "Tools")
    await ana.page.keyboard.press("Enter")
    await expect(ana.answers.first).to_contain_text("first")
    await search(ana, "tools")
    await has_results(ana)
    await expect(options(ana).first).to_have_text(re.compile("^tools"))
    shown = await options(ana).all_inner_texts()
    named = [next(at for at, text in enumerate(shown) if label in text) for label in ("About tools", "Session details")]
    assert named == sorted(named)
    await expect(chosen(ana)).to_have_id("palette-0")
    assert await violations(ana.page) == []


async def test_nothing_found_and_nothing_reached_are_said(ana: Person) -> None:
    await search(ana, "zzzz")
    await expect(ana.page.get_by_text("No results").first).to_be_visible()
    await ana.page.keyboard.press("Escape")
    await expect(ana.page.get_by_role("dialog")).to_have_count(0)
    await expect(ana.composer).to_be_focused()
    await ana.page.context.set_offline(True)
    await search(ana, "zzzz")
    await expect(ana.page.get_by_text("Couldn’t load").first).to_be_visible()
    await ana.page.context.set_offline(False)


async def test_late_results_do_not_replace_newer_ones(ana: Person, model: WireServer) -> None:
    """The palette shows the results of the last query, whichever response arrives first."""
    model.script(reply("Alpha beta."))
    await begin(ana, "Words")
    await expect(ana.answers.first).to_contain_text("Alpha beta.")
    held = []
    await ana.page.route("**/search?q=alpha*", lambda route: held.append(route))
    async with ana.page.expect_request("**/search?q=alpha*"):
        await search(ana, "alpha")
    for _ in "alpha":
        await ana.page.keyboard.press("Backspace")
    await ana.page.keyboard.type("beta")
    await expect(chosen(ana).locator("mark")).to_have_text("beta")
    for route in held:
        await route.abort()
    await expect(chosen(ana).locator("mark")).to_have_text("beta")


async def test_palette_finds_only_accessible_sessions(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-06: a user's search finds sessions that are shared with them, and not the private ones of others."""
    bo = await invited(ana, browser, "Bo")
    model.script(reply("The shared secret."), reply("The private secret."))
    await ana.say("Go")
    await expect(ana.answers.first).to_contain_text("shared")
    await ana.sees_state("idle")
    await begin(ana, "Mine alone")
    await expect(ana.answers.first).to_contain_text("private")
    await ana.sees_state("idle")
    for person, count in ((ana, 2), (bo, 1)):
        await search(person, "secret")
        await expect(person.page.get_by_role("group", name="Messages").get_by_role("option")).to_have_count(count)
    bo.check_console()


async def test_keys_typed_while_the_palette_loads_are_the_query(ana: Person) -> None:
    """UI-11: keys that are typed before the script has loaded go into the query, not into the composer.

    A second press of the shortcut in this time changes nothing.
    """
    scripts = asyncio.Event()

    async def slowly(route: Route) -> None:
        await scripts.wait()
        await route.continue_()

    await ana.page.route(re.compile(r"(palette|find)[^/]*\.js"), slowly)
    await ana.composer.fill("Kept")
    for keys, opened in (
        ("Control+k", field(ana)),
        ("Control+f", ana.page.get_by_role("textbox", name="Text to find")),
    ):
        await ana.page.keyboard.press(keys)
        await ana.page.keyboard.press(keys)
        await ana.page.keyboard.type("Kepx")
        await ana.page.keyboard.press("Backspace")
        await ana.page.keyboard.press("Enter")
        scripts.set()
        await expect(opened).to_have_value("Kep")
        await ana.page.keyboard.type("t")
        await expect(opened).to_have_value("Kept")
        await ana.page.keyboard.press("Escape")
        await expect(ana.composer).to_have_value("Kept")
        scripts.clear()
    await expect(ana.messages).to_have_count(0)
