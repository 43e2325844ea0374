"""Actions on single messages, by mouse, keyboard and touch, and the details shown with each message."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import pytest
from playwright.async_api import Browser, Locator, ViewportSize, WebSocketRoute, expect

from tests.browser.delays import Delay
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server, run_in
from tests.wire.server import WireServer

HISTORY = """
from datetime import datetime, timedelta
from django.utils import timezone
from chat.models import ChatMessage, Session, User
session, user, now = Session.objects.get(), User.objects.get(), timezone.now()
plain = {"session": session, "model": "one", "provider": "wire"}
old, late = now.replace(year=now.year - 2, month=12, day=31, hour=14, minute=30), now - timedelta(days=1)
rows = [
    {"role": "user", "sender": "Admin", "user": user, "text": "Long ago", "timestamp": old},
    {"role": "assistant", "text": "Quick", "timestamp": old, "duration_ms": 9_999},
    {"role": "assistant", "text": "Slow", "timestamp": late, "duration_ms": 35_000},
    {"type": "tool_group", "tool_name": "web_fetch", "arguments": {}, "timestamp": late, "duration_ms": 328},
    {"role": "assistant", "text": "After", "timestamp": late, "duration_ms": 83_000},
    {"type": "turn_done", "duration_seconds": 90.0, "timestamp": late},
    {"role": "assistant", "text": "Nameless", "model": "", "provider": "", "timestamp": now},
    {"type": "turn_done", "duration_seconds": 3.0, "status": "interrupted", "timestamp": now},
]
for number, row in enumerate(rows, 1):
    ChatMessage.objects.create(sequence=number, revision=number, **{**plain, **row})
Session.objects.update(revision=8)
"""


PRESS_TWICE = """(message, key) => {
  message.focus();
  for (const _time of [1, 2]) message.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""
BELOW_THE_HEADER = """toast =>
  toast.getBoundingClientRect().top - document.querySelector(".top").getBoundingClientRect().bottom"""
UNCOVERED = """each => {
  const { left, right, top, bottom } = each.getBoundingClientRect();
  return each.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
}"""


async def talk(person: Person, model: WireServer, *answers: str) -> None:
    """Ask a question for each answer. Wait after each until the agent is idle."""
    model.script(*(reply(answer) for answer in answers))
    for number, answer in enumerate(answers):
        await person.say(f"Question {number + 1}")
        await expect(person.answers.nth(number)).to_contain_text(re.findall(r"\w+", answer)[-1])  # it is rendered
        await person.sees_state("idle")


def menu(person: Person) -> Locator:
    return person.page.get_by_role("menu", name="Message actions")


async def expect_above(upper: Locator, lower: Locator, apart: int = 0) -> None:
    """Wait until one element ends at least `apart` pixels above the other, because the page may be scrolling."""
    places = "([one, two, apart]) => one.getBoundingClientRect().bottom + apart <= two.getBoundingClientRect().top"
    both = [await upper.element_handle(), await lower.element_handle(), apart]
    await upper.page.wait_for_function(places, arg=both)


async def bar_of(message: Locator) -> Locator:
    """Return the toolbar of a message under the pointer. That of the last message may be below it."""
    own = message.get_by_role("group", name="Message actions")
    below = message.page.locator("#log > .resting").filter(visible=True)
    is_last = await message.evaluate("one => one === [...document.querySelectorAll('#messages article')].at(-1)")
    return own.or_(below).first if is_last else own


async def choose(person: Person, message: Locator, item: str) -> None:
    await message.hover()
    bar = await bar_of(message)
    await bar.get_by_role("button", name="More actions").click()
    await menu(person).get_by_role("menuitem", name=item).click()


async def test_messages_show_author_time_and_duration(ana: Person, server: Server) -> None:
    """UI-02, UI-04, UI-05, UI-06: messages show times, durations and names, and are grouped by sender.

    Long and interrupted turns have a line.
    """
    await asyncio.to_thread(run_in, server, HISTORY)
    await ana.page.reload()
    await expect(ana.messages).to_have_count(6)
    meta = [text.strip() for text in await ana.page.locator(".meta").all_inner_texts()]
    forms = (
        r"\d{4}/12/31 \d\d:\d\d",
        r"\d{4}/12/31 \d\d:\d\d",
        r"✻ 35s · [\d/]+ \d\d:\d\d",
        r"328ms · [\d/]+ \d\d:\d\d",
        r"✻ 1m 23s · [\d/]+ \d\d:\d\d",
        r"\d\d:\d\d",
    )
    assert [bool(re.fullmatch(form, text)) for form, text in zip(forms, meta, strict=True)] == [True] * 6, meta
    await expect(ana.page.locator(".marker")).to_have_text(
        ["Worked for 1 minute 30 seconds", re.compile("Interrupted")]
    )
    named = ana.messages.locator(".who:visible")
    await expect(named).to_have_text(["Admin", "one", "assistant"])
    full = await ana.messages.locator("time").first.get_attribute("title")
    assert full is not None
    assert re.search(r"December 31, \d{4}", full)


async def test_duration_of_a_tool_is_below_its_card(ana: Person, server: Server) -> None:
    """UI-03: a tool's duration is below its card, whether the card is folded or open."""
    await asyncio.to_thread(run_in, server, HISTORY)
    await ana.page.reload()
    call = ana.page.locator("article.tool_group")
    card = call.locator(".tool")
    await expect(call.locator(".meta")).to_contain_text("328ms")
    for _state in ("folded", "open"):
        await expect(card).to_contain_text("web_fetch")
        await expect(card).not_to_contain_text(re.compile(r"\d\s*m?s\b"))
        await card.locator("summary").click()
    await expect(card.locator(".meta")).to_have_count(0)


async def test_days_are_separated_in_the_readers_zone(ana: Person, server: Server) -> None:
    """UI-02: a line with the day is above the first message of each day. At midnight, "Today" becomes "Yesterday"."""
    await asyncio.to_thread(run_in, server, HISTORY)
    await ana.page.reload()
    days = ana.page.locator("#messages > .day")
    await expect(days).to_have_text([re.compile(r"December 31, \d{4}"), "Yesterday", "Today"])
    assert await days.evaluate_all("all => all.map(one => one.nextElementSibling.innerText.includes('Slow'))") == [
        False,
        True,
        False,
    ]
    await ana.page.clock.install()
    await ana.page.reload()
    await expect(days.last).to_have_text("Today")
    await ana.page.clock.fast_forward("24:00:00")
    await expect(days.last).to_have_text("Yesterday")
    await expect(ana.page.locator(".meta time").last).to_have_text(re.compile(r"^\d+/\d+ \d\d:\d\d$"))


async def test_times_have_the_chosen_12_hour_format(ana: Person, model: WireServer) -> None:
    """UI-02: times have the 12-hour format if the user has chosen it."""
    await ana.page.evaluate("document.documentElement.dataset.clock = '12'")
    await talk(ana, model, "Fine")
    await expect(ana.page.locator(".meta time").first).to_have_text(re.compile(r"^\d{1,2}:\d\d\s[AP]M$"))


async def test_actions_of_messages_work_by_keyboard(ana: Person, model: WireServer) -> None:
    """UI-11: k and j move between messages, m opens the menu, its keys choose, and Escape restores the focus."""
    await talk(ana, model, "First", "Second")
    await ana.page.keyboard.press("Alt+ArrowUp")
    last = ana.answers.nth(1)
    await expect(last).to_be_focused()
    for key, message in (("k", ana.messages.nth(2)), ("ArrowUp", ana.answers.first), ("j", ana.messages.nth(2))):
        await ana.page.keyboard.press(key)
        await expect(message).to_be_focused()
    await ana.page.keyboard.press("m")
    items = menu(ana).get_by_role("menuitem")
    await expect(items.first).to_be_focused()
    await ana.page.keyboard.press("End")
    await expect(menu(ana).get_by_role("menuitem", name="Delete")).to_be_focused()
    await ana.page.keyboard.press("ArrowDown")
    await expect(items.first).to_be_focused()
    await ana.page.keyboard.type("fo")
    await expect(menu(ana).get_by_role("menuitem", name="Fork from here")).to_be_focused()
    await ana.page.keyboard.press("Escape")
    await expect(menu(ana)).to_have_count(0)
    await expect(ana.messages.nth(2)).to_be_focused()
    await ana.page.keyboard.press("Escape")
    await expect(ana.composer).to_be_focused()


async def test_last_message_has_its_actions_once(ana: Person, model: WireServer) -> None:
    """UI-11: the toolbar is below the last message when it is idle, and at it while it has the keyboard's focus."""
    await talk(ana, model, "First")
    bars = ana.page.get_by_role("group", name="Message actions")
    await expect(bars).to_have_count(1)
    await expect(ana.answers.first.get_by_role("group", name="Message actions")).to_have_count(0)
    await ana.page.keyboard.press("Alt+ArrowUp")
    await expect(ana.answers.first.get_by_role("group", name="Message actions")).to_be_visible()
    await expect(bars).to_have_count(1)
    await ana.page.keyboard.press("Tab")
    await expect(bars.get_by_role("button").first).to_be_focused()
    await expect(bars).to_have_count(1)
    await ana.page.keyboard.press("Shift+Escape")
    await expect(ana.composer).to_be_focused()
    await expect(ana.answers.first.get_by_role("group", name="Message actions")).to_have_count(0)
    await expect(bars).to_have_count(1)
    await ana.answers.first.click()
    await expect(ana.answers.first).to_be_focused()
    await expect(bars).to_have_count(1)

    gate = asyncio.Event()
    model.script(reply("So far", " and no further", gate=gate))
    await ana.say("Go on")
    await expect(ana.answers.last).to_contain_text("So far")
    await ana.answers.last.hover()
    await expect(ana.answers.last.get_by_role("group", name="Message actions")).to_be_visible()
    gate.set()
    await ana.sees_state("idle")
    await expect(bars).to_have_count(1)
    await expect(ana.answers.last.get_by_role("group", name="Message actions")).to_have_count(0)


async def test_open_menu_survives_updates_of_its_message(ana: Person, model: WireServer) -> None:
    """UI-11: updates of a message whose menu is open keep the state of the menu's button.

    Escape still returns the focus to the button.
    """
    gate = asyncio.Event()
    model.script(reply("So far", " and no further", gate=gate))
    await ana.say("Go on")
    answer = ana.answers.first
    await expect(answer).to_contain_text("So far")
    await answer.hover()
    button = answer.get_by_role("button", name="More actions")
    await button.click()
    await expect(button).to_have_attribute("aria-expanded", "true")
    gate.set()
    await expect(answer.get_by_role("button", name="Retry from here")).to_be_attached()
    await expect(button).to_have_attribute("aria-expanded", "true")
    await ana.page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    await expect(button).to_have_attribute("aria-expanded", "false")


async def test_toolbar_stays_at_the_message_under_the_pointer(ana: Person, model: WireServer) -> None:
    """UI-11: the toolbar is visible in the middle of a long message, follows the pointer after the menu was closed, and
    Details open beside it."""
    long = "\n\n".join(f"Paragraph {number}" for number in range(90))
    await talk(ana, model, long, "Short", "Last")
    page, (first, second) = ana.page, (ana.answers.nth(0), ana.answers.nth(1))
    await first.get_by_text("Paragraph 45", exact=True).scroll_into_view_if_needed()
    await first.get_by_text("Paragraph 45", exact=True).hover()
    await expect(first.get_by_role("group", name="Message actions")).to_be_in_viewport(ratio=1)

    await second.hover()
    await second.get_by_role("button", name="More actions").click()
    await page.keyboard.press("Escape")
    await ana.messages.nth(2).hover()
    await expect(ana.messages.nth(2).get_by_role("group", name="Message actions")).to_be_visible()
    await expect(second.get_by_role("group", name="Message actions")).to_have_count(0)

    await choose(ana, second, "Details")
    details = page.get_by_role("dialog", name="Details")
    await expect(details).to_contain_text(str(await second.get_attribute("id")))
    await expect(second.get_by_role("group", name="Message actions")).to_be_visible()
    button = second.get_by_role("button", name="More actions")
    places = "([box, button]) => [box, button].map(each => each.getBoundingClientRect().top)"
    top, near = await page.evaluate(places, [await details.element_handle(), await button.element_handle()])
    height = await details.evaluate("box => box.offsetHeight")
    assert -height - 40 < top - near < 60


async def test_copy_is_the_exact_source(ana: Person, model: WireServer) -> None:
    """MSG-12, UI-11: the copy is the Markdown source, however the page renders it; the message's link leads to it."""
    await ana.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await talk(ana, model, "**Bold**\n\n- [x] done\n")
    answer = ana.answers.first
    await answer.hover()
    await (await bar_of(answer)).get_by_role("button", name="Copy as Markdown").click()
    await expect(ana.page.get_by_text("Message copied")).to_be_visible()
    assert await ana.page.evaluate("navigator.clipboard.readText()") == "**Bold**\n\n- [x] done\n"
    await choose(ana, answer, "Copy link")
    await expect(ana.page.get_by_text("Link copied").or_(ana.page.get_by_text("Link copied"))).to_be_visible()
    link = await ana.page.evaluate("navigator.clipboard.readText()")
    assert link == f"{ana.page.url}#{await answer.get_attribute('id')}"


SAFARI = """
navigator.clipboard.writeText = () => Promise.reject(new DOMException("", "NotAllowedError"));
document.execCommand = () => false;
const write = navigator.clipboard.write.bind(navigator.clipboard);
navigator.clipboard.write = (items) => event ? write(items) : Promise.reject(new DOMException("", "NotAllowedError"));
"""


async def test_copy_begins_with_the_press(ana: Person, model: WireServer) -> None:
    """UI-11: Safari refuses to copy after the text has been fetched, but accepts a promise for the text."""
    await ana.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ana.page.add_init_script(SAFARI)
    await ana.page.reload()
    await talk(ana, model, "**Bold**")
    answer = ana.answers.first
    await answer.hover()
    await (await bar_of(answer)).get_by_role("button", name="Copy as Markdown").click()
    await expect(ana.page.get_by_text("Message copied")).to_be_visible()
    assert await ana.page.evaluate("navigator.clipboard.readText()") == "**Bold**"
    await ana.page.route("**/source?*", lambda route: route.abort(), times=1)
    await (await bar_of(answer)).get_by_role("button", name="Copy as Markdown").click()
    await expect(ana.page.get_by_text("Couldn’t load this.")).to_be_visible()
    ana.reports.clear()


async def test_source_and_details_move_no_other_message(ana: Person, model: WireServer) -> None:
    """MSG-06, UI-11: the source replaces the message in place. Details with model, tokens and id do not move it."""
    await talk(ana, model, "**Bold**")
    answer = ana.answers.first
    await answer.focus()
    await ana.page.keyboard.press("s")
    await expect(answer.get_by_role("group", name="View Markdown")).to_have_text("**Bold**")
    await expect(answer.locator("[data-body]")).to_be_hidden()
    await ana.page.keyboard.press("s")
    await expect(answer.locator("strong")).to_be_visible()
    before = await answer.bounding_box()
    await ana.page.keyboard.press("d")
    details = ana.page.get_by_role("dialog", name="Details")
    await expect(details).to_contain_text("wire-large")
    await expect(details).to_contain_text(str(await answer.get_attribute("id")))
    await expect(details).to_contain_text("Input tokens")
    assert await answer.bounding_box() == before
    await ana.page.keyboard.press("Escape")
    await expect(answer).to_be_focused()


@pytest.mark.both_browsers
async def test_edited_question_is_answered_again(ana: Person, model: WireServer) -> None:
    """MSG-11, RUN-12, ADM-02: "Save & regenerate" gives the model the new text and replaces the answer."""
    await talk(ana, model, "Old answer")
    question = ana.messages.first
    await question.focus()
    await ana.page.keyboard.press("e")
    field = ana.page.get_by_role("textbox", name="Edit message")
    await expect(field).to_have_value("Question 1")
    await expect(field).to_be_focused()
    await field.fill("Better question")
    model.script(reply("New answer"))
    await expect(ana.page.get_by_text("Ctrl+Enter to regenerate")).to_be_visible()
    await field.press("Control+Enter")  # the highlighted button
    await expect(ana.answers.first).to_contain_text("New answer")
    await expect(ana.answers).to_have_count(1)
    await expect(question).to_contain_text("Better question")
    await expect(question.locator(".meta")).to_contain_text("edited")
    assert model.requests[-1].body["messages"][-1]["content"] == "Better question"


@pytest.mark.both_browsers
async def test_text_of_an_edit_is_never_lost(ana: Person, model: WireServer) -> None:
    """MSG-11: a cancelled edit can be continued, an unsaved one survives a reload, and Ctrl+Enter saves."""
    await talk(ana, model, "An answer")
    answer = ana.answers.first
    field = ana.page.get_by_role("textbox", name="Edit message")
    await answer.focus()
    await ana.page.keyboard.press("e")
    await field.fill("Half a change")
    await ana.page.keyboard.press("Escape")
    await expect(field).to_have_count(0)
    await expect(answer).to_be_focused()
    await ana.page.get_by_role("button", name="Keep editing").click()
    await expect(field).to_have_value("Half a change")
    await field.fill("A whole change")
    await ana.page.reload()
    await expect(field).to_have_value("A whole change")
    await expect(ana.composer).to_be_focused()
    await field.press("Control+Enter")
    await expect(answer.locator("[data-body]")).to_have_text("A whole change")


async def test_edit_of_a_deleted_message_moves_to_the_composer(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """MSG-11: if another user deletes a message that is being edited, its text goes to the composer, above a draft."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    await ana.composer.fill("A draft")
    await ana.answers.first.focus()
    await ana.page.keyboard.press("e")
    await ana.page.get_by_role("textbox", name="Edit message").fill("My words")
    await bo.answers.first.focus()
    await bo.page.keyboard.press("Delete")
    await expect(ana.answers).to_have_count(0)
    await expect(ana.composer).to_have_value("My words\n\nA draft")
    await expect(ana.composer).to_be_focused()
    await ana.page.keyboard.type(" go on")
    await expect(ana.composer).to_have_value("My words go on\n\nA draft")
    words = "Bo deleted the message you were editing. Your text is in the composer."
    await expect(ana.page.locator("#notices")).to_contain_text(words)
    bo.check_console()


async def test_focus_of_an_unchanged_edit_moves_to_the_composer(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """MSG-11: if another user deletes a message whose edit has no changes yet, the focus moves to the composer.

    Otherwise the next keys would act on another message.
    """
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    await ana.answers.first.focus()
    await ana.page.keyboard.press("e")
    await expect(ana.page.get_by_role("textbox", name="Edit message")).to_be_focused()
    await bo.answers.first.focus()
    await bo.page.keyboard.press("Delete")
    await expect(ana.answers).to_have_count(0)
    await ana.page.keyboard.type("edit")
    await expect(ana.composer).to_have_value("edit")
    bo.check_console()


@pytest.mark.both_browsers
async def test_message_is_excluded_deleted_and_restored(ana: Person, model: WireServer) -> None:
    """MSG-09, MSG-11, UI-11: an excluded message is marked and hidden from the model; a deletion is undone."""
    await talk(ana, model, "First", "Second")
    await choose(ana, ana.answers.first, "Exclude from context")
    await expect(ana.answers.first.locator(".meta")).to_contain_text("hidden from the model")
    await choose(ana, ana.answers.nth(1), "Delete")
    await expect(ana.answers).to_have_count(1)
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(ana.answers.nth(1)).to_contain_text("Second")
    model.script(reply("Third"))
    await ana.say("Question 3")
    await expect(ana.answers.nth(2)).to_contain_text("Third")
    given = [message["content"] for message in model.requests[-1].body["messages"] if message["role"] == "assistant"]
    assert given == ["Second"]


@pytest.mark.both_browsers
async def test_fork_is_a_new_session(ana: Person, model: WireServer) -> None:
    """RUN-13: the fork has the messages up to this one; the original is unchanged."""
    await talk(ana, model, "First", "Second")
    original = ana.page.url
    await choose(ana, ana.answers.first, "Fork from here")
    await ana.page.wait_for_url(lambda url: "/sessions/" in url and url != original)
    await expect(ana.answers).to_have_text([re.compile("First")])
    await ana.page.get_by_text("Forked from").get_by_role("link").click()
    await ana.page.wait_for_url(original)
    await expect(ana.answers).to_have_count(2)


async def test_fork_that_is_requested_again_is_made_once(ana: Person, model: WireServer) -> None:
    """RUN-13, MSG-02: the user tries again after a lost ack, or presses twice. Later, they can fork again."""
    await talk(ana, model, "First")
    original, lost, closing = ana.page.url, list[str](), list[asyncio.Task[None]]()

    def connect(route: WebSocketRoute) -> None:
        def pass_on(frame: str | bytes) -> None:
            if '"url"' in str(frame) and not lost:
                lost.append(str(frame))
                closing.append(asyncio.create_task(route.close()))
            else:
                route.send(frame)

        route.connect_to_server().on_message(pass_on)

    await ana.page.route_web_socket("**/ws/**", connect)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.say("/fork")
    await expect(ana.page.get_by_role("alert")).to_contain_text("The page shows whether it worked.")
    assert lost
    await ana.sees_connection("Connected")
    forks = ana.page.locator("#session-list .session-title").filter(has_text="(fork)")
    for number in (1, 2):
        await ana.answers.first.evaluate(PRESS_TWICE, "f")
        await ana.page.wait_for_url(lambda url: "/sessions/" in url and url != original)
        await expect(forks).to_have_count(number)
        await ana.page.goto(original)
        await ana.sees_connection("Connected")


async def test_fork_that_ends_with_a_question_offers_to_answer_it(ana: Person, model: WireServer) -> None:
    """RUN-13: the last message of the fork has no answer yet; a button below it lets the agent answer."""
    await talk(ana, model, "First")
    original = ana.page.url
    await choose(ana, ana.messages.first, "Fork from here")
    await ana.page.wait_for_url(lambda url: "/sessions/" in url and url != original)
    model.script(reply("Another first"))
    await ana.page.get_by_role("button", name="Answer", exact=True).click()
    await expect(ana.answers).to_have_text([re.compile("Another first")])
    await expect(ana.messages).to_have_count(2)
    await expect(ana.page.get_by_role("button", name="Answer", exact=True)).to_have_count(0)
    ana.check_console()


async def test_line_of_a_day_leads_to_other_days(ana: Person, server: Server) -> None:
    """UI-02: the line of a day opens a box, by key and mouse.

    From there the user goes to the first message since a date, or to the very first message.
    """
    await asyncio.to_thread(run_in, server, HISTORY)
    page = ana.page
    await page.reload()
    await page.locator(".day button").last.press("Enter")
    box = page.get_by_role("dialog", name="Jump to date")
    await expect(box.get_by_label("Go to date")).to_be_focused()
    assert await violations(page) == []
    year = datetime.now(UTC).year - 1
    await box.get_by_label("Go to date").fill(f"{year}-03-01")
    await box.get_by_role("button", name="Go", exact=True).click()
    await expect(box).to_have_count(0)
    await expect(ana.answers.filter(has_text="Slow")).to_be_focused()
    await page.locator(".day button").last.click()
    await box.get_by_role("button", name="First message").click()
    await expect(ana.messages.first).to_be_focused()
    ana.check_console()


async def test_toolbar_and_toast_hide_no_content(ana: Person, model: WireServer, server: Server) -> None:
    """UI-11: the toolbar does not hide a tool's result, nor the Undo toast a phone's input field.

    At 400% zoom the page keeps room for messages.
    """
    run_in(server, HISTORY)
    page = ana.page
    await page.reload()
    call = page.locator("article.tool_group")
    await call.locator("summary").click()
    await call.hover()
    bar, state = call.get_by_role("group", name="Message actions"), call.locator(".tool-state")
    await expect(bar).to_be_visible()
    await expect_above(bar, state)

    await page.set_viewport_size({"width": 375, "height": 740})
    await ana.messages.first.focus()
    await page.keyboard.press("Delete")
    toast = page.locator("#toasts .toast")
    await expect(toast.get_by_role("button", name="Undo")).to_be_visible()
    await toast.evaluate("(it) => Promise.all(it.getAnimations().map(({ finished }) => finished))")
    await expect_above(toast, page.locator("#composer"))
    await expect_above(page.locator(".top"), toast)

    await page.set_viewport_size({"width": 320, "height": 256})
    await expect_above(page.locator(".top"), page.locator(".dock"), apart=140)


async def test_toast_does_not_cover_buttons_of_an_edit(ana: Person, model: WireServer) -> None:
    """UI-11: a toast does not cover the buttons of an edit on a long page."""
    await talk(ana, model, "\n\n".join(["First"] * 40))
    model.script(reply("\n\n".join(["Second"] * 40)))
    await ana.answers.last.press("r")
    toast = ana.page.locator("#toasts .toast")
    await expect(toast).to_contain_text("The previous answer was replaced")
    await toast.hover()  # it stays
    await expect(ana.answers.first).to_contain_text("Second")
    await ana.sees_state("idle")
    for width, height in ((1200, 800), (390, 844)):
        await ana.page.set_viewport_size({"width": width, "height": height})
        assert await toast.evaluate(BELOW_THE_HEADER) < 16, width
        await ana.answers.first.press("e")
        await expect(ana.page.get_by_role("textbox", name="Edit message")).to_be_focused()
        for name in ("Save", "Cancel"):
            button = ana.page.get_by_role("button", name=name, exact=True)
            await button.evaluate("button => button.scrollIntoView({ block: 'center' })")
            assert await button.evaluate(UNCOVERED), (width, name)
        await ana.page.keyboard.press("Escape")


async def test_long_press_opens_a_sheet(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-11: a long press opens the menu as a sheet.

    Lifting the finger chooses nothing, and a tap outside only closes the sheet.
    """
    await talk(ana, model, "An answer")
    state = await ana.page.context.storage_state()
    size: ViewportSize = {"width": 375, "height": 740}
    context = await browser.new_context(
        storage_state=state, viewport=size, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    phone = Person(await context.new_page())
    await phone.page.goto(ana.page.url)
    await phone.sees_connection("Connected")
    box = await phone.answers.first.locator(".bubble").bounding_box()
    assert box is not None
    hand = await context.new_cdp_session(phone.page)
    point = {"x": box["x"] + 20, "y": box["y"] + 15}
    await hand.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    await expect(menu(phone)).to_be_visible()
    await hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    sheet = await menu(phone).bounding_box()
    assert sheet is not None
    assert (sheet["x"], sheet["width"], round(sheet["y"] + sheet["height"])) == (0, 375, 740)
    await phone.page.touchscreen.tap(180, 100)
    await expect(menu(phone)).to_have_count(0)
    await expect(phone.page.get_by_role("textbox", name="Edit message")).to_have_count(0)
    phone.check_console()


async def test_answers_are_announced_once_and_shortened(ana: Person, model: WireServer) -> None:
    """Screen readers announce that the agent is thinking, and then the finished answer.

    The answer begins with the author's name and is shortened.
    """
    await ana.page.evaluate("""() => {
        window.heard = [];
        const announcer = document.getElementById("announcer");
        new MutationObserver(() => heard.push(announcer.textContent)).observe(announcer, {childList: true});
    }""")
    gate = asyncio.Event()
    model.script(reply("One sentence. " * 60, gate=gate))
    await ana.say("Question")
    await ana.page.wait_for_function("() => heard.some(text => text.includes('thinking'))")
    gate.set()
    await ana.page.wait_for_function("() => heard.some(text => text.includes('sentence'))")
    await expect(ana.answers.first).to_have_attribute("data-status", "complete")
    heard = await ana.page.evaluate("heard")
    assert [text for text in heard if "thinking" in text] == ["assistant is thinking"]
    read = [text for text in heard if "sentence" in text]
    assert len(read) == 1
    assert read[0].startswith("wire-large: One sentence.")
    assert len(read[0]) < 330


async def test_text_of_a_user_is_formatted_and_not_changed(ana: Person, model: WireServer) -> None:
    """MSG-12: in a user's message, addresses are links, code is marked, and markup is text. The text is unchanged."""
    model.script(reply("Ok"))
    text = "See https://example.org/a. Run `ls`:\n```sh\nls -l\n```\n<img src=x onerror=alert(1)>"
    await ana.say(text)
    plain = ana.messages.first.locator(".plain")
    await expect(plain.get_by_role("link")).to_have_attribute("href", "https://example.org/a")
    await expect(plain.locator("code")).to_have_count(2)
    assert await plain.text_content() == text


async def test_edit_that_opens_late_leaves_the_focus_in_the_composer(ana: Person, model: WireServer) -> None:
    """UI-09, UI-11: a user presses Edit and types in the composer until the form opens. The text stays together."""
    await talk(ana, model, "An answer")
    late = await Delay.next_response(ana.page, "**/source?id=*")
    form = ana.page.get_by_role("textbox", name="Edit message")
    await ana.messages.first.focus()
    await ana.page.keyboard.press("e")
    await late.read()
    await ana.composer.click()
    await ana.page.keyboard.type("Please ")
    await late.release()
    await expect(form).to_be_visible()
    await ana.page.keyboard.type("wait")
    await expect(ana.composer).to_have_value("Please wait")
    await expect(form).to_have_value("Question 1")


async def test_edit_that_is_requested_twice_has_the_focus(ana: Person, model: WireServer) -> None:
    """UI-11: a user who presses Edit again while the text loads can type in the form when it opens."""
    await talk(ana, model, "An answer")
    late = await Delay.all_responses(ana.page, "**/source?id=*")
    form = ana.page.get_by_role("textbox", name="Edit message")
    await ana.messages.first.focus()
    await ana.page.keyboard.press("e")
    await late.read()
    async with ana.page.expect_request("**/source?id=*"):
        await ana.page.keyboard.press("e")
    await late.release()
    await expect(form).to_be_focused()
