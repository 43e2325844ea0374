"""Staff change a session in the admin, in a real browser, while another user watches the session."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.console import collect_reports
from tests.browser.gallery import Showcase, visit
from tests.browser.person import PATIENCE, Person, without_login
from tests.browser.screens import sign_in_as
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_history import key
from tests.browser.test_messages import talk
from tests.support.server import Server
from tests.wire.server import WireServer


class Desk:
    """The admin's page of the session, opened next to a user's page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.reports = collect_reports(page)
        page.set_default_timeout(PATIENCE)

    @classmethod
    async def of(cls, person: Person) -> Desk:
        desk = cls(await person.page.context.new_page())
        session = person.page.url.rstrip("/").split("/")[-1].split("#")[0]
        await desk.page.goto(f"{person.page.url.split('/sessions/')[0]}/admin/chat/session/?q={session}")
        await desk.page.locator("#result_list .field-named a").click()
        return desk

    def row(self, text: str) -> Locator:
        return self.page.locator(".message-row").filter(has_text=text)

    async def press(self, text: str, name: str) -> None:
        """Open the menu of the message with this text and press an item."""
        menu = self.row(text).locator(".row-menu")
        await menu.locator("summary").click()
        await menu.get_by_role("button", name=name).or_(menu.get_by_role("link", name=name)).click()

    async def save(self, name: str = "Save") -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def hears(self, words: str) -> None:
        await expect(self.page.locator(".messagelist")).to_contain_text(words)


async def test_open_pages_and_model_get_changes_by_staff(ana: Person, browser: Browser, model: WireServer) -> None:
    """ADM-01, ADM-02, MSG-11: changes of text, system prompt, order and context reach all open pages and the model."""
    bo = await invited(ana, browser, "Bo")
    await talk(ana, model, "First answer", "Second answer")
    await expect(bo.messages).to_have_count(4)
    desk = await Desk.of(ana)
    await desk.page.get_by_label("System prompt").fill("Speak like a sailor.\n用中文。")
    await desk.save()
    await desk.hears("The session was saved.")
    await desk.press("First answer", "Edit")
    await desk.page.get_by_label("Text").fill("Another answer\n\nof two parts")
    await desk.save()
    await desk.hears("The message was saved.")
    await expect(bo.answers.first).to_contain_text("Another answer")
    await desk.press("Second answer", "Exclude")
    await expect(bo.answers.nth(1)).to_contain_text("hidden from the model")
    await desk.page.locator(".message-row:has-text('Another answer') + .room a").click()
    await desk.page.get_by_label("Author").select_option("user")
    await desk.page.get_by_label("Text").fill("Words in between")
    await desk.save("Add")
    await expect(bo.messages).to_have_count(5)
    await expect(bo.messages.nth(2)).to_contain_text("Words in between")
    await desk.press("Question 2", "Remove")
    await expect(bo.messages).to_have_count(4)
    model.script(reply("Third answer"))
    await bo.say("Question 3")
    await expect(bo.answers.nth(2)).to_contain_text("Third answer")
    said = [(each["role"], each["content"]) for each in model.requests[-1].body["messages"]]
    assert said[0][0] == "system"
    assert "Speak like a sailor.\n用中文。" in str(said[0][1])
    sent = str(said[1:])
    assert sent.index("Question 1") < sent.index("Another answer") < sent.index("in between") < sent.index("Question 3")
    assert not [gone for gone in ("First answer", "Second answer", "Question 2") if gone in sent]
    assert not desk.reports, desk.reports
    bo.check_console()


async def test_stale_form_shows_both_texts(ana: Person, browser: Browser, model: WireServer) -> None:
    """ADM-02: if a user on the session's page saves first, the form shows both texts and keeps the input.

    The form's page also reports that the session has changed.
    """
    await talk(ana, model, "An answer")
    desk = await Desk.of(ana)
    await expect(desk.page.locator("#session-moved")).to_be_hidden()
    await desk.press("Question 1", "Edit")
    text = desk.page.get_by_role("textbox", name="Text")
    await text.press_sequentially("Mine")
    async with desk.page.expect_event("dialog") as leaving:
        await desk.page.evaluate("() => { setTimeout(() => location.reload()); }")
    await (await leaving.value).dismiss()
    await text.fill("Mine")
    await ana.page.bring_to_front()
    await ana.messages.first.hover()
    await ana.messages.first.get_by_role("button", name="More actions").click()
    await ana.page.get_by_role("menuitem", name="Edit", exact=True).click()
    await ana.page.get_by_role("textbox", name="Edit message").fill("Theirs")
    await ana.page.keyboard.press("Control+Enter")
    await expect(ana.messages.first).to_contain_text("Theirs")
    await desk.page.bring_to_front()
    await desk.save()
    await expect(desk.page.locator(".conflict")).to_contain_text("Theirs")
    await expect(text).to_have_value("Mine")
    assert await violations(desk.page) == []
    await desk.save()
    await desk.hears("The message was saved.")
    await expect(ana.messages.first).to_contain_text("Mine")
    await ana.say("Question 2")
    await expect(desk.page.locator("#session-moved")).to_be_visible()
    assert not desk.reports, desk.reports


async def test_entries_survive_the_end_of_the_login(ana: Person, model: WireServer) -> None:
    """ADM-02: if the login has ended, the form is filled in again after the sign-in. It does not replace unseen what
    another page has saved in the meantime."""
    await talk(ana, model, "An answer")
    desk = await Desk.of(ana)
    await desk.press("Question 1", "Edit")
    text = desk.page.get_by_role("textbox", name="Text")
    await text.fill("Mine")
    async with without_login(desk.page):
        await desk.save()
        await expect(desk.page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    await key(ana.messages.first, "e")
    await ana.page.get_by_role("textbox", name="Edit message").fill("Theirs")
    await ana.page.get_by_role("button", name="Save", exact=True).click()
    await expect(ana.messages.first).to_contain_text("Theirs")
    await desk.page.reload()  # as after the user has signed in, in this or another tab
    await expect(text).to_have_value("Mine")
    await expect(desk.page.locator(".errornote")).to_have_text("Your entries are back. They aren’t saved yet.")
    await desk.save()
    await expect(desk.page.locator(".conflict")).to_contain_text("Theirs")
    await expect(text).to_have_value("Mine")
    assert not desk.reports, desk.reports


async def test_admin_pages_are_accessible_without_errors(ana: Person, server: Server, model: WireServer) -> None:
    """ADM-01: axe and the console report nothing, in both themes and on a phone."""
    await talk(ana, model, "An answer")
    desk = await Desk.of(ana)
    for scheme in ("light", "dark"):
        await desk.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        assert await violations(desk.page) == []
    await desk.page.set_viewport_size({"width": 360, "height": 740})
    assert await violations(desk.page) == []
    width = await desk.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360
    await desk.press("An answer", "Retry from here")
    await expect(desk.page.get_by_role("heading", level=1)).to_have_text("Retry from here?")
    assert await violations(desk.page) == []
    assert not desk.reports, desk.reports


async def test_message_menu_works_by_keyboard(ana: Person, model: WireServer) -> None:
    """ADM-03: a menu opens by Enter and closes by Escape with the focus back on its button. Only one menu is open."""
    await talk(ana, model, "An answer")
    desk = await Desk.of(ana)
    first, second = (desk.row(text).locator(".row-menu") for text in ("Question 1", "An answer"))
    await first.locator("summary").press("Enter")
    await expect(first.get_by_role("link", name="Edit")).to_be_visible()
    await desk.page.keyboard.press("Tab")
    await expect(first.get_by_role("link", name="Edit")).to_be_focused()
    assert await violations(desk.page) == []
    await desk.page.keyboard.press("Escape")
    await expect(first.get_by_role("link", name="Edit")).to_be_hidden()
    await expect(first.locator("summary")).to_be_focused()
    await first.locator("summary").click()
    await second.locator("summary").press("Enter")
    await expect(first.get_by_role("link", name="Edit")).to_be_hidden()
    await desk.page.get_by_role("heading", level=1).click()
    await expect(second.get_by_role("link", name="Edit")).to_be_hidden()
    assert not desk.reports, desk.reports


async def test_message_menu_needs_no_script(ana: Person, browser: Browser, model: WireServer) -> None:
    """ADM-03: a message's actions work without JavaScript."""
    await talk(ana, model, "An answer")
    address = (await Desk.of(ana)).page.url
    state = await ana.page.context.storage_state()
    context = await browser.new_context(java_script_enabled=False, storage_state=state)
    desk = Desk(await context.new_page())
    await desk.page.goto(address)
    await expect(desk.row("An answer").get_by_role("button", name="Remove")).to_be_hidden()
    await desk.press("An answer", "Remove")
    await expect(desk.row("An answer")).to_have_count(0)
    await expect(ana.answers).to_have_count(0)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
async def test_times_are_in_the_viewers_zone(browser: Browser, showcase: Showcase, zone: str) -> None:
    """UI-02: the list shows times in the browser's zone and names it, and the filters by date use it."""
    context = await browser.new_context(base_url=showcase.address, timezone_id=zone)
    page = await context.new_page()
    await sign_in_as(page, showcase, "admin")
    await page.goto("/admin/chat/session/")
    time = page.locator("#result_list .field-active time").first
    at = datetime.fromisoformat(str(await time.get_attribute("datetime"))).astimezone(ZoneInfo(zone))
    await expect(time).to_have_text(f"{at:%b} {at.day}, {at:%Y, %H:%M}")
    await expect(page.locator("[data-zone]")).to_have_text(zone.replace("_", " "))
    await page.reload()
    today = page.locator(".filter").filter(has_text="Last active").locator("a").nth(1)
    offset = f"{at:%z}"
    assert f"{offset[:3]}:{offset[3:]}" in unquote(str(await today.get_attribute("href")))


LISTS = ("session", "agentpreset", "share", "invitation", "user", "workspace", "apitoken", "securityevent", "erasure")
WIDTHS = """() => [document.documentElement, document.querySelector(".results")]
  .map((each) => (each ? each.scrollWidth - each.clientWidth : 0))"""


async def test_lists_fit_their_width(browser: Browser, showcase: Showcase) -> None:
    """ADM-01: a list shows all its columns at 1280 pixels; on a phone no page scrolls sideways."""
    session = showcase.session.strip("/").rpartition("/")[2].replace("_", "_5F")
    addresses = [
        "/admin/",
        "/admin/admin/logentry/",
        "/admin/auth/group/",
        f"/admin/chat/session/{session}/change/?p=1",
    ]
    addresses += [f"/admin/chat/{name}/" for name in LISTS]
    for phone in (False, True):
        page = await visit(browser, showcase, phone=phone, who="admin")
        for address in addresses:
            await page.goto(address)
            sideways, in_the_list = await page.evaluate(WIDTHS)
            assert (address, sideways) == (address, 0)
            assert phone or (address, in_the_list) == (address, 0)


async def test_navigation_of_phones_is_a_drawer(browser: Browser, showcase: Showcase) -> None:
    """ADM-01: the navigation opens by its button, leads to the other lists, and closes by Escape."""
    page = await visit(browser, showcase, phone=True, who="admin")
    await page.goto("/admin/")
    await expect(page.get_by_role("navigation", name="Admin")).to_be_hidden()
    await page.get_by_role("button", name="Open navigation").click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("navigation", name="Admin")).to_be_hidden()
    await page.get_by_role("button", name="Open navigation").click()
    await page.get_by_role("navigation", name="Admin").get_by_role("link", name="Workspaces").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Workspaces")
