"""The header in a real browser: title, model, usage, users, and the menu of all actions."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urljoin

from playwright.async_api import Browser, FilePayload, Route, ViewportSize, expect

from tests.browser.delays import HANDLED, Delay
from tests.browser.person import RETRIES, Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.files import picture
from tests.wire.server import WireServer


async def test_model_is_chosen_by_keyboard(ana: Person, browser: Browser) -> None:
    """RUN-16, UI-11: arrows, letters and Enter choose; Escape changes nothing; all users in the session see it."""
    bo = await invited(ana, browser, "Bo", member=True)
    page = ana.page
    button = page.get_by_role("button", name="Model:")
    await button.focus()
    await page.keyboard.press("Enter")
    options = page.get_by_role("listbox", name="Models")
    await expect(options).to_be_focused()
    await expect(options).to_have_attribute("aria-activedescendant", "option-1-1")
    await expect(page.get_by_role("option", name="wire-large")).to_contain_text("1K")
    await page.keyboard.press("ArrowDown")
    await expect(options).to_have_attribute("aria-activedescendant", "option-1-2")
    await page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    await expect(button).to_have_accessible_name("Model: wire-large 1K")
    await page.keyboard.press("Enter")
    await expect(options).to_be_focused()
    await page.keyboard.type("wire-s")
    await page.keyboard.press("Enter")
    await expect(button).to_have_accessible_name("Model: wire-small")
    await expect(bo.page.get_by_role("button", name="Model:")).to_have_accessible_name("Model: wire-small")
    bo.check_console()


async def test_figures_are_explained(ana: Person, model: WireServer) -> None:
    """UI-08: the header shows `Context: 1.1% · Session: 138 tokens`, and a box explains these figures."""
    model.script(reply("Hello"))
    await ana.say("Hi")
    figures = ana.page.get_by_role("button", name="Tokens:")
    await expect(figures).to_contain_text("Context: 1.1% · Session:")
    await figures.click()
    box = ana.page.get_by_role("dialog", name="Token usage")
    await expect(box).to_contain_text("of 1,000 context tokens")
    await expect(box.get_by_role("meter")).to_be_visible()
    await figures.click()
    await expect(box).to_have_count(0)


async def test_model_picker_does_not_move_when_figures_appear(ana: Person, model: WireServer) -> None:
    """UI-08, UI-11: the figures of the first turn, and changed ones, take space from the title, not from the picker."""
    page = ana.page
    sizes: list[ViewportSize] = [
        {"width": width, "height": height}
        for width, height in ((1440, 800), (1280, 720), (1000, 800), (700, 400), (390, 844))
    ]
    figures = page.get_by_role("button", name="Tokens:")
    await ana.sees_connection("Connected")

    async def places() -> list[dict[str, float]]:
        found = []
        for size in sizes:
            await page.set_viewport_size(size)
            found.append(await page.locator("#model").evaluate("it => it.getBoundingClientRect().toJSON()"))
        return found

    before = await places()
    await expect(figures).to_be_hidden()
    model.script(reply("Hello"), reply("Hello again"))
    await ana.say("Hi")
    await expect(figures).to_contain_text("Session: 18 tokens")
    assert await places() == before
    await ana.say("Go on")
    await expect(figures).to_contain_text("Session: 36 tokens")
    assert await places() == before


async def test_title_is_changed_from_the_menu(ana: Person) -> None:
    """UI-11: a user changes the title from the header's menu, by keyboard alone."""
    page = ana.page
    more = page.get_by_role("button", name="More", exact=True)
    await more.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("textbox", name="Title").fill("Friday")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Friday")
    await expect(page).to_have_title("Friday · Parley")
    await more.click()
    await page.get_by_role("menuitem", name="Share session").click()
    await expect(page.get_by_role("dialog", name="Share session")).to_contain_text("1 person in this session")


async def test_share_dialog_shows_users_who_join(ana: Person, browser: Browser) -> None:
    """LIVE-06: a user who joins appears in the open dialog, sees the other users, and can leave the session."""
    page = ana.page
    await page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share session")
    await dialog.get_by_role("button", name="Create link").click()
    link = await dialog.get_by_label("Invitation link").input_value()
    bo = await Person.enter(browser, link)
    await bo.page.get_by_label("Your name").fill("Bo")
    await bo.page.get_by_label("User name").fill("bo")
    await bo.page.get_by_label("Password").fill("a long enough passphrase")
    await bo.page.get_by_role("button", name="Join").click()
    await expect(dialog).to_contain_text("2 people in this session")
    await expect(dialog.get_by_label("Role of Bo")).to_have_value("viewer")
    await expect(dialog.get_by_label("Invitation link")).to_have_value(link)
    await dialog.get_by_role("button", name="Remove Bo").click()
    question = page.get_by_role("dialog", name="Remove Bo?")
    await expect(question).to_contain_text("They lose access until")
    await question.get_by_role("button", name="Cancel").click()
    await expect(dialog.get_by_label("Role of Bo")).to_have_value("viewer")
    await dialog.get_by_label("Invitation link").focus()  # the list doesn’t change under the focus

    await bo.page.get_by_role("button", name="People").click()
    people = bo.page.get_by_role("dialog", name="People in this session")
    await expect(people).to_contain_text("Bo (you)")
    await people.get_by_text("Leave this session…").click()
    await people.get_by_role("button", name="Leave", exact=True).click()
    await expect(bo.page.locator("#toasts")).to_contain_text("You left the session")
    await expect(dialog).to_contain_text("1 person in this session")
    bo.check_console()


async def test_new_link_is_selected_and_stays(ana: Person) -> None:
    """UI-11: a new link is selected, ready to be copied, with the role that it gives.

    It stays in the dialog until the dialog closes or the link is revoked, although later responses do not contain it.
    The focus stays in the dialog.
    """
    page = ana.page
    await page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share session")
    await dialog.get_by_label("Role for this link").select_option("editor")
    await dialog.get_by_role("button", name="Create link").press("Enter")
    await expect(dialog.get_by_label("Invitation link")).to_be_focused()
    assert (
        await page.evaluate("getSelection().toString()") == await dialog.get_by_label("Invitation link").input_value()
    )
    await expect(dialog.get_by_label("Role for this link")).to_have_value("editor")
    first = await dialog.get_by_label("Invitation link").input_value()
    await dialog.get_by_label("Workspace access").select_option("viewer")
    await expect(dialog.get_by_text("Members can open it by its link")).to_be_visible()
    await expect(dialog.get_by_label("Invitation link")).to_have_value(first)
    await expect(dialog.get_by_text("expires in 7 days", exact=True)).to_have_count(1)
    await dialog.get_by_role("button", name="Create link").press("Enter")
    await expect(dialog.get_by_label("Invitation link")).to_have_count(2)
    await expect(dialog.get_by_label("Invitation link").first).to_be_focused()
    await dialog.get_by_role("button", name="Revoke").first.press("Enter")
    await expect(dialog.locator(".done")).to_have_text("This link no longer works.")
    await expect(dialog.get_by_label("Invitation link")).to_have_value(first)
    await expect(dialog.locator("#share-body")).to_be_focused()


async def test_share_dialog_keeps_choices(ana: Person, browser: Browser) -> None:
    """UI-11: the response to one form keeps what the user has chosen in the others.

    A reopened dialog shows no old content, which would be replaced while the user chooses. A failed change is turned
    back.
    """
    await invited(ana, browser, "Bo", member=True)
    await ana.begin()
    page = ana.page
    dialog = page.get_by_role("dialog", name="Share session")
    role = dialog.get_by_label("Role for this link")
    await page.get_by_role("button", name="Share").click()
    await role.select_option("editor")
    await dialog.get_by_label("Invite", exact=True).select_option("10")
    await dialog.get_by_role("radio", name="Bo").check()
    await dialog.get_by_label("Role", exact=True).select_option("editor")
    await dialog.get_by_label("Workspace access").select_option("viewer")
    await expect(dialog.get_by_text("Members can open it by its link")).to_be_visible()
    await expect(role).to_have_value("editor")
    await expect(dialog.get_by_label("Invite", exact=True)).to_have_value("10")
    await expect(dialog.get_by_role("radio", name="Bo")).to_be_checked()
    await expect(dialog.get_by_label("Role", exact=True)).to_have_value("editor")
    await page.keyboard.press("Escape")
    gate = asyncio.Event()
    async with page.expect_request("**/share"):
        await page.route("**/share", lambda route: held(route, gate))
        await page.get_by_role("button", name="Share").click()
    await expect(dialog).to_contain_text("Loading…")
    await expect(role).to_have_count(0)
    gate.set()
    await expect(role).to_have_value("viewer")
    await page.route("**/share/workspace", lambda route: route.abort())
    await dialog.get_by_label("Workspace access").select_option("editor")
    await expect(dialog.locator(".toast")).to_be_visible()
    await expect(dialog.get_by_label("Workspace access")).to_have_value("viewer")
    assert ana.reports[0] == "Failed to load resource: net::ERR_FAILED"
    ana.reports.clear()


async def held(route: Route, gate: asyncio.Event) -> None:
    await gate.wait()
    await route.continue_()


async def test_lost_access_keeps_the_text(ana: Person, browser: Browser, model: WireServer) -> None:
    """LIVE-06: a user who is removed sees a banner with a link home, and can still read the text on the page.

    After Undo of the removal, the page offers to reload.
    """
    model.script(reply("Read this"))
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.say("Hello")
    await expect(bo.answers.first).to_contain_text("Read this")
    await bo.page.get_by_role("button", name="Session details").click()
    await expect(bo.page.get_by_role("textbox", name="System prompt")).to_be_editable()
    await ana.page.get_by_role("button", name="Share").click()
    await ana.page.get_by_role("button", name="Remove Bo").click()
    removed = ana.page.locator(".toast").filter(has_text="Bo removed")
    await removed.hover()  # it stays
    await bo.sees_connection("You no longer have access")
    await expect(bo.page.get_by_role("textbox", name="System prompt")).not_to_be_editable()
    await expect(bo.page.locator("#rename")).to_be_disabled()
    await expect(bo.page.locator("#session-list .session-row")).to_have_count(0)
    await bo.answers.first.focus()
    await bo.page.keyboard.press("Delete")
    await expect(bo.page.locator("#notices")).to_contain_text("You no longer have access.")
    await removed.get_by_role("button", name="Undo").click()
    await expect(ana.page.get_by_label("Role of Bo")).to_have_value("editor")
    await expect(bo.answers.first).to_contain_text("Read this")
    await expect(bo.page.get_by_text("You can read this copy, but you can’t write here anymore.")).to_be_visible()
    await expect(bo.composer).to_be_hidden()
    await expect(bo.page.locator("#connection").get_by_role("link", name="Your sessions")).to_be_visible()
    await expect(bo.page.locator("#notices")).to_contain_text("You have access to this session again.")
    await bo.page.get_by_role("button", name="Reload").click()
    await bo.sees_connection("Connected")
    await expect(bo.composer).to_be_editable()
    bo.check_console()


async def test_session_is_shared_with_the_workspace(ana: Person, browser: Browser) -> None:
    """UI-23: a member opens a session that is shared with the workspace, with the role that the owner has chosen.

    When the owner ends this, the member loses access.
    """
    session = ana.page.url
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.begin()
    await bo.page.goto(ana.page.url)
    await expect(bo.page.get_by_role("heading", name="Page not found")).to_be_visible()
    bo.ignore_refusals()
    await ana.page.get_by_role("button", name="Share").click()
    choice = ana.page.get_by_role("dialog").get_by_label("Workspace access")
    await expect(choice).to_have_value("")
    await choice.select_option("viewer")
    await expect(ana.page.get_by_text("Members can open it by its link")).to_be_visible()
    await bo.page.goto(ana.page.url)
    await bo.sees_connection("Connected")
    await expect(bo.composer).to_have_count(0)
    await choice.select_option("editor")
    await expect(bo.composer).to_be_visible()
    assert await violations(ana.page) == []
    await choice.select_option("")
    await bo.sees_connection("You no longer have access")
    await bo.page.goto(session)
    await bo.sees_connection("Connected")
    bo.check_console()


async def test_removed_user_sees_no_change_of_the_behavior(ana: Person, browser: Browser) -> None:
    """LIVE-06: the removal can change which messages the agent answers. This no longer concerns the removed user."""
    bo = await invited(ana, browser, "Bo")
    change = "main => main.dispatchEvent(new CustomEvent('parley:replies', { detail: 'all' }))"
    await ana.page.get_by_role("button", name="Share").click()
    await bo.page.locator("#main").evaluate(change)
    toast = bo.page.get_by_text("The agent answers every message again")
    await expect(toast).to_be_visible()
    await toast.hover()  # it stays
    await ana.page.get_by_role("button", name="Remove Bo").click()
    await ana.page.get_by_role("dialog", name="Remove Bo?").get_by_role("button", name="Remove").click()
    await bo.sees_connection("You no longer have access")
    assert await toast.count() == 0  # without waiting, because toasts disappear
    bo.check_console()


async def test_menu_has_one_entry_for_the_behavior(ana: Person, model: WireServer) -> None:
    """UI-11: one entry of the header's menu opens the choices for the agent's behavior and marks the current ones."""
    model.script(reply("Hello"))
    await ana.say("Hi")
    await expect(ana.answers.first).to_contain_text("Hello")
    await ana.sees_state("idle")
    more = ana.page.get_by_role("button", name="More", exact=True).first
    await more.click()
    menu = ana.page.get_by_role("menu", name="More")
    groups = [["Rename", "Share session", "Find in this session", "Session details", "Agent behavior", "Schedule…"]]
    groups += [["Fork session", "Export…", "Removed messages"], ["Pin", "Archive", "Delete"]]
    await expect(menu.locator(".menu-label")).to_have_text([entry for group in groups for entry in group])
    await expect(menu.get_by_role("separator")).to_have_count(len(groups) - 1)
    await menu.get_by_role("menuitem", name="Agent behavior").click()
    choices = ana.page.get_by_role("menu", name="Agent behavior")
    replies, mode = choices.get_by_role("group", name="Replies"), choices.get_by_role("group", name="Mode")
    await expect(replies.get_by_role("menuitemradio", checked=True)).to_have_text("Answer every message")
    await expect(mode.get_by_role("menuitemradio", checked=True)).to_have_text("Use tools")
    assert await violations(ana.page) == []
    await ana.page.keyboard.press("ArrowDown")
    await expect(replies.get_by_role("menuitemradio").last).to_be_focused()
    await ana.page.keyboard.press("End")
    await expect(mode.get_by_role("menuitemradio").last).to_be_focused()
    await ana.page.keyboard.press("Escape")
    await expect(more).to_be_focused()


async def test_toast_is_reached_and_dismissed_by_keyboard(ana: Person) -> None:
    """A toast stays while the user has the focus in it, and gives the focus back."""
    page = ana.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("Copy link")
    await page.keyboard.press("Enter")
    toast = page.locator(".toast")
    await expect(toast).to_contain_text("Link copied")
    assert await page.evaluate("navigator.clipboard.readText()") == page.url
    await ana.composer.focus()
    await page.keyboard.press("F8")
    await expect(toast.get_by_role("button", name="Dismiss")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(toast).to_have_count(0)
    await expect(ana.composer).to_be_focused()


async def test_picture_of_a_user_who_joins_later_is_shown(ana: Person, browser: Browser) -> None:
    """LIVE-05: pages that were already open show the avatar at once."""
    bo = await invited(ana, browser, "Bo")
    await bo.page.goto(urljoin(bo.page.url, "/settings/"))
    form: dict[str, Any] = {
        "csrfmiddlewaretoken": await bo.token(),
        "part": "picture",
        "picture": FilePayload(name="bo.png", mimeType="image/png", buffer=picture("PNG", (64, 64))),
    }
    assert (await bo.page.request.post(bo.page.url, multipart=form, max_retries=RETRIES)).ok
    await ana.begin()
    await ana.sees_connection("Connected")
    await ana.page.get_by_role("button", name="Share").click()
    link_of = ana.page.get_by_role("dialog")
    await link_of.get_by_role("button", name="Create link").click()
    await bo.page.goto(await link_of.get_by_label("Invitation link").input_value())
    await bo.page.get_by_role("button", name="Join").click()
    await expect(ana.page.locator("#presence .face img").first).to_be_attached()
    bo.check_console()


async def test_header_is_one_line_and_keeps_its_place(ana: Person, browser: Browser) -> None:
    """UI-11: the header is one line beside an open panel, with two users' faces. A lost connection adds a banner."""
    bo = await invited(ana, browser, "Bo")
    page = ana.page
    await page.get_by_role("button", name="Rename").wait_for()
    await expect(page.locator("#presence .here .face")).to_have_count(2)
    height = "document.querySelector('.top').offsetHeight"
    place = "document.getElementById('rename').getBoundingClientRect().top"
    before = await page.evaluate(place), await page.evaluate(height)
    await page.keyboard.press("Control+.")
    await expect(page.get_by_role("textbox", name="System prompt")).to_be_visible()
    assert (await page.evaluate(place), await page.evaluate(height)) == before
    await page.evaluate("document.getElementById('connection').dataset.state = 'offline'")
    assert await page.evaluate(place) == before[0]
    bo.check_console()


async def test_unchanged_title_is_not_saved(ana: Person, model: WireServer) -> None:
    """UI-11: a user opens the field of the title and leaves it without a change. A new title of another user stays."""
    other = Person(await ana.page.context.new_page())
    await other.page.goto(ana.page.url)
    await other.sees_connection("Connected")
    await ana.page.bring_to_front()
    await ana.page.get_by_role("button", name="Rename").click()
    await expect(ana.page.get_by_role("textbox", name="Title")).to_be_focused()
    await other.page.get_by_role("button", name="Rename").click()
    await other.page.get_by_role("textbox", name="Title").fill("Friday")
    await other.page.keyboard.press("Enter")
    await expect(ana.page).to_have_title("Friday · Parley")
    await ana.composer.click()
    model.script(reply("Heard"))
    await ana.say("Hello")  # the server handles a page's commands in their order
    await expect(other.answers.first).to_contain_text("Heard")
    for person in (ana, other):
        await expect(person.page.get_by_role("heading", level=1)).to_contain_text("Friday")
    other.check_console()


async def test_share_dialog_that_is_opened_again_offers_one_undo(ana: Person, browser: Browser) -> None:
    """LIVE-06: a dialog that is closed and opened again before its module is loaded works once."""
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.page.reload()
    page, dialog = ana.page, ana.page.get_by_role("dialog", name="Share session")
    late = await Delay.next_response(page, "**/session-share.js")
    await page.get_by_role("button", name="Share").click()
    await late.read()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.get_by_role("button", name="Share").click()
    await late.release()
    await page.evaluate("(address) => import(address).then(() => {})", late.routes[0].request.url)
    await dialog.get_by_role("button", name="Remove Bo").click()
    await expect(page.locator(".toast", has_text="Bo removed")).to_have_count(1)
    bo.check_console()


async def test_share_dialog_that_is_closed_at_once_stays_idle(ana: Person) -> None:
    """LIVE-06: a dialog that the user closes before its module is loaded sends no requests afterwards."""
    page, dialog = ana.page, ana.page.get_by_role("dialog", name="Share session")
    await page.clock.install()
    late = await Delay.next_response(page, "**/session-share.js")
    requests: list[str] = []
    await page.get_by_role("button", name="Share").click()
    await expect(dialog.get_by_role("button", name="Create link")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    page.on("request", lambda request: requests.append(request.url))
    await late.release()
    await page.evaluate("(address) => import(address).then(() => {})", late.routes[0].request.url)
    await page.clock.fast_forward(8_000)
    await page.evaluate(HANDLED)
    assert not [address for address in requests if address.endswith("/share")]
