"""The settings page in a real browser. Each choice applies immediately, and on every page."""

from __future__ import annotations

import asyncio
import struct
import zlib
from urllib.parse import urljoin

from playwright.async_api import Browser, Route, expect

from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited
from tests.support.server import Server


def png(size: int = 16) -> bytes:
    """Return a green PNG image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x20\xa0\x40" * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


async def test_choices_apply_immediately_on_every_page(ana: Person, server: Server) -> None:
    """UI-13: a choice applies immediately, is confirmed by a text, and is kept on every page."""
    session = ana.page.url
    page = ana.page
    await page.goto(f"{server.address}/settings/")
    # Screen readers announce such a field as invalid before the user has used it.
    await expect(page.locator("#profile input:invalid")).to_have_count(0)
    await page.get_by_role("radio", name="Match system").focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page.locator("#toasts")).to_contain_text("Saved")
    async with page.expect_response(lambda response: "clock=12" in (response.request.post_data or "")):
        await page.get_by_role("radio", name="2:30 PM").check()
    await page.goto(session)
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page.locator("html")).to_have_attribute("data-clock", "12")


async def test_last_of_quick_choices_is_kept(ana: Person, server: Server) -> None:
    """UI-13: the last choice wins, however long the request before it takes."""
    held: list[Route] = []

    async def hold_the_first(route: Route) -> None:
        held.append(route)
        if len(held) > 1:
            await route.continue_()

    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.route("**/settings/preferences", hold_the_first)
    async with ana.page.expect_request("**/settings/preferences"):
        await ana.page.get_by_role("radio", name="2:30 PM").check()
    await ana.page.get_by_role("radio", name="14:30").check()
    async with ana.page.expect_response(lambda response: "clock=24" in (response.request.post_data or "")):
        await held[0].continue_()
    await ana.page.reload()
    await expect(ana.page.get_by_role("radio", name="14:30")).to_be_checked()


async def test_choice_that_cannot_be_stored_is_reverted(ana: Person, server: Server) -> None:
    """UI-13: a choice that could not be saved returns to the stored one."""
    page = ana.page
    await page.goto(f"{server.address}/settings/")
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("#toasts")).to_contain_text("Saved")
    await page.route("**/settings/preferences", lambda route: route.abort())
    await page.get_by_role("radio", name="Light").click()
    await expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert ana.reports == ["Failed to load resource: net::ERR_FAILED"]
    ana.reports.clear()


async def test_choice_is_saved_if_the_page_is_left_immediately(ana: Person, server: Server) -> None:
    """UI-13: a choice is saved even if it still waits for another one when the page is left."""

    async def hold_the_first(route: Route) -> None:
        if "clock=12" not in (route.request.post_data or ""):
            await route.continue_()

    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.route("**/settings/preferences", hold_the_first)
    async with ana.page.expect_request("**/settings/preferences"):
        await ana.page.get_by_role("radio", name="2:30 PM").check()
    await ana.page.get_by_role("radio", name="Dark").check()
    async with asyncio.timeout(30):
        await ana.page.goto(f"{server.address}/")
        while await ana.page.locator("html").get_attribute("data-theme") != "dark":
            await ana.page.reload()


async def test_language_changes_immediately(ana: Person, server: Server) -> None:
    """The page changes to a newly chosen language immediately."""
    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.get_by_label("Language", exact=True).select_option("zh-hant")
    await expect(ana.page.locator("html")).to_have_attribute("lang", "zh-hant")


async def test_notifications_need_the_browsers_permission(ana: Person, server: Server) -> None:
    """If the browser does not allow notifications, the page shows this and saves nothing."""
    await ana.page.add_init_script("delete globalThis.PushManager")  # a window without history says so in the console
    await ana.page.goto(f"{server.address}/settings/")
    box = ana.page.get_by_role("switch", name="Browser notifications")
    await box.click()
    await expect(ana.page.get_by_role("alert").filter(has_text="Notifications are blocked")).to_be_visible()
    await expect(box).not_to_be_checked()
    await ana.page.context.grant_permissions(["notifications"])
    await ana.page.reload()
    await box.click()
    await expect(box).to_be_checked()
    await expect(ana.page.locator("#toasts")).to_contain_text("Saved")


async def test_dismissed_question_about_notifications_can_be_asked_again(ana: Person, server: Server) -> None:
    """If the user closes the browser's question, the page says that it can be asked again, not that it is blocked."""
    # Without a window, the browser cannot show the question: it is blocked.
    await ana.page.add_init_script(
        "Object.defineProperty(Notification, 'permission', { get: () => globalThis.answer ?? 'default' })"
    )
    await ana.page.goto(f"{server.address}/settings/")
    box = ana.page.get_by_role("switch", name="Browser notifications")
    await box.click()
    await expect(ana.page.get_by_role("alert")).to_contain_text("Notifications weren’t turned on")
    await expect(box).not_to_be_checked()
    await ana.page.evaluate("globalThis.answer = 'denied'")
    await box.click()
    await expect(ana.page.get_by_role("alert")).to_contain_text("Notifications are blocked")
    ana.check_console()


async def test_picture_is_shown_to_others(ana: Person, browser: Browser, server: Server) -> None:
    """Choosing a picture uploads it without another step. Other users in a session see it."""
    bo = await invited(ana, browser, "Bo")
    await bo.page.goto(f"{server.address}/settings/")
    await bo.page.get_by_label("Upload a picture").set_input_files(
        {"name": "me.png", "mimeType": "image/png", "buffer": png()}
    )
    await expect(bo.page.locator("#toasts")).to_contain_text("Picture saved.")
    await expect(bo.page.get_by_role("img", name="Your picture")).to_be_visible()
    await ana.page.get_by_role("button", name="Share").click()
    face = ana.page.get_by_role("dialog").locator("li", has_text="Bo").locator(".face img")
    await expect(face).to_be_visible()
    assert await face.evaluate("image => image.decode().then(() => image.naturalWidth)") == 256
    bo.check_console()


async def test_new_password_signs_other_browsers_out(ana: Person, browser: Browser, server: Server) -> None:
    """LIVE-06: open pages of other browsers ask to sign in again, and then return to the session with the draft."""
    bo = await invited(ana, browser, "Bo")
    session = bo.page.url
    other = Person(await (await browser.new_context()).new_page())
    await other.page.goto(session)
    await sign_in(other, "a long enough passphrase")
    await expect(other.composer).to_be_visible()
    await other.sees_connection("Connected")
    await other.composer.fill("Half a thought")
    await bo.page.goto(f"{server.address}/settings/")
    await bo.page.get_by_label("Current password").fill("a long enough passphrase")
    await bo.page.get_by_label("New password", exact=True).fill("quite another passphrase")
    await bo.page.get_by_label("Repeat the new password").fill("quite another passphrase")
    await bo.page.get_by_role("button", name="Change password").click()
    await expect(bo.page.locator("#toasts")).to_contain_text("Password changed.")
    await sign_in(other, "quite another passphrase")
    await expect(other.page).to_have_url(session)
    await expect(other.composer).to_have_value("Half a thought")
    await bo.page.goto(session)
    await expect(bo.composer).to_be_visible()
    for person in (bo, other):
        person.check_console()


async def test_new_password_keeps_this_browser_signed_in(ana: Person, browser: Browser, server: Server) -> None:
    """LIVE-06: other tabs of the browser in which the password was changed come back, with their drafts."""
    bo = await invited(ana, browser, "Bo")
    session = bo.page.url
    await bo.composer.fill("Half a thought")
    tab = await bo.page.context.new_page()
    await tab.goto(f"{server.address}/settings/")
    async with bo.page.expect_navigation(url=session):
        await tab.get_by_label("Current password").fill("a long enough passphrase")
        await tab.get_by_label("New password", exact=True).fill("quite another passphrase")
        await tab.get_by_label("Repeat the new password").fill("quite another passphrase")
        await tab.get_by_role("button", name="Change password").click()
    await expect(bo.composer).to_have_value("Half a thought")
    await bo.sees_connection("Connected")
    await tab.reload()
    await expect(tab.get_by_role("heading", name="Settings")).to_be_visible()
    bo.check_console()


async def sign_in(person: Person, password: str) -> None:
    await person.page.get_by_label("User name").fill("bo")
    await person.page.get_by_label("Password").fill(password)
    await person.page.get_by_role("button", name="Sign in").click()


async def test_token_is_made_copied_and_revoked(ana: Person, server: Server) -> None:
    """LIVE-06: a token works until it is revoked. A reload creates no second one, and does not show it again."""
    page = ana.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"{server.address}/settings/")
    await page.get_by_label("Token name").fill("Nightly")
    await page.get_by_label("Access").select_option("write")
    await page.get_by_role("button", name="Create token").click()
    await expect(page.get_by_label("New token")).to_be_focused()
    await page.get_by_role("button", name="Copy").click()
    await expect(page.locator("#toasts")).to_contain_text("Copied")
    secret = await page.evaluate("navigator.clipboard.readText()")
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await page.request.get(f"{server.address}/api/me", headers=headers, max_retries=RETRIES)).ok
    await page.reload()
    tokens = page.get_by_role("list", name="Your tokens")
    await expect(tokens.get_by_role("listitem")).to_have_count(1)
    await expect(tokens).to_contain_text("last used")
    await expect(page.get_by_label("New token")).to_have_count(0)
    await tokens.locator("summary").click()
    await tokens.get_by_role("button", name="Revoke token").click()
    await expect(page.locator("#toasts")).to_contain_text("Token “Nightly” revoked.")
    assert (await page.request.get(f"{server.address}/api/me", headers=headers, max_retries=RETRIES)).status == 401


async def test_sections_are_reached_from_their_list(ana: Person, server: Server) -> None:
    """A list links to each section of the settings and marks the current one. A refused field gets the focus."""
    page = ana.page
    await page.goto(f"{server.address}/settings/")
    sections = page.get_by_role("navigation", name="Sections")
    current = sections.locator("[aria-current]")
    await expect(current).to_have_text("You")
    await sections.get_by_role("link", name="API tokens").click()
    await expect(page.get_by_role("heading", name="API tokens")).to_be_in_viewport()
    await page.get_by_role("heading", name="Your data").scroll_into_view_if_needed()
    await page.evaluate("scrollTo(0, document.body.scrollHeight)")
    await expect(current).to_have_text("Your data")
    await page.locator("[name=new_password1]").fill("x")
    await page.locator("[name=new_password2]").fill("y")
    await page.get_by_role("button", name="Set password").click()
    await expect(page.locator("[aria-invalid=true]").first).to_be_focused()
    ana.reports = [report for report in ana.reports if "422" not in report]
    ana.check_console()


async def test_theme_stored_for_the_next_page_is_used_once(ana: Person) -> None:
    """UI-13: a page removes the theme that was stored for it, so that it does not return for another choice or user."""
    page = ana.page
    leave = "sessionStorage.setItem('parley:theme', 'dark')"
    left = "sessionStorage.getItem('parley:theme')"
    await page.evaluate(leave)
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")  # like Back
    assert await page.evaluate(left) is None
    await page.evaluate(leave)
    await page.context.clear_cookies()
    await page.goto(urljoin(page.url, "/accounts/sign-in/"))
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await page.evaluate(left) is None
