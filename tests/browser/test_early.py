"""Input on a page before its modules have loaded: none of it is lost, and no dialog waits forever."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Route, WebSocketRoute, expect

from tests.browser.person import Person
from tests.support.server import Server

MODULES = re.compile(r"/dist/(session|home|settings)\.js$")


@asynccontextmanager
async def slow(person: Person, address: str) -> AsyncIterator[None]:
    """Open a page whose modules arrive when the block ends."""
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await person.page.route(MODULES, hold, times=1)
    async with person.page.expect_request(MODULES):
        await person.page.goto(address, wait_until="commit")
    yield
    assert len(held) == 1
    await held[0].continue_()


async def keeps(person: Person, words: str) -> None:
    """Wait until the browser has stored this text."""
    kept = "words => Object.values(localStorage).some(value => value.includes(words))"
    await person.page.wait_for_function(kept, arg=words)


async def test_what_is_pressed_early_is_done(ana: Person) -> None:
    """UI-09: a button pressed before the modules load does its action; of two, the last one counts."""
    async with slow(ana, ana.page.url):
        await ana.page.get_by_role("button", name="More", exact=True).click()
        await ana.page.get_by_role("button", name="Share").click()
    dialog = ana.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Role for this link")).to_be_visible()
    await expect(ana.page.get_by_role("menu")).to_have_count(0)


async def test_what_is_sent_early_goes_out_once(ana: Person) -> None:
    """LIVE-04: text that is sent before the modules load becomes one message."""
    async with slow(ana, ana.page.url):
        await ana.composer.fill("help")
        await ana.page.get_by_role("button", name="Send").click()
        await ana.page.get_by_role("button", name="Send").click()
    await expect(ana.messages.first).to_contain_text("help")
    await expect(ana.composer).to_have_value("")
    await ana.sees_state("idle")
    await expect(ana.page.locator("#messages article.user")).to_have_count(1)


async def test_what_is_written_early_joins_the_draft(ana: Person) -> None:
    """UI-09: neither the draft stored in this browser nor the text typed in the meantime replaces the other."""

    async def cut(route: WebSocketRoute) -> None:
        await route.close()

    await ana.page.route_web_socket("**/ws/**", cut)  # so that the server gets no draft
    await ana.page.reload()
    await ana.sees_connection("Reconnecting")
    await ana.composer.fill("Kept before.")
    async with slow(ana, ana.page.url):
        await ana.composer.fill("Written early.")
    await expect(ana.composer).to_have_value("Kept before.\nWritten early.")
    await keeps(ana, "Written early.")
    await ana.page.reload()
    await expect(ana.composer).to_have_value("Kept before.\nWritten early.")


async def test_what_is_asked_before_the_first_connection_is_done(ana: Person) -> None:
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


async def test_home_takes_what_is_written_early(ana: Person, server: Server) -> None:
    """UI-09: the stored text of the home page and the text typed before its modules load are both kept."""
    await ana.page.goto(f"{server.address}/")
    field = ana.page.get_by_label("First message")
    await field.fill("Kept before.")
    async with slow(ana, ana.page.url):
        await field.fill("Written early.")
    await expect(field).to_have_value("Kept before.\nWritten early.")
    await keeps(ana, "Written early.")
    await ana.page.reload()
    await expect(field).to_have_value("Kept before.\nWritten early.")


async def test_what_is_chosen_early_holds(ana: Person, server: Server) -> None:
    """UI-01: a setting that is chosen before the modules load is saved."""
    await ana.page.goto(f"{server.address}/settings/")
    async with slow(ana, ana.page.url):
        await ana.page.get_by_role("radio", name="Dark").check()
    await expect(ana.page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(ana.page.locator(".toast")).to_contain_text("Saved")
    await ana.page.reload()
    await expect(ana.page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_theme_chosen_as_a_page_is_left_shows_on_the_next(ana: Person, server: Server) -> None:
    """UI-01: the next page may be rendered before the server has the choice."""
    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.route("**/settings/preferences", lambda _route: None, times=1)
    await ana.page.get_by_role("radio", name="Dark").check()
    await ana.page.get_by_role("link", name="Back to your sessions").click()
    await expect(ana.page.get_by_label("First message")).to_be_visible()
    await expect(ana.page.locator("html")).to_have_attribute("data-theme", "dark")
