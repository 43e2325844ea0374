"""What other browsers and devices do differently: Safari on Macs and iPhones, and Firefox."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.browser.test_messages import talk
from tests.browser.test_retry import PHONE
from tests.support.server import Server
from tests.wire.server import WireServer

MAC = "Object.defineProperty(navigator, 'platform', { value: 'MacIntel' })"
NO_FIELD_SIZING = "CSS.supports = () => false"
SMALL_FIELDS = """() => [...document.querySelectorAll("input, select, textarea")].filter((field) =>
    !["checkbox", "radio"].includes(field.type) && parseFloat(getComputedStyle(field).fontSize) < 16
).map((field) => field.outerHTML.slice(0, 100))"""


async def test_focus_around_a_menus_button_does_not_close_the_menu(ana: Person) -> None:
    """UI-11: Safari focuses an element around a clicked button, so a second click opened the menu again."""
    button = ana.page.get_by_role("button", name="More", exact=True)
    await button.click()
    await expect(ana.page.get_by_role("menu")).to_be_visible()
    await ana.page.locator("#main").focus()
    await expect(ana.page.get_by_role("menu")).to_be_visible()
    await ana.page.locator("#session-list a, #account").first.focus()
    await expect(ana.page.get_by_role("menu")).to_have_count(0)


async def test_option_arrows_move_the_caret_on_a_mac(ana: Person, model: WireServer) -> None:
    """UI-11: on a Mac, these keys move the caret by paragraphs in a text, and otherwise go to the last message."""
    await ana.page.add_init_script(MAC)
    await ana.page.reload()
    await talk(ana, model, "Yes")
    await ana.composer.fill("First\n\nSecond")
    await ana.composer.press("Alt+ArrowUp")
    await expect(ana.composer).to_be_focused()
    await ana.composer.fill("")
    await ana.composer.press("Alt+ArrowUp")
    await expect(ana.answers.first).to_be_focused()


async def test_home_field_grows_without_field_sizing(ana: Person, server: Server) -> None:
    """UI-09: Firefox and older Safari do not size fields by their content."""
    await ana.page.add_init_script(NO_FIELD_SIZING)
    await ana.page.goto(server.address)
    field = ana.page.locator("#text")
    await field.fill("One\n" * 6)
    assert await field.evaluate("field => field.style.height !== '' && field.clientHeight >= field.scrollHeight")


@pytest.mark.parametrize("path", ["", "settings/"])
async def test_fields_on_phones_have_at_least_16_pixels(
    ana: Person, browser: Browser, server: Server, path: str
) -> None:
    """UI-01: iPhones zoom into fields with smaller text, and the page then no longer fits above the keyboard."""
    state = await ana.page.context.storage_state()
    context = await browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True, storage_state=state)
    page = await context.new_page()
    await page.goto(f"{server.address}/{path}" if path else ana.page.url)
    await page.get_by_role("main").wait_for()
    assert await page.evaluate(SMALL_FIELDS) == []
    await context.close()
