"""The page in a restricted browser or on a bad network. Every failure is shown, and nothing is lost."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Route, expect

from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.browser.test_keeping import Network
from tests.support.server import Server
from tests.wire.server import WireServer

FORBIDDEN = """
for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("forbidden", "SecurityError"); } });
}
"""


async def test_page_works_without_storage(ana: Person, model: WireServer) -> None:
    """UI-09, UI-11: with storage blocked, as in strict browsers, the user can chat and open the panel."""
    model.script(reply("Heard"))
    await ana.page.add_init_script(FORBIDDEN)
    await ana.page.reload()
    await ana.say("Hello")
    await expect(ana.answers.first).to_contain_text("Heard")
    await ana.page.keyboard.press("Control+.")
    await expect(ana.page.get_by_role("complementary", name="Session details")).to_be_visible()


async def test_module_that_fails_to_load_is_reported_and_loads_later(ana: Person) -> None:
    """LIVE-04: a module that cannot be loaded without a network is reported.

    With the network back, the next click loads it.
    """
    picker = ana.page.locator("#model")
    await ana.sees_connection("Connected")
    await ana.page.context.set_offline(True)
    await picker.click()
    await expect(ana.page.locator(".toast")).to_contain_text("Couldn’t load")
    await ana.page.context.set_offline(False)
    await picker.click()
    await expect(ana.page.get_by_role("dialog", name="Choose the model")).to_be_visible()


@pytest.mark.both_browsers
async def test_module_that_failed_to_load_is_there_after_a_reload(ana: Person) -> None:
    """LIVE-04: some browsers never request a module again that they could not load, so the page offers to reload.

    Without a network it stays, because the browser's error page would replace it.
    """
    page, toast = ana.page, ana.page.locator(".toast")
    await ana.sees_connection("Connected")
    await page.route("**/*model_picker*", lambda route: route.fulfill(status=503))
    await page.locator("#model").click()
    await expect(toast).to_contain_text("Couldn’t load")
    await page.context.set_offline(True)
    await toast.get_by_role("button", name="Reload").click()
    await expect(toast).to_contain_text("You’re offline. Try again when you’re connected.")
    await page.context.set_offline(False)
    await page.locator("#model").click()
    await page.unroute("**/*model_picker*")
    async with page.expect_navigation():
        await toast.get_by_role("button", name="Reload").click()
    await page.locator("#model").click()
    await expect(page.get_by_role("dialog", name="Choose the model")).to_be_visible()
    ana.reports.clear()  # of the failed requests


async def test_message_that_waited_for_a_day_returns_to_the_composer(ana: Person) -> None:
    """LIVE-04: the page stays open offline for more than a day. The user decides whether to send the message still."""
    await ana.page.clock.install()
    await ana.page.context.set_offline(True)
    await ana.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await ana.sees_connection("You’re offline")
    await ana.say("Typed offline")
    pending = ana.page.locator("#queue .pending")
    await expect(pending).to_be_visible()
    await ana.page.clock.fast_forward("25:00:00")
    await ana.page.context.set_offline(False)
    await ana.page.evaluate("window.dispatchEvent(new Event('online'))")
    await ana.sees_connection("Connected")
    await expect(ana.page.get_by_text("This wasn’t sent while you were away.")).to_be_visible()
    await expect(ana.composer).to_have_value("Typed offline")
    await expect(pending).to_have_count(0)
    await expect(ana.messages).to_have_count(0)
    ana.reports.clear()  # of requests while offline


async def test_links_leave_the_page_only_if_the_server_responds(ana: Person) -> None:
    """LIVE-04: offline, a link shows a message instead of leaving for the browser's error page.

    If only the sockets fail, links work.
    """
    page, network = ana.page, Network()
    await page.route_web_socket("**/ws/**", network.lead)
    await page.reload()
    await ana.sees_connection("Connected")
    await ana.composer.fill("A thought")
    here, new = page.url, page.get_by_role("link", name="New session").first
    toast = page.locator(".toast")
    await network.cut()
    await ana.sees_connection("Reconnecting")
    await page.route("**/healthz", lambda route: route.abort("internetdisconnected"))
    await new.click()
    await expect(toast).to_contain_text("You’re offline. Try again when you’re connected.")
    await toast.get_by_role("button").click()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("settings")
    await page.get_by_role("option", name="Settings", exact=True).click()
    await expect(toast).to_contain_text("You’re offline. Try again when you’re connected.")
    assert page.url == here
    await expect(ana.composer).to_have_value("A thought")
    await page.unroute("**/healthz")
    await new.click()
    await page.wait_for_url(lambda url: url != here)


async def test_signed_out_user_is_redirected_to_sign_in(ana: Person, server: Server) -> None:
    """A redirect to sign-in is followed and not shown as content. The text that the user wrote is kept."""
    await ana.page.goto(server.address)
    field = ana.page.get_by_role("textbox", name="First message")
    await field.fill("Not lost")
    await ana.page.context.clear_cookies(name="parley_session")
    await field.press("Enter")
    await expect(ana.page).to_have_url(re.compile(r"/sign-in/?\?next="))
    await expect(ana.page.get_by_role("status")).to_contain_text("You were signed out.")
    await expect(ana.page.get_by_role("status")).to_contain_text("Your draft is kept")
    assert "Not lost" in await ana.page.evaluate("() => Object.values(localStorage)")


async def test_popovers_open_and_close_at_their_buttons(ana: Person) -> None:
    """UI-08, UI-11: popovers open by mouse and key, one at a time. Escape closes the popover and restores the focus."""
    page = ana.page
    model, more = page.locator("#model"), page.locator("#more")
    for button, role in ((model, "dialog"), (more, "menu")):
        box = page.locator(f"main [role={role}].popover, main [role={role}].menu")
        await button.click()
        await expect(box).to_be_visible()
        await button.click()
        await expect(box).to_have_count(0)
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(box).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(box).to_have_count(0)
        await expect(button).to_be_focused()
    await model.click()
    await more.click()
    await expect(page.locator(".popover")).to_have_count(0)
    await expect(page.locator(".menu")).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog", name="Search")).to_be_visible()
    await expect(page.locator(".menu")).to_have_count(0)
    await page.keyboard.type("Token usage")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Token usage")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(more).to_be_focused()


async def test_popover_that_loads_late_does_not_replace_a_menu(ana: Person) -> None:
    """UI-08, UI-11: a popover whose module loads late does not open over a menu that was opened in the meantime."""
    held: list[Route] = []
    await ana.page.route("**/*model_picker*", lambda route: held.append(route))
    model, menu = ana.page.locator("#model"), ana.page.locator(".menu")
    async with ana.page.expect_request("**/*model_picker*"):
        await model.click()
    await ana.page.locator("#more").click()
    await expect(menu).to_be_visible()
    await held[0].continue_()
    await ana.page.evaluate("(address) => import(address).then(() => {})", held[0].request.url)
    await expect(menu).to_be_visible()
    await expect(ana.page.locator(".popover.picker")).to_have_count(0)
    await ana.page.keyboard.press("Escape")
    await model.click()
    await expect(ana.page.get_by_role("dialog", name="Choose the model")).to_be_visible()


async def test_escape_closes_only_the_topmost_element(ana: Person) -> None:
    """UI-11: Escape closes the palette above a phone's drawer, and not the drawer.

    When the page becomes wide, the drawer and its backdrop close.
    """
    page = ana.page
    await page.set_viewport_size({"width": 390, "height": 700})
    drawer = page.locator(".drawer-open")
    await page.get_by_role("button", name="Open session list").click()
    await expect(drawer).to_have_count(1)
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search")
    await expect(palette).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(palette).to_be_hidden()
    await expect(drawer).to_have_count(1)
    await page.set_viewport_size({"width": 1200, "height": 800})
    await expect(drawer).to_have_count(0)
    await ana.composer.click()
    await expect(ana.composer).to_be_focused()


async def test_help_lists_every_key_of_a_message(ana: Person) -> None:
    """UI-11: the help dialog lists the actual keys for messages, each of them once."""
    await ana.page.keyboard.press("Shift+Tab")
    await ana.page.keyboard.press("Control+/")
    keys = ana.page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(keys).to_be_visible()
    rows = [re.sub(r"\s+", " ", row).strip() for row in await keys.locator("dl.keys > div").all_inner_texts()]
    for row in ("Copy as Markdown C", "View Markdown S", "Copy link L", "Fork from here F", "Delete Del", "Details D"):
        assert row in rows
    everywhere = ("Search Ctrl+K", "Show or hide the session list Ctrl+B", "Focus last notification F8")
    for row in (*everywhere, "Keyboard shortcuts Ctrl+/"):
        assert row in rows
    assert len(rows) == len(set(rows))


async def test_failed_htmx_request_is_shown(ana: Person) -> None:
    """UI-11: a share dialog that could not be loaded shows this, with a button that loads it again."""
    page = ana.page
    await page.route("**/share", lambda route: route.fulfill(status=500, body="broken"))
    await page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share session")
    await expect(dialog).to_contain_text("Couldn’t load this.")
    await expect(page.locator(".toast")).to_have_count(0)
    await page.unroute("**/share")
    await dialog.get_by_role("button", name="Try again").click()
    await expect(dialog.get_by_role("button", name="Create link")).to_be_visible()
    assert ana.reports == ["Failed to load resource: the server responded with a status of 500 (Internal Server Error)"]
    ana.reports.clear()


async def test_full_date_is_visible_by_keyboard(ana: Person, model: WireServer) -> None:
    """UI-02: users who go through the messages by key see the full date, which the pointer shows as a tooltip."""
    model.script(reply("Heard"))
    await ana.say("Hello")
    await expect(ana.answers.first).to_contain_text("Heard")
    await ana.sees_state("idle")
    await ana.page.keyboard.press("Alt+ArrowUp")
    await expect(ana.answers.first).to_be_focused()
    time = ana.answers.first.locator("time")
    shown = await time.evaluate("time => getComputedStyle(time, '::after').content")
    assert shown == f'"{await time.get_attribute("title")}"'
