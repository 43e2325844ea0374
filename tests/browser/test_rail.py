"""The session list and home: start a session, organize many, with other users."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, Locator, WebSocketRoute, expect

from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server, run_in
from tests.wire.server import WireServer


def rail(person: Person) -> Locator:
    return person.page.get_by_role("navigation", name="Sessions")


def row(person: Person, title: str) -> Locator:
    return rail(person).get_by_role("listitem").filter(has_text=title)


async def titles(person: Person) -> list[str]:
    return await rail(person).locator(".rail-title").all_text_contents()


async def home(person: Person) -> None:
    await person.page.locator("#rail-new").click()
    await expect(person.page.get_by_role("textbox", name="First message")).to_be_focused()


async def begin(person: Person, text: str) -> None:
    """Start a session at home."""
    await home(person)
    field = person.page.get_by_role("textbox", name="First message")
    await field.fill(text)
    await field.press("Enter")
    await expect(person.messages.first).to_contain_text(text)


async def choose(person: Person, title: str, *action: str) -> None:
    """Choose from the menu of a row."""
    await row(person, title).hover()
    await row(person, title).get_by_role("button").click()
    await person.page.get_by_role("menuitem", name=action[0], exact=True).click()


@pytest.mark.both_browsers
async def test_a_session_begins_at_home_with_its_first_message(ana: Person, model: WireServer) -> None:
    """RUN-01, UI-11: one Enter creates the session, sends the message and opens it; the message becomes the title."""
    model.script(reply("It is the cache."))
    await begin(ana, "Why is checkout slow?")
    await expect(ana.answers.first).to_contain_text("It is the cache.")
    await expect(row(ana, "Why is checkout slow?").get_by_role("link")).to_have_attribute("aria-current", "page")


OLDER = """
from datetime import timedelta
from django.utils import timezone
from chat.models import Session
now = timezone.now()
for days, title in ((3, "Days ago"), (400, "Years ago")):
    row = Session.objects.get(title=title)
    Session.objects.filter(pk=row.pk).update(updated_at=now - timedelta(days=days))
"""


async def test_rows_say_when_something_last_happened(ana: Person, server: Server) -> None:
    """The time today, the weekday this week, the year of old ones; the whole date on hover; kept after news."""
    for title in ("Days ago", "Years ago"):
        await home(ana)
        await begin(ana, title)
    await asyncio.to_thread(run_in, server, OLDER)
    await home(ana)
    await begin(ana, "Today")
    times = {title: row(ana, title).locator("time") for title in ("Today", "Days ago", "Years ago")}
    for _ in ("at first", "after news"):
        await expect(times["Today"]).to_have_text(re.compile(r"^\d\d:\d\d$"))
        await expect(times["Days ago"]).to_have_text(re.compile(r"^[A-Z][a-z]{2}$"))
        await expect(times["Years ago"]).to_have_text(re.compile(r"^\d{4}$"))
        await ana.page.evaluate("document.dispatchEvent(new CustomEvent('parley:rail', { detail: { now: true } }))")
    await expect(times["Years ago"]).to_have_attribute("title", re.compile(r"\d{4}"))
    await row(ana, "Days ago").hover()
    await expect(times["Days ago"]).to_be_hidden()


async def test_open_menu_of_a_row_outlasts_news(ana: Person, model: WireServer) -> None:
    """UI-11: the list is updated, and its button still reports an open menu."""
    model.script(reply("Yes."), reply("No."))
    await begin(ana, "The first")
    await home(ana)
    await row(ana, "The first").hover()
    button = row(ana, "The first").get_by_role("button")
    await button.click()
    other = await ana.page.context.new_page()
    await other.goto(ana.page.url)
    await other.get_by_role("textbox", name="First message").fill("The second")
    await other.keyboard.press("Enter")
    await expect(row(ana, "The second")).to_be_visible()
    await expect(button).to_have_attribute("aria-expanded", "true")
    await ana.page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    await expect(button).to_have_attribute("aria-expanded", "false")


async def test_page_that_is_too_old_says_so(ana: Person) -> None:
    """LIVE-04: the page asks for a reload instead of blaming the connection; the text is kept."""
    await home(ana)
    await ana.page.context.clear_cookies(name="parley_csrf")
    field = ana.page.get_by_role("textbox", name="First message")
    await field.fill("Half a thought")
    await field.press("Enter")
    await expect(ana.page.get_by_role("alert")).to_contain_text("out of date")
    await ana.choose_in_account_menu("Dark theme", "menuitemradio")
    await expect(ana.page.locator(".toast")).to_contain_text("Reload it")
    await ana.page.reload()
    await field.press("Enter")
    await expect(ana.messages.first).to_contain_text("Half a thought")
    ana.complaints[:] = [said for said in ana.complaints if "status of 403" not in said]


async def test_home_loses_no_words(ana: Person, server: Server) -> None:
    """LIVE-04: the text survives a reload, and a server that cannot be reached."""
    await home(ana)
    field = ana.page.get_by_role("textbox", name="First message")
    await field.fill("Half a thought")
    await ana.page.reload()
    await expect(field).to_have_value("Half a thought")
    await ana.page.context.set_offline(True)
    await field.press("Enter")
    await expect(ana.page.get_by_role("alert")).to_contain_text("Nothing is lost")
    await expect(field).to_have_value("Half a thought")
    await ana.page.context.set_offline(False)
    await field.press("Enter")
    await expect(ana.messages.first).to_contain_text("Half a thought")
    await home(ana)
    await expect(field).to_have_value("")


async def test_a_deleted_session_is_gone_for_both_and_comes_back(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """LIVE-06, UI-11: deleting a session in one browser closes it in the other; Undo restores it in both.

    It asks first, because another person loses access. The owner restores it from its address, too.
    """
    model.script(reply("Yes."))
    await ana.say("Keep this")
    await expect(ana.answers.first).to_contain_text("Yes.")
    address = ana.page.url
    bo = await invited(ana, browser, "Bo")
    await expect(bo.answers.first).to_contain_text("Yes.")
    await ana.page.reload()
    dialog = ana.page.get_by_role("dialog", name="Delete this session?")
    await choose(ana, "Keep this", "Delete")
    await expect(dialog).to_contain_text("1 other person loses access.")
    assert await violations(ana.page) == []
    await ana.page.keyboard.press("Escape")
    await expect(row(ana, "Keep this")).to_have_count(1)
    await choose(ana, "Keep this", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(ana.page.get_by_text("Session deleted")).to_be_visible()
    await expect(row(ana, "Keep this")).to_have_count(0)
    await bo.sees_connection("no longer have access")
    gone = await bo.page.goto(address)
    assert gone is not None
    assert gone.status == 404
    bo.forgive()
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(row(ana, "Keep this")).to_have_count(1)
    await bo.page.goto(address)
    await expect(bo.answers.first).to_contain_text("Yes.")
    await choose(ana, "Keep this", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row(ana, "Keep this")).to_have_count(0)
    ana.forgive()
    await ana.page.goto(address)
    await ana.page.get_by_role("button", name="Restore").click()
    await expect(ana.answers.first).to_contain_text("Yes.")
    await expect(ana.page).to_have_url(address)
    bo.complain()


async def test_a_title_is_changed_in_place(ana: Person) -> None:
    """UI-11: Enter saves it, Escape does not; updates of the list keep the field."""
    await choose(ana, "New session", "Rename")
    field = rail(ana).get_by_role("textbox", name="Title")
    await field.fill("计划 A")
    await ana.page.evaluate("document.dispatchEvent(new Event('parley:rail'))")
    await ana.page.keyboard.type("!")
    await field.press("Enter")
    await expect(row(ana, "计划 A!")).to_have_count(1)
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("计划 A!")
    await expect(row(ana, "计划 A!").get_by_role("link")).to_be_focused()
    await choose(ana, "计划 A!", "Rename")
    await field.fill("Nothing")
    await field.press("Escape")
    await expect(row(ana, "计划 A!")).to_have_count(1)
    await ana.page.reload()
    await expect(row(ana, "计划 A!")).to_have_count(1)


async def test_pins_come_first_and_the_archive_stands_apart(ana: Person, model: WireServer) -> None:
    model.script(reply("1"), reply("2"))
    await begin(ana, "First")
    await begin(ana, "Second")
    await choose(ana, "First", "Pin")
    await expect(rail(ana).get_by_role("region", name="Pinned").get_by_role("listitem")).to_contain_text(["First"])
    await choose(ana, "Second", "Archive")
    await expect(ana.page.get_by_text("Session archived", exact=True)).to_be_visible()
    await expect(row(ana, "Second")).to_have_count(0)
    await ana.choose_in_account_menu("Archived sessions")
    await expect(row(ana, "Second")).to_have_count(1)
    await expect(rail(ana).get_by_role("button", name="All sessions")).to_be_focused()
    await choose(ana, "Second", "Restore from the archive")
    await expect(rail(ana)).to_contain_text("No archived sessions")
    await rail(ana).get_by_role("button", name="All sessions").click()
    await expect(row(ana, "Second")).to_have_count(1)
    await choose(ana, "First", "Unpin")
    await expect(rail(ana).get_by_role("region", name="Pinned")).to_have_count(0)


async def test_many_are_chosen_and_deleted_together(ana: Person, model: WireServer) -> None:
    """UI-11: Shift selects all in between; one Undo restores all."""
    model.script(*[reply(f"{number}") for number in range(4)])
    for number in range(4):
        await begin(ana, f"Number {number}")
    await choose(ana, "Number 3", "Select")
    await row(ana, "Number 1").get_by_role("checkbox").click(modifiers=["Shift"])
    await expect(rail(ana).get_by_role("status")).to_have_text("3 selected")
    await ana.page.evaluate("document.dispatchEvent(new Event('parley:rail'))")
    await row(ana, "Number 2").get_by_role("link").click()
    await expect(rail(ana).get_by_role("status")).to_have_text("2 selected")
    await rail(ana).get_by_role("button", name="Delete").click()
    await expect(ana.page.get_by_text("2 sessions deleted")).to_be_visible()
    await expect(row(ana, "Number 3")).to_have_count(0)
    assert {"Number 0", "Number 2"} <= set(await titles(ana))
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(row(ana, "Number 3")).to_have_count(1)
    await expect(row(ana, "Number 1")).to_have_count(1)


async def test_what_others_say_is_unread_until_it_is_seen(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-01: the session's title and the dot appear without a reload; opening the session removes the dot."""
    gate = asyncio.Event()
    model.script(reply("Yes.", gate=gate))
    bo = await invited(ana, browser, "Bo", member=True)
    await home(bo)
    await expect(row(bo, "New session")).to_have_count(1)
    mark = row(bo, "Is it so?").get_by_text("Unread")
    await ana.say("Is it so?")
    await expect(row(bo, "Is it so?").get_by_text("Agent working")).to_have_count(1)
    await expect(row(ana, "Is it so?")).to_have_count(1)
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Is it so?")
    gate.set()
    await expect(mark).to_have_count(1)
    await bo.page.reload()
    await expect(mark).to_have_count(1)
    await row(bo, "Is it so?").get_by_role("link").click()
    await expect(bo.answers.first).to_contain_text("Yes.")
    await expect(mark).to_have_count(0)
    await home(bo)
    await expect(mark).to_have_count(0)
    bo.complain()


async def test_title_that_comes_after_the_notice_is_in_the_list(ana: Person, model: WireServer) -> None:
    """LIVE-01: the notice that the list has changed is sent beside the session's frames, not in order with them."""
    gate = asyncio.Event()
    model.script(reply("Yes.", gate=gate))

    def connect(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        held = list[str | bytes]()

        def pass_on(frame: str | bytes) -> None:
            if '"op":"rail"' in str(frame):
                for each in [frame, *held]:
                    socket.send(each)
                held.clear()
            elif held or '"op":"session"' in str(frame):
                held.append(frame)
            else:
                socket.send(frame)

        server.on_message(pass_on)

    await ana.page.route_web_socket("**/ws/**", connect)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.say("Is it so?")
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Is it so?")
    await expect(row(ana, "Is it so?")).to_have_count(1)
    gate.set()
    await expect(ana.answers.first).to_contain_text("Yes.")


async def test_turn_in_the_open_session_loads_no_list(ana: Person, model: WireServer) -> None:
    """ui.md: the row shows what the page knows; a thousand people in a session would ask for a thousand lists."""
    gate = asyncio.Event()
    model.script(reply("First."), reply("Second", gate=gate, rest=(" ends.",)))
    notices, lists = list[str](), list[str]()
    ana.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: notices.append(str(frame))))
    await begin(ana, "Go on")
    working = row(ana, "Go on").get_by_text("Agent working")
    await expect(ana.answers.first).to_contain_text("First.")
    await expect(working).to_have_count(0)
    await expect(row(ana, "Go on").get_by_text("Unread")).to_have_count(0)
    ana.page.on("request", lambda request: lists.append(request.url) if "/rail?" in request.url else None)
    heard = len(notices)
    await ana.say("More")
    await expect(working).to_have_count(1)
    gate.set()
    await expect(ana.answers.last).to_contain_text("Second ends.")
    await expect(working).to_have_count(0)
    async with asyncio.timeout(20):
        while not any('"own":true' in frame for frame in notices[heard:]):  # noqa: ASYNC110  # a list has no event
            await asyncio.sleep(0.05)
    assert lists == []
    ana.complain()


async def test_the_rail_is_folded_by_keyboard_and_stays_so(ana: Person) -> None:
    listed = rail(ana).get_by_role("listitem")
    await expect(listed).to_have_count(1)
    await ana.page.keyboard.press("Control+b")
    await expect(listed).to_have_count(0)
    await ana.page.reload()
    await expect(listed).to_have_count(0)
    await rail(ana).get_by_role("button", name="Session list").click()
    await expect(listed).to_have_count(1)
