"""The session list and the home page: starting sessions, and organizing many, with other users."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, Locator, WebSocketRoute, expect

from tests.browser.delays import Delay
from tests.browser.person import RETRIES, Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server, run_in
from tests.wire.server import WireServer


def sidebar(person: Person) -> Locator:
    return person.page.get_by_role("navigation", name="Sessions")


def row(person: Person, title: str) -> Locator:
    return sidebar(person).get_by_role("listitem").filter(has_text=title)


async def titles(person: Person) -> list[str]:
    return await sidebar(person).locator(".session-title").all_text_contents()


async def home(person: Person) -> None:
    await person.page.locator("#new-session").click()
    await expect(person.page.get_by_role("textbox", name="First message")).to_be_focused()


async def begin(person: Person, text: str) -> None:
    """Start a session on the home page."""
    await home(person)
    field = person.page.get_by_role("textbox", name="First message")
    await field.fill(text)
    await field.press("Enter")
    await expect(person.messages.first).to_contain_text(text)


async def answered(person: Person) -> None:
    """Wait until the agent has answered the first message."""
    await expect(person.answers.first).to_be_visible()
    await person.sees_state("idle")


async def choose(person: Person, title: str, action: str) -> None:
    """Choose an action from the menu of a session's row."""
    await row(person, title).hover()
    await row(person, title).get_by_role("button").click()
    await person.page.get_by_role("menuitem", name=action, exact=True).click()


async def test_change_of_the_list_before_the_page_is_connected_is_shown(ana: Person) -> None:
    """LIVE-01: a page shows changes of the list that happened after the server rendered it and before its socket."""
    other = ana.page.url.replace("/sessions/", "/api/sessions/").rstrip("/")
    await ana.begin()
    await ana.sees_connection("Connected")
    late = Person(await ana.page.context.new_page())
    is_over = asyncio.Event()

    async def wait(route: WebSocketRoute) -> None:
        await is_over.wait()
        route.connect_to_server()

    await late.page.route_web_socket("**/ws/**", wait)
    await late.page.goto(ana.page.url)
    headers = {"X-CSRFToken": await ana.token()}
    title = {"title": "Another title"}
    assert (await ana.page.request.patch(other, data=title, headers=headers, max_retries=RETRIES)).ok
    await expect(row(ana, "Another title")).to_be_visible()
    is_over.set()
    await expect(row(late, "Another title")).to_be_visible()


async def test_list_survives_a_response_that_is_no_list(ana: Person) -> None:
    """The list stays as it is if a broken connection or a proxy cuts or replaces the response, and is updated later."""
    update = "() => document.dispatchEvent(new CustomEvent('parley:list-changed', { detail: { now: true } }))"
    await expect(row(ana, "New session")).to_have_count(1)
    await ana.page.route("**/session-list?*", lambda route: route.fulfill(body="<p>Maintenance</p>"), times=1)
    async with ana.page.expect_response("**/session-list?*"):
        await ana.page.evaluate(update)
    async with ana.page.expect_response("**/session-list?*"):
        await ana.page.evaluate(update)
    await expect(row(ana, "New session")).to_have_count(1)
    assert "Maintenance" not in await ana.page.locator("#session-list").inner_text()


@pytest.mark.both_browsers
async def test_first_message_creates_a_session(ana: Person, model: WireServer) -> None:
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


async def test_rows_show_the_time_of_the_last_change(ana: Person, server: Server) -> None:
    """UI-02: a row shows a time today, a weekday this week, and otherwise a date or year.

    The full date is its tooltip, also after an update.
    """
    for title in ("Days ago", "Years ago"):
        await begin(ana, title)
        await answered(ana)  # the answer changes the time, too
    await asyncio.to_thread(run_in, server, OLDER)
    await home(ana)
    await begin(ana, "Today")
    times = {title: row(ana, title).locator("time") for title in ("Today", "Days ago", "Years ago")}
    for _ in range(2):  # at first, and after the list was fetched again
        await expect(times["Today"]).to_have_text(re.compile(r"^\d\d:\d\d$"))
        await expect(times["Days ago"]).to_have_text(re.compile(r"^[A-Z][a-z]{2}$"))
        await expect(times["Years ago"]).to_have_text(re.compile(r"^\d{4}$"))
        await ana.page.evaluate(
            "document.dispatchEvent(new CustomEvent('parley:list-changed', { detail: { now: true } }))"
        )
    await expect(times["Years ago"]).to_have_attribute("title", re.compile(r"\d{4}"))
    await row(ana, "Days ago").hover()
    await expect(times["Days ago"]).to_be_hidden()


async def test_open_menu_of_a_row_survives_updates(ana: Person, model: WireServer) -> None:
    """UI-11: the open menu of a row survives an update of the list, and its button still reports it as open."""
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


async def test_page_without_its_csrf_cookie_asks_for_a_reload(ana: Person) -> None:
    """LIVE-04: a page without its CSRF cookie asks for a reload and keeps the text.

    It does not report a lost connection.
    """
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
    ana.reports[:] = [report for report in ana.reports if "status of 403" not in report]


async def test_first_message_survives_reload_and_failure(ana: Person, server: Server) -> None:
    """LIVE-04: the first message survives a reload and a server that cannot be reached, until it is sent."""
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


async def test_deleted_session_is_restored_for_both_users(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-06, UI-11: deleting a session in one browser closes it in the other; Undo restores it in both.

    The dialog asks first, because another user loses access. The owner can restore the session from its address, too.
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
    await ana.page.get_by_text("Session deleted").hover()  # the toast stays
    await expect(row(ana, "Keep this")).to_have_count(0)
    await bo.sees_connection("no longer have access")
    gone = await bo.page.goto(address)
    assert gone is not None
    assert gone.status == 404
    bo.ignore_refusals()
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(row(ana, "Keep this")).to_have_count(1)
    await expect(ana.page).to_have_url(address)  # the page on which the session was deleted
    await expect(ana.page.get_by_text("Session restored")).to_be_visible()
    await bo.page.goto(address)
    await expect(bo.answers.first).to_contain_text("Yes.")
    await choose(ana, "Keep this", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row(ana, "Keep this")).to_have_count(0)
    ana.ignore_refusals()
    await ana.page.goto(address)
    await ana.page.get_by_role("button", name="Restore").click()
    await expect(ana.answers.first).to_contain_text("Yes.")
    await expect(ana.page).to_have_url(address)
    bo.check_console()


async def test_title_is_changed_in_the_list(ana: Person) -> None:
    """UI-11: Enter saves a title and Escape discards it. Updates of the list keep the field.

    The Escape that ends the work of an input method, which Safari marks by the key code alone, discards nothing.
    """
    await choose(ana, "New session", "Rename")
    field = sidebar(ana).get_by_role("textbox", name="Title")
    await field.fill("计划 A")
    await ana.page.evaluate("document.dispatchEvent(new Event('parley:list-changed'))")
    await ana.page.keyboard.type("!")
    await field.press("Enter")
    await expect(row(ana, "计划 A!")).to_have_count(1)
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("计划 A!")
    await expect(row(ana, "计划 A!").get_by_role("link")).to_be_focused()
    await choose(ana, "计划 A!", "Rename")
    await field.fill("Nothing")
    composing = "{ key: 'Escape', keyCode: 229, bubbles: true }"
    await field.evaluate(f"field => field.dispatchEvent(new KeyboardEvent('keydown', {composing}))")
    await expect(field).to_have_value("Nothing")
    await field.press("Escape")
    await expect(row(ana, "计划 A!")).to_have_count(1)
    await ana.page.reload()
    await expect(row(ana, "计划 A!")).to_have_count(1)


async def test_refused_title_is_kept(ana: Person) -> None:
    """UI-11: the field keeps the refused title and shows the reason until the user saves it or presses Escape."""
    ana.ignore_refusals()
    for open_field, field in (
        (choose(ana, "New session", "Rename"), sidebar(ana).get_by_role("textbox", name="Title")),
        (ana.page.locator("#rename").click(), ana.page.locator(".top").get_by_role("textbox", name="Title")),
    ):
        await open_field
        await field.fill("Plan\0 B")
        await field.press("Enter")
        await expect(field).to_be_focused()
        await expect(field).to_have_value("Plan\0 B")
        await expect(field).to_have_accessible_description(re.compile("characters"))
        assert await violations(ana.page) == []
        # Clicks elsewhere and changes of the list do not close the field.
        await ana.composer.focus()
        async with ana.page.expect_response(lambda response: "/session-list?" in response.url):
            await ana.page.evaluate("document.dispatchEvent(new Event('parley:list-changed'))")
        await expect(ana.composer).to_be_focused()
        await expect(field).to_have_value("Plan\0 B")
        await field.press("Escape")
        await expect(field).to_be_hidden()
        await expect(row(ana, "New session")).to_have_count(1)
    await choose(ana, "New session", "Rename")
    field = sidebar(ana).get_by_role("textbox", name="Title")
    await field.fill("Plan\0 C")
    await field.press("Enter")
    await expect(field).to_have_accessible_description(re.compile("characters"))
    await field.fill("Plan C")
    await field.press("Enter")
    await expect(row(ana, "Plan C").get_by_role("link")).to_be_focused()
    await expect(field).to_have_count(0)


MANY = """
from chat.models import Session
from chat.services.sessions.lifecycle import create_session
first = Session.objects.get()
for number in range(100):
    create_session(workspace=first.workspace, owner=first.owner, title=f"Number {number}")
"""


async def test_more_sessions_are_reached_by_keyboard(ana: Person, server: Server) -> None:
    """UI-11: after "Show more", the focus is on the first added session, not at the start of the page."""
    await asyncio.to_thread(run_in, server, MANY)
    await ana.page.reload()
    more = sidebar(ana).get_by_role("button", name="Show more")
    await expect(sidebar(ana).get_by_role("listitem")).to_have_count(60)
    await more.focus()
    await ana.page.keyboard.press("Enter")
    await expect(sidebar(ana).get_by_role("listitem")).to_have_count(101)
    await expect(sidebar(ana).get_by_role("listitem").nth(60).get_by_role("link")).to_be_focused()


async def test_pins_come_first_and_the_archive_stands_apart(ana: Person, model: WireServer) -> None:
    model.script(reply("1"), reply("2"))
    for text in ("First", "Second"):
        await begin(ana, text)
        await answered(ana)
    await choose(ana, "First", "Pin")
    await expect(sidebar(ana).get_by_role("region", name="Pinned").get_by_role("listitem")).to_contain_text(["First"])
    await choose(ana, "Second", "Archive")
    await expect(ana.page.get_by_text("Session archived", exact=True)).to_be_visible()
    await expect(row(ana, "Second")).to_have_count(0)
    await ana.choose_in_account_menu("Archived sessions")
    await expect(row(ana, "Second")).to_have_count(1)
    await expect(sidebar(ana).get_by_role("button", name="All sessions")).to_be_focused()
    await choose(ana, "Second", "Restore from the archive")
    await expect(sidebar(ana)).to_contain_text("No archived sessions")
    await sidebar(ana).get_by_role("button", name="All sessions").click()
    await expect(row(ana, "Second")).to_have_count(1)
    await choose(ana, "First", "Unpin")
    await expect(sidebar(ana).get_by_role("region", name="Pinned")).to_have_count(0)


async def test_many_sessions_are_selected_and_deleted(ana: Person, model: WireServer) -> None:
    """UI-11: a click with Shift selects all sessions in between, and one Undo restores all that were deleted."""
    model.script(*[reply(f"{number}") for number in range(4)])
    for number in range(4):
        await begin(ana, f"Number {number}")
        await answered(ana)
    await choose(ana, "Number 3", "Select")
    await row(ana, "Number 1").get_by_role("checkbox").click(modifiers=["Shift"])
    await expect(sidebar(ana).get_by_role("status")).to_have_text("3 selected")
    await ana.page.evaluate("document.dispatchEvent(new Event('parley:list-changed'))")
    await row(ana, "Number 2").get_by_role("link").click()
    await expect(sidebar(ana).get_by_role("status")).to_have_text("2 selected")
    await sidebar(ana).get_by_role("button", name="Delete").click()
    await expect(ana.page.get_by_text("2 sessions deleted")).to_be_visible()
    await expect(row(ana, "Number 3")).to_have_count(0)
    assert {"Number 0", "Number 2"} <= set(await titles(ana))
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(row(ana, "Number 3")).to_have_count(1)
    await expect(row(ana, "Number 1")).to_have_count(1)


async def test_messages_of_others_are_unread_until_opened(ana: Person, model: WireServer, browser: Browser) -> None:
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
    bo.check_console()


async def test_list_gets_a_title_that_arrives_after_the_notice(ana: Person, model: WireServer) -> None:
    """LIVE-01: the list gets a title whose frame comes after the notice of the change, as their order is not fixed."""
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
    """A turn updates the row of the open session from frames.

    Otherwise a thousand users in a session would each fetch the list at every turn.
    """
    model.script(reply("First."))
    notices, lists = list[str](), list[str]()
    ana.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: notices.append(str(frame))))
    # The page loads its list once after it has connected.
    async with ana.page.expect_response(
        lambda response: "/session-list?" in response.url and "current=s_" in response.url
    ):
        await begin(ana, "Go on")
    working = row(ana, "Go on").get_by_text("Agent working")
    await expect(ana.answers.first).to_contain_text("First.")
    ana.page.on("request", lambda request: lists.append(request.url) if "/session-list?" in request.url else None)
    for number in range(1, 6):
        await expect(working).to_have_count(0)
        await expect(row(ana, "Go on").get_by_text("Unread")).to_have_count(0)
        heard, gate = len(notices), asyncio.Event()
        lists.clear()
        model.script(reply("More", gate=gate, rest=(" to come.",)))
        await ana.say("More")
        await expect(working).to_have_count(1)
        gate.set()
        await expect(ana.answers.nth(number)).to_contain_text("More to come.")
        await expect(working).to_have_count(0)
        async with asyncio.timeout(20):
            while not any('"own":true' in frame for frame in notices[heard:]):  # noqa: ASYNC110  # a list has no event
                await asyncio.sleep(0.05)
        if not lists:
            break
    # On a busy machine, the list may still be loaded for the new title, or because the page has not scrolled yet.
    assert lists == [], "each turn has loaded the list"
    ana.check_console()


async def test_turn_while_the_list_loads_does_not_load_it_again(ana: Person, model: WireServer) -> None:
    """A list that was requested before the turn and arrives later shows the turn without another request."""
    page, gate = ana.page, asyncio.Event()
    model.script(reply("First."))
    await begin(ana, "Go on")
    await expect(ana.answers).to_have_count(1)
    await ana.sees_state("idle")
    await page.clock.install()
    lists = await Delay.all_responses(page, "**/session-list?*")
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.clock.fast_forward(1_000)
    await lists.read()
    model.script(reply("More", gate=gate, rest=(" to come.",)))
    await ana.say("More")
    await expect(ana.answers).to_have_count(2)
    await lists.release()
    await expect(row(ana, "Go on").get_by_text("Agent working")).to_have_count(1)
    gate.set()
    await ana.sees_state("idle")
    await expect(row(ana, "Go on").get_by_text("Agent working")).to_have_count(0)
    await page.clock.fast_forward(1_000)
    await page.evaluate("1")  # after the timers
    assert len(lists.routes) == 1
    ana.check_console()


async def test_sidebar_is_folded_by_keyboard_and_stays_so(ana: Person) -> None:
    listed = sidebar(ana).get_by_role("listitem")
    await expect(listed).to_have_count(1)
    await ana.page.keyboard.press("Control+b")
    await expect(listed).to_have_count(0)
    await ana.page.reload()
    await expect(listed).to_have_count(0)
    await sidebar(ana).get_by_role("button", name="Session list").click()
    await expect(listed).to_have_count(1)
