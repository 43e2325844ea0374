"""Input on a page before its modules are loaded. None of it is lost, and no dialog waits forever."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Route, WebSocketRoute, expect

from tests.browser.person import Person
from tests.support.server import Server

MODULES = re.compile(r"/dist/(session|home|settings)\.js$")


@asynccontextmanager
async def slow_page(person: Person, address: str) -> AsyncIterator[None]:
    """Open a page whose modules are loaded only when the block ends."""
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await person.page.route(MODULES, hold, times=1)
    async with person.page.expect_request(MODULES):
        await person.page.goto(address, wait_until="commit")
    yield
    assert len(held) == 1
    await held[0].continue_()


async def expect_stored(person: Person, words: str) -> None:
    """Wait until the browser has stored this text."""
    kept = "words => Object.values(localStorage).some(value => value.includes(words))"
    await person.page.wait_for_function(kept, arg=words)


async def test_early_click_is_replayed(ana: Person) -> None:
    """UI-09: a button that is pressed before the modules are loaded does its action.

    If two are pressed, only the last one does.
    """
    async with slow_page(ana, ana.page.url):
        await ana.page.get_by_role("button", name="More", exact=True).click()
        await ana.page.get_by_role("button", name="Share").click()
    dialog = ana.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Role for this link")).to_be_visible()
    await expect(ana.page.get_by_role("menu")).to_have_count(0)


async def test_early_message_is_sent_once(ana: Person) -> None:
    """LIVE-04: text that is sent before the modules load becomes one message."""
    async with slow_page(ana, ana.page.url):
        await ana.composer.fill("help")
        await ana.page.get_by_role("button", name="Send").click()
        await ana.page.get_by_role("button", name="Send").click()
    await expect(ana.messages.first).to_contain_text("help")
    await expect(ana.composer).to_have_value("")
    await ana.sees_state("idle")
    await expect(ana.page.locator("#messages article.user")).to_have_count(1)


async def test_early_enter_sends(ana: Person, server: Server) -> None:
    """UI-09, LIVE-04: Enter before the modules are loaded sends the message, on the home page and in a session."""
    for address in (ana.page.url, f"{server.address}/"):
        async with slow_page(ana, address):
            field = ana.page.locator("#text")
            await field.fill(f"help {len(address)}")
            await field.press("Enter")
            await field.press("Enter")
        await expect(ana.messages.last).to_contain_text(f"help {len(address)}")
        await expect(ana.composer).to_have_value("")
        await ana.sees_state("idle")
    await expect(ana.page.locator("#messages article.user")).to_have_count(1)


async def test_text_after_an_early_enter_is_another_line(ana: Person) -> None:
    """UI-09: if the user continues to type after an early Enter, it is a line break and no text is lost."""
    async with slow_page(ana, ana.page.url):
        await ana.composer.press_sequentially("One")
        await ana.composer.press("Enter")
        await ana.composer.press_sequentially("two")
    await expect(ana.composer).to_have_value("One\ntwo")
    await expect_stored(ana, "One")
    await expect(ana.page.locator("#messages article.user")).to_have_count(0)


async def test_early_text_is_added_to_the_draft(ana: Person) -> None:
    """UI-09: neither the draft stored in this browser nor the text typed in the meantime replaces the other."""

    async def cut(route: WebSocketRoute) -> None:
        await route.close()

    await ana.page.route_web_socket("**/ws/**", cut)  # so that the server gets no draft
    await ana.page.reload()
    await ana.sees_connection("Reconnecting")
    await ana.composer.fill("Kept before.")
    async with slow_page(ana, ana.page.url):
        await ana.composer.fill("Written early.")
    await expect(ana.composer).to_have_value("Kept before.\nWritten early.")
    await expect_stored(ana, "Written early.")
    await ana.page.reload()
    await expect(ana.composer).to_have_value("Kept before.\nWritten early.")


async def test_commands_before_the_first_connection_are_sent(ana: Person) -> None:
    """LIVE-04, UI-11: a page that is still connecting keeps commands for the session, and rejects none."""
    gate = asyncio.Event()

    async def late(route: WebSocketRoute) -> None:
        await gate.wait()
        route.connect_to_server()

    await ana.page.route_web_socket("**/ws/**", late)
    await ana.page.reload()
    await ana.page.get_by_role("button", name="Rename").click()
    await ana.page.get_by_role("textbox", name="Title").fill("Friday")
    await ana.page.keyboard.press("Enter")
    await ana.sees_connection("Connecting")
    gate.set()
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Friday")
    await expect(ana.page.get_by_role("alert")).to_be_empty()


async def test_home_keeps_early_text(ana: Person, server: Server) -> None:
    """UI-09: the stored text of the home page and the text typed before its modules load are both kept."""
    await ana.page.goto(f"{server.address}/")
    field = ana.page.get_by_label("First message")
    await field.fill("Kept before.")
    async with slow_page(ana, ana.page.url):
        await field.fill("Written early.")
    await expect(field).to_have_value("Kept before.\nWritten early.")
    await expect_stored(ana, "Written early.")
    await ana.page.reload()
    await expect(field).to_have_value("Kept before.\nWritten early.")


async def test_early_setting_is_saved(ana: Person, server: Server) -> None:
    """UI-01: a setting that is chosen before the modules load is saved."""
    await ana.page.goto(f"{server.address}/settings/")
    async with slow_page(ana, ana.page.url):
        await ana.page.get_by_role("radio", name="Dark").check()
    await expect(ana.page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(ana.page.locator(".toast")).to_contain_text("Saved")
    await ana.page.reload()
    await expect(ana.page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_theme_chosen_before_leaving_applies_to_the_next_page(ana: Person, server: Server) -> None:
    """UI-01: the next page has the chosen theme, even if it is rendered before the server has the choice."""
    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.route("**/settings/preferences", lambda _route: None, times=1)
    await ana.page.get_by_role("radio", name="Dark").check()
    await ana.page.get_by_role("link", name="Back to your sessions").click()
    await expect(ana.page.get_by_label("First message")).to_be_visible()
    await expect(ana.page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.any_browser
async def test_page_without_its_module_offers_to_reload(ana: Person) -> None:
    """LIVE-04: a page whose module cannot be loaded says so. It keeps the text, and works after a reload."""
    await ana.page.route(MODULES, lambda route: route.abort(), times=1)
    await ana.page.reload()
    toast = ana.page.locator(".toast")
    await expect(toast).to_contain_text("Parley couldn’t load completely.")
    await ana.composer.fill("A question")
    await ana.composer.press("Enter")
    await ana.page.get_by_role("button", name="Share").click()
    await expect(ana.composer).to_have_value("A question")
    await toast.get_by_role("button", name="Reload").click()
    await ana.sees_connection("Connected")
    await expect(toast).to_have_count(0)
    ana.reports.clear()  # of the request that failed
