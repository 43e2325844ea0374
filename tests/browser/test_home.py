"""The home page in a real browser: files, commands and the choice of agent and model before there is a session."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Locator, Route, expect

from tests.browser.delays import lose_next_response
from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import reply
from tests.browser.test_session_list import home, row
from tests.browser.test_uploads import DRAG, NOTES, PASTE, PROGRAM, REFUSED, TABLE, attach, chips
from tests.wire.server import WireServer


def field(person: Person) -> Locator:
    return person.page.get_by_role("textbox", name="First message")


async def test_files_are_sent_with_the_first_message(ana: Person, model: WireServer) -> None:
    """UI-09, LIVE-04: files are added by button, paste and drop, and survive a reload. A model chosen later answers."""
    model.script(reply("Seven wells"))
    await home(ana)
    await field(ana).fill("What is in it?")
    await attach(ana, NOTES, TABLE)
    await expect(chips(ana).locator(".chip-name")).to_have_text(["notes <1>.txt", "table.csv"])
    await ana.page.evaluate(DRAG.replace('"log"', '"main"'), ["dragenter", "x"])
    await ana.page.evaluate(DRAG.replace('"log"', '"main"'), ["drop", "Some words"])
    await field(ana).evaluate(PASTE, {"text": "Line\n" * 2100})
    await expect(chips(ana).and_(ana.page.locator("[data-state=ready]"))).to_have_count(4)
    await ana.page.reload()
    await expect(chips(ana)).to_have_count(4)
    await expect(field(ana)).to_have_value("What is in it?")
    await ana.page.get_by_role("button", name="Remove Pasted text.txt").click()
    await ana.page.get_by_role("button", name="Model:").click()
    await ana.page.get_by_role("option", name="wire-small").click()
    await field(ana).press("Enter")
    await expect(ana.answers.first).to_contain_text("Seven wells")
    sent = model.requests[0].body
    assert sent["model"] == "wire-small"
    assert all(words in str(sent["messages"][-1]) for words in ("Seven wells, one bridge.", "a,b", "Some words"))
    await expect(row(ana, "What is in it?")).to_have_count(1)
    await home(ana)
    await expect(field(ana)).to_have_value("")
    await expect(chips(ana)).to_have_count(0)


async def test_removed_file_leaves_no_session(ana: Person) -> None:
    """The list does not show a session whose first message is not sent yet.

    When its only file is removed, the session is deleted.
    """
    await home(ana)
    rows = ana.page.locator("#session-list .session-row:visible")
    before = await rows.count()
    await attach(ana, NOTES)
    await expect(chips(ana)).to_have_attribute("data-state", "ready")
    await ana.page.evaluate("document.dispatchEvent(new CustomEvent('parley:list-changed', { detail: { now: true } }))")
    await expect(ana.page.locator("#session-list .session-row")).to_have_count(before + 1)
    await expect(rows).to_have_count(before)
    async with ana.page.expect_response("**/remove") as removed:
        await ana.page.get_by_role("button", name=re.compile("^Remove ")).click()
    assert (await removed.value).status == 204
    await ana.page.reload()
    await expect(ana.page.locator("#session-list .session-row")).to_have_count(before)


async def test_message_is_sent_after_its_file_was_removed(ana: Person, model: WireServer) -> None:
    """MSG-02: the session of the removed file is erased, and the message begins another one."""
    await home(ana)
    await attach(ana, NOTES)
    await expect(chips(ana)).to_have_attribute("data-state", "ready")
    async with ana.page.expect_response("**/remove") as removed:
        await ana.page.get_by_role("button", name=re.compile("^Remove ")).click()
    assert (await removed.value).status == 204
    model.script(reply("Fine."))
    field = ana.page.get_by_role("textbox", name="First message")
    await field.fill("Without a file")
    await field.press("Enter")
    await expect(ana.answers).to_contain_text(["Fine."])


async def test_refused_file_creates_no_session(ana: Person, model: WireServer) -> None:
    """UI-09: a refused file shows the reason, and the message waits. No session is left over.

    Without the file, the message is sent.
    """
    model.script(reply("Fine"))
    await home(ana)
    sessions = await ana.page.locator(".session-title").count()
    await field(ana).fill("Run it")
    await attach(ana, PROGRAM)
    await expect(chips(ana).first).to_contain_text("Use images, PDF or text.")
    await field(ana).press("Enter")
    await expect(ana.page.get_by_role("alert")).to_contain_text("Some files failed")
    await expect(field(ana)).to_have_value("Run it")
    await ana.page.reload()
    await expect(ana.page.locator(".session-title")).to_have_count(sessions)
    await field(ana).press("Enter")
    await expect(ana.answers.first).to_contain_text("Fine")
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_expired_sign_in_keeps_the_message(ana: Person) -> None:
    """LIVE-04: a message that leads to the sign-in page is there again afterwards, with its files and its model."""
    await home(ana)
    await ana.page.get_by_role("button", name="Model:").click()
    await ana.page.get_by_role("option", name="wire-small").click()
    await field(ana).fill("Half a thought")
    await attach(ana, NOTES)
    await expect(chips(ana).and_(ana.page.locator("[data-state=ready]"))).to_have_count(1)
    cookies = await ana.page.context.cookies()
    await ana.page.context.clear_cookies(name="parley_session")
    await field(ana).press("Enter")
    await ana.page.wait_for_url("**/accounts/sign-in/**")
    await ana.page.context.add_cookies(cookies)  # type: ignore[arg-type]  # they are what the browser gave
    await ana.page.goto("/".join(ana.page.url.split("/")[:3]))
    await expect(field(ana)).to_have_value("Half a thought")
    await expect(chips(ana).locator(".chip-name")).to_have_text(["notes <1>.txt"])
    await expect(ana.page.get_by_role("button", name="Model:")).to_contain_text("wire-small")
    await field(ana).press("Enter")
    await expect(ana.messages.first).to_contain_text("Half a thought")
    await expect(ana.messages.first).to_contain_text("notes <1>.txt")
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_refused_first_message_keeps_the_input(ana: Person) -> None:
    """LIVE-04: if the files' session was deleted, text and model stay, and a session can begin without them."""
    await home(ana)
    async with ana.page.expect_response("**/attachments") as uploaded:
        await attach(ana, NOTES)
    session = (await (await uploaded.value).json())["session"]
    await field(ana).fill("Half a thought")
    await ana.page.get_by_role("button", name="Model:").click()
    await ana.page.get_by_role("option", name="wire-small").click()
    gone: dict[str, str | float | bool] = {"action": "delete", "session": session}
    token = await ana.token()
    origin = "/".join(ana.page.url.split("/")[:3])
    headers = {"X-CSRFToken": token, "Accept": "application/json"}
    deletion = f"{origin}/sessions/actions"
    assert (await ana.page.request.post(deletion, form=gone, headers=headers, max_retries=RETRIES)).ok
    await field(ana).press("Enter")
    await expect(ana.page.get_by_role("alert")).not_to_be_empty()
    await expect(field(ana)).to_have_value("Half a thought")
    await expect(chips(ana)).to_have_count(1)
    await expect(ana.page.get_by_role("button", name="Model:")).to_contain_text("wire-small")
    await ana.page.get_by_role("button", name="Remove notes").click()
    await field(ana).press("Enter")
    await expect(ana.messages.first).to_contain_text("Half a thought")
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_first_message_is_sent_once_if_its_response_is_lost(ana: Person, model: WireServer) -> None:
    """MSG-02, LIVE-04: the user sends the message again, and comes to the session that the first attempt has created.

    If Back restores the page then, its next message begins another session.
    """
    model.script(reply("Ordered"), reply("Ordered again"))
    await home(ana)
    await lose_next_response(ana.page, "**/sessions/new")
    await field(ana).fill("Order 100 chairs")
    await field(ana).press("Enter")
    await expect(ana.page.get_by_role("alert")).to_contain_text("Couldn’t start the session.")
    await ana.page.route("**/sessions/s_*/", lambda route: route.fulfill(status=204))  # stay on the page
    for _attempt in range(2):
        async with ana.page.expect_response("**/sessions/s_*/"):
            await field(ana).press("Enter")
        await ana.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
        await expect(field(ana)).to_have_value("")
        await field(ana).fill("Order 20 tables")
    await ana.page.unroute("**/sessions/s_*/")
    await home(ana)
    for title in ("Order 100 chairs", "Order 20 tables"):
        await expect(row(ana, title)).to_have_count(1)
    assert ana.reports.pop(0) == "Failed to load resource: net::ERR_FAILED"


async def test_first_file_creates_one_session_if_its_response_is_lost(ana: Person) -> None:
    """MSG-02: the file is uploaded again, to the session that the first attempt has created."""
    await home(ana)
    before = await ana.page.locator("#session-list .session-row").count()
    await lose_next_response(ana.page, "**/sessions/new/attachments")
    await attach(ana, NOTES)
    await ana.page.get_by_role("button", name="Try again").click()
    await expect(chips(ana)).to_have_attribute("data-state", "ready")
    await ana.page.reload()
    await expect(ana.page.locator("#session-list .session-row")).to_have_count(before + 1)
    assert ana.reports.pop() == "Failed to load resource: net::ERR_FAILED"


async def test_commands_that_need_no_session(ana: Person) -> None:
    """UI-09: "/" offers the commands that need no session, such as choosing the model. Two slashes send one."""
    await home(ana)
    await field(ana).press_sequentially("/")
    offered = ana.page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await expect(offered.locator(".option-label")).to_have_text(
        ["/model", "/attach", "/keys", "/import", "/search", "/settings"]
    )
    await field(ana).press_sequentially("model small")
    await expect(offered).to_have_count(1)
    await field(ana).press("Enter")
    await expect(field(ana)).to_have_value("")
    await expect(ana.page.get_by_role("button", name="Model:")).to_contain_text("wire-small")
    await field(ana).fill("//model is a command")
    await field(ana).press("Enter")
    await expect(ana.messages.first).to_contain_text("/model is a command")
    await expect(ana.messages.first).not_to_contain_text("//model")
    await expect(ana.page.locator("[data-part=model]").first).to_contain_text("wire-small")


async def test_suggestion_sends_its_text(ana: Person, model: WireServer) -> None:
    """UI-11: a suggestion has an icon, a heading and a text. Only the text is sent, with the attached file."""
    model.script(reply("Here"))
    await home(ana)
    prompt = ana.page.get_by_role("list", name="Suggestions").get_by_role("button").first
    await expect(prompt).to_have_accessible_name("Make a plan Plan a project with me, step by step")
    await expect(prompt.locator(".icon use")).to_have_attribute("href", re.compile("#list-checks$"))
    await attach(ana, TABLE)
    await prompt.click()
    await expect(ana.answers.first).to_contain_text("Here")
    await expect(ana.messages.first.locator(".plain")).to_have_text("Plan a project with me, step by step")
    await expect(ana.messages.first).to_contain_text("table.csv")


async def test_unfinished_suggestion_is_completed_first(ana: Person) -> None:
    """UI-11: an unfinished suggestion goes into the composer, with the caret at its end, and is not sent."""
    await home(ana)
    here = ana.page.url
    await ana.page.get_by_role("list", name="Suggestions").get_by_role("button", name="Understand code").click()
    await expect(field(ana)).to_have_value("Explain this code: ")
    await ana.page.keyboard.type("x = 1")
    await expect(field(ana)).to_have_value("Explain this code: x = 1")
    assert ana.page.url == here


async def test_suggestion_keeps_the_written_text(ana: Person) -> None:
    """UI-11: a suggestion goes above the text that the user has written, and is not sent."""
    await home(ana)
    here = ana.page.url
    await field(ana).fill("Half a thought")
    suggested = ana.page.get_by_role("list", name="Suggestions").get_by_role("button")
    await suggested.filter(has_text="Make a plan").click()
    await expect(field(ana)).to_have_value("Plan a project with me, step by step\n\nHalf a thought")
    await field(ana).fill("Half a thought")
    await suggested.filter(has_text="Understand code").click()
    await expect(field(ana)).to_have_value("Explain this code: \n\nHalf a thought")
    await ana.page.keyboard.type("x = 1")
    await expect(field(ana)).to_have_value("Explain this code: x = 1\n\nHalf a thought")
    assert ana.page.url == here


async def test_text_cannot_change_while_it_is_sent(ana: Person, model: WireServer) -> None:
    """LIVE-04: what is typed while the first message is being sent would be lost, so the field takes no more text.

    If the message is refused, the user can go on writing.
    """
    model.script(reply("Here"))
    await home(ana)
    held: list[Route] = []
    await ana.page.route("**/sessions/new", lambda route: held.append(route))
    for number in range(2):
        await field(ana).fill("First")
        async with ana.page.expect_request("**/sessions/new"):
            await field(ana).press("Enter")
        await ana.page.keyboard.type(" and more")
        await expect(field(ana)).to_have_value("First")
        if number == 0:
            await held.pop().abort()
            await expect(ana.page.get_by_role("alert")).not_to_be_empty()
    await held.pop().continue_()
    await expect(ana.messages.first).to_contain_text("First")
    ana.reports.clear()  # of the request that failed


async def test_each_tab_has_its_own_draft(ana: Person, model: WireServer) -> None:
    """UI-09: a first message from another tab leaves this tab's text alone, also if this page is loaded again.

    A new tab begins with the text that was written last.
    """
    model.script(reply("Here"), reply("There"))
    await home(ana)
    await field(ana).press_sequentially("Half a thought")
    other = Person(await ana.page.context.new_page())
    await other.page.goto(ana.page.url)
    await expect(field(other)).to_have_value("Half a thought")
    await field(other).fill("Quick")
    await field(other).press("Enter")
    await expect(other.answers.first).to_contain_text("Here")
    await ana.page.reload()
    await expect(field(ana)).to_have_value("Half a thought")
    await home(other)
    await expect(field(other)).to_have_value("")
    await field(ana).press("!")
    await field(ana).press("Enter")
    await expect(ana.messages.first).to_contain_text("Half a thought!")
    await home(ana)
    await expect(field(ana)).to_have_value("")
    other.check_console()


async def test_composer_has_the_focus_after_a_choice(ana: Person) -> None:
    """UI-11: after a model is chosen in the picker, the composer has the focus."""
    await home(ana)
    await ana.page.get_by_role("button", name="Model:").click()
    await ana.page.get_by_role("option", name="wire-small").click()
    await expect(field(ana)).to_be_focused()


async def test_recent_sessions_show_the_state_of_the_list(ana: Person, model: WireServer) -> None:
    """UI-08: a recent session is shown as working only as long as its agent works, as in the list beside it."""
    gate = asyncio.Event()
    model.script(reply("Seven ", gate=gate, rest=("wells",)))
    await ana.say("Count the wells")
    await expect(ana.answers.first).to_contain_text("Seven")
    await home(ana)
    recent = ana.page.locator(".home-session", has_text="Count the wells")
    await expect(recent).to_contain_text("Agent working", use_inner_text=True)
    gate.set()
    await expect(row(ana, "Count the wells").locator(".pulse")).to_have_count(0)
    await expect(recent).not_to_contain_text("Agent working", use_inner_text=True)
    await expect(recent.locator("time")).to_be_visible()
