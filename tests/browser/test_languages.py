"""The page in the user's language: when it is loaded, and in all updates."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.person import PATIENCE, Person
from tests.browser.test_chat import answer_all
from tests.browser.test_presence import invitation
from tests.support.server import Server


async def reader(browser: Browser, locale: str, link: str, name: str) -> Person:
    """Return a user whose browser has this language, in a session by invitation. No element is found by its text."""
    context = await browser.new_context(locale=locale, viewport={"width": 1200, "height": 800})
    context.set_default_timeout(PATIENCE)
    person = Person(await context.new_page())
    await person.page.goto(link)
    await person.page.locator("[name=display_name]").fill(name)
    await person.page.locator("[name=username]").fill(name.lower())
    await person.page.locator("[name=password]").fill("a long enough passphrase")
    await person.page.locator("form:has([name=password]) button").last.click()
    await expect(person.page.locator("#connection[data-state=connected]")).to_have_count(1)
    return person


async def drawn(person: Person) -> str:
    """Return the text of the conversation as the server has rendered it, without additions by the page's scripts."""
    script = """root => {
        const copy = root.cloneNode(true);
        for (const element of copy.querySelectorAll('.tools, .day, img, time')) element.remove();
        for (const element of copy.querySelectorAll('*'))
            for (const { name } of [...element.attributes]) if (name !== 'aria-label') element.removeAttribute(name);
        return copy.innerText.replace(/\\s+/g, ' ');
    }"""
    text: str = await person.page.locator("#messages").evaluate(script)
    return text


@pytest.mark.parametrize(("locale", "language"), [("zh-CN", "zh-hans"), ("zh-TW", "zh-hant")])
async def test_live_page_has_the_same_language_as_its_reload(
    browser: Browser, server: Server, ana: Person, locale: str, language: str
) -> None:
    """UI-13, LIVE-01: two users see a session in their own languages, and the live page is the same as its reload."""
    mei = await reader(browser, locale, await invitation(ana), "Mei")
    await expect(mei.page.locator("html")).to_have_attribute("lang", language)
    await expect(ana.page.locator("html")).to_have_attribute("lang", "en")
    await answer_all(ana)
    await ana.say("Hello")
    for person in (ana, mei):
        await expect(person.answers).to_have_count(1)
        await person.sees_state("idle")
        live = await drawn(person)
        figures = await person.page.locator("[data-part=usage]").inner_text()
        await person.page.reload()
        await expect(person.answers).to_have_count(1)
        assert await drawn(person) == live
        assert await person.page.locator("[data-part=usage]").inner_text() == figures
    mei.check_console()


async def test_chosen_language_takes_precedence_over_the_browsers(
    browser: Browser, server: Server, ana: Person
) -> None:
    """UI-13: a language chosen in the settings is saved with the account."""
    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.locator("select[name=language]").select_option("zh-hant")
    await expect(ana.page.locator("html")).to_have_attribute("lang", "zh-hant")
    await ana.page.goto(f"{server.address}/")
    await expect(ana.page.locator("html")).to_have_attribute("lang", "zh-hant")
