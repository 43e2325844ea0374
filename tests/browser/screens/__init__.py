"""All screens and states of pages, each opened as a user opens it.

`SCREENS` contains them by name after the modules of this package are imported, as tests/browser/gallery.py does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import BrowserContext, Page, expect


@dataclass(frozen=True)
class Showcase:
    """A running Parley with the rows of tests/support/showcase.py: the addresses to visit, and the users' cookies."""

    address: str
    cookies: dict[str, str]
    session: str
    small: str
    empty: str
    scratch: str
    shared: str
    waiting: str
    answered: str
    read_only: str
    archived: str
    invitation: str
    link: str
    broken: str


Opener = Callable[[Page, Showcase], Awaitable[None]]
SCREENS: dict[str, Opener] = {}
# The browsers of other users that a screen has opened, by the screen's own browser.
_others: dict[BrowserContext, list[BrowserContext]] = {}


def screen(opener: Opener) -> Opener:
    """Decorate a function that opens a screen, and add it to SCREENS under its name."""
    SCREENS[opener.__name__.replace("_", "-")] = opener
    return opener


async def enter(page: Page, address: str) -> None:
    """Open a session and wait until it is live."""
    await page.goto(address)
    await expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


async def enter_small(page: Page, showcase: Showcase) -> None:
    """Open a session that loads quickly, for screens with menus and dialogs above it."""
    await enter(page, showcase.small)
    await expect(page.locator("article.assistant")).to_be_visible()


async def begin(page: Page, text: str) -> None:
    """Start a session on the home page."""
    await page.goto("/")
    await say(page, text)
    await expect(page.locator("#messages article.user")).to_contain_text(text)
    await expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


async def answered(page: Page) -> None:
    """Wait until the agent has answered. Before its answer, the page may still show that it is idle."""
    await expect(page.locator("article.assistant").first).to_be_visible()
    await expect(page.locator("main.session")).to_have_attribute("data-status", "idle")


async def say(page: Page, text: str) -> None:
    """Write a text and press Send, because on a phone Enter starts a new line."""
    await page.locator("#text").fill(text)
    await page.locator("form:has(#text) button.primary").click()


async def sign_in_as(page: Page, showcase: Showcase, who: str) -> None:
    """Sign in another user in this browser."""
    name, value = showcase.cookies[who].split("=", 1)
    await page.context.clear_cookies()
    await page.context.add_cookies([{"name": name, "value": value, "url": showcase.address}])


async def speak(page: Page, showcase: Showcase, language: str) -> None:
    await page.context.add_cookies([{"name": "django_language", "value": language, "url": showcase.address}])


async def beside(page: Page, showcase: Showcase, who: str) -> Page:
    """Open another browser, in which another user is signed in. `leave` closes it together with this page."""
    assert page.context.browser is not None
    context = await page.context.browser.new_context(base_url=showcase.address)
    _others.setdefault(page.context, []).append(context)
    other = await context.new_page()
    await sign_in_as(other, showcase, who)
    return other


async def leave(page: Page) -> None:
    """Close the browser and the browsers of other users."""
    await leave_alone(page)
    await page.context.close()


async def leave_alone(page: Page) -> None:
    """Close the browsers of other users."""
    for context in _others.pop(page.context, []):
        await context.close()


def is_phone(page: Page) -> bool:
    return page.viewport_size is not None and page.viewport_size["width"] < 760


async def open_sidebar(page: Page) -> None:
    """Show the list of sessions, which is a drawer on a phone."""
    if is_phone(page):
        await page.get_by_role("button", name="Open session list").click()
        await expect(page.locator(".app")).to_have_class("app drawer-open")
