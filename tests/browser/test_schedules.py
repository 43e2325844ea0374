"""UI-24: a user makes a schedule, runs it, turns it off, deletes it and restores it. A viewer sees it."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from urllib.parse import urljoin

from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.browser.console import FAILED
from tests.browser.delays import lose_next_response
from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.wire.server import WireServer

IN_A_LINE = """toast => {
  const [first, ...rest] = [...toast.children].map(each => each.getBoundingClientRect());
  return rest.every(each => each.top < first.bottom && each.bottom > first.top);
}"""


async def dialog_in_another_tab(page: Page, command: str) -> Locator:
    """Open the dialog of schedules in a second tab of the session, with a command in the composer."""
    other = await page.context.new_page()
    await other.goto(page.url)
    await other.get_by_role("textbox", name="Message", exact=True).fill(command)
    await other.keyboard.press("Enter")
    return other.get_by_role("dialog", name="Schedules")


async def test_schedule_from_its_first_form_to_undo(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-24: a user creates a schedule, runs it, turns it off, deletes it and restores it.

    Each message links to its schedule, and errors of the form keep the input.
    """
    page = ana.page
    bo = await invited(ana, browser, "Bo")
    model.script(reply("All quiet."))
    await ana.say("/schedule Summarize the reports.")
    dialog = page.get_by_role("dialog", name="Schedules")
    form = dialog.locator("#schedule-form-new")
    await expect(form.get_by_label("Message")).to_have_value("Summarize the reports.")
    await form.get_by_label("Repeat").select_option("Every week")
    await form.get_by_label("Time", exact=True).fill("07:15")
    fields = form.locator(".schedule-times :is(input, select):visible")
    assert len(set(await fields.evaluate_all("all => all.map(each => each.offsetHeight)"))) == 1
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await ana.say("/schedule")
    await expect(form.get_by_label("Message")).to_have_value("Summarize the reports.")
    await expect(form.get_by_label("Time", exact=True)).to_have_value("07:15")
    await form.get_by_role("button", name="Add schedule").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Choose when the schedule runs.")
    await expect(form.get_by_label("Time", exact=True)).to_have_value("07:15")
    assert ana.reports == [FAILED.format(422, HTTPStatus.UNPROCESSABLE_ENTITY.phrase)]
    ana.reports.clear()
    await form.get_by_label("Tuesday").check()
    await form.get_by_label("Time zone").fill("Europe/Berlin")
    await form.get_by_role("button", name="Add schedule").click()
    await expect(dialog).to_contain_text("Every Tuesday at 07:15 · Europe/Berlin")
    await expect(page.locator(".toast")).to_contain_text("Schedule added.")
    assert await page.locator(".toast").evaluate(IN_A_LINE)
    await expect(dialog.get_by_text("Next run:")).to_have_text(re.compile(r"\S \(in "))

    await dialog.get_by_role("button", name="Run now").click()
    await expect(dialog.get_by_text("Run started.")).to_be_visible()
    await dialog.get_by_role("button", name="Close").click()
    await expect(ana.answers).to_contain_text(["All quiet."])
    await ana.sees_state("idle")
    await expect(ana.messages.first).to_contain_text("Scheduled · Every Tuesday at 07:15")

    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Schedule…").click()
    await expect(dialog.get_by_text("Completed")).to_be_visible()
    await dialog.get_by_role("switch").uncheck()
    await expect(dialog.get_by_text("Off", exact=True)).to_be_visible()
    await expect(dialog.get_by_role("switch")).to_be_focused()
    await dialog.get_by_role("button", name="Edit").click()
    edit = dialog.locator(".schedule-list form.schedule-form")
    await expect(edit.get_by_label("Tuesday")).to_be_checked()
    await edit.get_by_label("Repeat").select_option("Cron expression")
    cron = edit.get_by_label("Minute, hour, day, month, weekday")
    await cron.fill("0 24 1 1 *")
    await edit.get_by_role("button", name="Save").click()
    await expect(cron).to_be_focused()
    await expect(cron).to_have_accessible_description("The hour isn’t valid. Use 0–23, such as 9 or 9-17.")
    ana.reports.clear()
    await cron.fill("0 6 1 1 *")
    await edit.get_by_role("button", name="Save").click()
    await expect(dialog).to_contain_text("By cron expression 0 6 1 1 *")

    await bo.say("/schedule")
    theirs = bo.page.get_by_role("dialog", name="Schedules")
    await expect(theirs).to_contain_text("Summarize the reports.")
    await expect(theirs.get_by_role("button", name="Run now")).to_have_count(0)

    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog).to_contain_text("No schedules yet.")
    await dialog.get_by_role("button", name="Undo").click()
    await expect(dialog).to_contain_text("By cron expression 0 6 1 1 *")
    await dialog.locator(".schedule-list a").click()
    await expect(dialog).to_have_count(0)
    await expect(ana.messages.first).to_be_in_viewport()
    ana.check_console()
    bo.check_console()


async def test_schedule_changed_elsewhere_is_shown_before_it_is_replaced(ana: Person, model: WireServer) -> None:
    """UI-24: if another tab has saved a schedule, the form keeps its draft.

    Only a second click replaces the other change. A pause by staff is shown.
    """
    page = ana.page
    await ana.say("/schedule Summarize the reports.")
    dialog = page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_role("button", name="Add schedule").click()
    await dialog.get_by_role("button", name="Edit").click()
    form = dialog.locator(".schedule-list form.schedule-form")
    await form.get_by_label("Message").fill("My report.")

    elsewhere = await dialog_in_another_tab(page, "/schedule")
    await elsewhere.get_by_role("button", name="Edit").click()
    await elsewhere.locator(".schedule-list").get_by_label("Message").fill("Another report.")
    await elsewhere.get_by_role("button", name="Save").click()
    await expect(elsewhere.locator(".schedule-text")).to_have_text("Another report.")

    await page.keyboard.press("Escape")
    await ana.say("/schedule")  # with the draft from before
    await expect(form.get_by_label("Message")).to_have_value("My report.")
    await form.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Its new values are above.")
    await expect(dialog.locator(".schedule-text")).to_have_text("Another report.")
    await expect(form.get_by_label("Message")).to_have_value("My report.")
    assert ana.reports == [FAILED.format(409, "Conflict")]
    ana.reports.clear()
    await form.get_by_role("button", name="Save").click()
    await expect(dialog.locator(".schedule-text")).to_have_text("My report.")

    other = elsewhere.page
    await other.goto(urljoin(page.url, "/admin/chat/schedule/"))
    await other.locator("#result_list tbody input").check()
    await other.locator("select[name=action]").select_option("Pause…")
    await other.get_by_role("button", name="Apply").click()
    await other.get_by_role("button", name="Pause", exact=True).click()
    await expect(other.locator(".messagelist")).to_contain_text("Paused 1 schedule.")
    await page.keyboard.press("Escape")
    await ana.say("/schedule")
    await expect(dialog).to_contain_text("Paused by an administrator.")
    ana.check_console()


async def test_form_keeps_its_input_while_a_switch_is_sent(ana: Person) -> None:
    """UI-24: a form keeps its input while a switch is sent. A switch that is refused shows its old state again."""
    page = ana.page
    await ana.say("/schedule Summarize the reports.")
    dialog = page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_role("button", name="Add schedule").click()
    await dialog.get_by_role("button", name="New schedule").click()
    form = dialog.locator("#schedule-form-new")
    await form.get_by_label("Message").fill("Half a mess")
    switch = dialog.get_by_role("switch")
    await switch.uncheck()
    await expect(dialog.get_by_text("Off", exact=True)).to_be_visible()
    await expect(switch).to_be_focused()
    await expect(form.get_by_label("Message")).to_have_value("Half a mess")
    await page.route("**/schedules", lambda route: route.abort())
    await switch.click()
    await expect(dialog.get_by_text("Something went wrong.")).to_be_visible()
    await expect(switch).not_to_be_checked()
    assert ana.reports == ["Failed to load resource: net::ERR_FAILED"]
    ana.reports.clear()


async def test_schedule_is_added_once_if_its_response_is_lost(ana: Person) -> None:
    """MSG-02: the user presses the button again, and the list shows one schedule."""
    await ana.say("/schedule Send the weekly report")
    dialog = ana.page.get_by_role("dialog", name="Schedules")
    add = dialog.get_by_role("button", name="Add schedule")
    await lose_next_response(ana.page, "**/schedules")
    await add.click()
    await expect(ana.page.locator(".toast")).to_contain_text("Check your connection and try again.")
    await add.click()
    await expect(ana.page.get_by_text("Schedule added.")).to_be_visible()
    await expect(dialog.locator(".schedule-list > li")).to_have_count(1)
    assert ana.reports.pop() == "Failed to load resource: net::ERR_FAILED"


async def test_undo_waits_for_a_pending_request(ana: Person) -> None:
    """UI-24: Undo restores a schedule also if another request is pending when it is pressed."""
    page, responds = ana.page, asyncio.Event()
    await ana.say("/schedule First report.")
    dialog = page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_role("button", name="Add schedule").click()
    await dialog.get_by_role("button", name="New schedule").click()
    await dialog.locator("#schedule-form-new").get_by_label("Message").fill("Second report.")
    await dialog.get_by_role("button", name="Add schedule").click()
    await expect(dialog.locator(".schedule-text")).to_have_text(["First report.", "Second report."])
    await dialog.get_by_role("button", name="Delete").first.click()
    await expect(dialog.locator(".schedule-text")).to_have_text(["Second report."])

    async def wait(route: Route) -> None:
        await responds.wait()
        await route.continue_()

    await page.route("**/schedules", wait, times=1)
    await dialog.get_by_role("switch").uncheck()
    await dialog.get_by_role("button", name="Undo").click()
    responds.set()
    await expect(dialog.locator(".schedule-text")).to_have_text(["First report.", "Second report."])
    await expect(dialog.get_by_text("Off", exact=True)).to_have_count(1)
    ana.check_console()


async def test_open_dialog_shows_changes_of_other_tabs(ana: Person, model: WireServer) -> None:
    """UI-24: an open dialog shows schedules that another tab adds, runs and deletes. Its new form keeps the input."""
    page = ana.page
    await ana.say("/schedule")
    dialog = page.get_by_role("dialog", name="Schedules")
    field = dialog.locator("#schedule-form-new").get_by_label("Message")
    await field.fill("Half a mess")

    elsewhere = await dialog_in_another_tab(page, "/schedule Another report.")
    await elsewhere.get_by_role("button", name="Add schedule").click()
    await expect(dialog.locator(".schedule-text")).to_have_text(["Another report."])
    await expect(field).to_have_value("Half a mess")
    await expect(field).to_be_focused()

    model.script(reply("All quiet."))
    await elsewhere.get_by_role("button", name="Run now").click()
    for each in (dialog, elsewhere):
        await expect(each.get_by_text("Last run:")).to_contain_text("Completed")
    await elsewhere.get_by_role("button", name="Delete").click()
    await expect(dialog).to_contain_text("No schedules yet.")
    await expect(field).to_have_value("Half a mess")
    ana.check_console()


async def test_switch_shows_its_state_with_forced_colors(ana: Person) -> None:
    """UI-11: browsers replace all backgrounds then, except system colors."""
    page = ana.page
    await page.emulate_media(forced_colors="active")
    await ana.say("/schedule Report.")
    dialog = page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_role("button", name="Add schedule").click()
    switch = dialog.get_by_role("switch")
    colors = "input => [getComputedStyle(input), getComputedStyle(input, '::before')].map(each => each.backgroundColor)"
    track, knob = await switch.evaluate(colors)
    await switch.uncheck()
    await expect(dialog.get_by_text("Off", exact=True)).to_be_visible()
    track_off, knob_off = await switch.evaluate(colors)
    assert len({track, knob}) == len({track_off, knob_off}) == len({track, track_off}) == 2


async def test_queued_message_of_a_schedule_is_beside_its_sender(ana: Person, model: WireServer) -> None:
    """UI-24: a run that waits for the present turn is queued, with the sign of a schedule between sender and text."""
    gate = asyncio.Event()
    model.script(reply("Busy", gate=gate), reply("All quiet."))
    await ana.say("Begin")
    await expect(ana.answers.first).to_contain_text("Busy")
    await ana.say("/schedule Report")
    dialog = ana.page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_role("button", name="Add schedule").click()
    await dialog.get_by_role("button", name="Run now").click()
    await ana.page.keyboard.press("Escape")
    queued = ana.page.locator(".queued:has(.scheduled)")
    sign, text = queued.locator(".scheduled"), queued.locator(".queued-text")
    await expect(text).to_have_text("Report")
    for width in (1280, 390):
        await ana.page.set_viewport_size({"width": width, "height": 800})
        boxes = [await each.bounding_box() for each in (queued.locator(".queued-by"), sign, text)]
        assert all(boxes)
        [by, clock, words] = [box for box in boxes if box]
        is_beside = by["x"] + by["width"] < clock["x"] < words["x"] < clock["x"] + 40
        assert (is_beside, words["x"] == by["x"]) == (width == 1280, width == 390)
    gate.set()
    await ana.sees_state("idle")
