"""Open editors as other users see them: at the message, in their own editor, and in the panel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.browser.person import PATIENCE, Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_history import field, key
from tests.browser.test_messages import choose, talk
from tests.browser.test_panel import opened, prompt
from tests.support.server import Server
from tests.wire.server import WireServer

SHARED = "is editing this too. If they save first, you can compare both versions before you save."


def line(message: Locator) -> Locator:
    return message.locator(".editing-now")


def note(message: Locator) -> Locator:
    return message.locator(".editing-too")


async def test_others_see_who_is_editing(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: other users see the line of an editor only at its message. It stays after a change of the message and a
    reload, is not a live region, and disappears when the form closes."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    answer, theirs = ana.answers.first, bo.answers.first
    await key(theirs, "e")
    await expect(line(answer)).to_contain_text("Bo")
    await expect(line(answer)).to_contain_text("is editing…")
    await expect(ana.page.locator(".editing-now:visible")).to_have_count(1)
    await expect(line(theirs)).to_have_count(0)
    assert await line(answer).evaluate("line => line.closest('[aria-live], [role=status], [role=alert]')") is None
    assert await violations(ana.page) == []
    await choose(ana, answer, "Exclude from context")
    await expect(answer.locator(".excluded-mark")).to_be_visible()
    await expect(line(answer)).to_be_visible()
    await ana.page.reload()
    await expect(line(answer)).to_contain_text("is editing…")
    await field(bo).press("Escape")
    await expect(line(answer)).to_have_count(0)
    bo.check_console()


@asynccontextmanager
async def loading_late(page: Page) -> AsyncIterator[asyncio.Event]:
    """Let the page load its module for editors only when the event is set, and wait then until it has run."""
    asked, may_load = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def wait(route: Route) -> None:
        if not asked.done():
            asked.set_result(route.request.url)
        await may_load.wait()
        await route.continue_()

    await page.route("**/session-editors.js", wait)
    await page.reload()
    yield may_load
    await page.evaluate("address => import(address)", await asked)
    await page.evaluate("() => new Promise(requestAnimationFrame)")


async def test_editors_that_ended_while_the_module_loads_are_not_shown(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """LIVE-08: a page that loads the module for several frames shows the last one, in whatever order it resumes."""
    await talk(ana, model, *(f"Answer {number}" for number in range(5)))
    bo = await invited(ana, browser, "Bo")
    frames = list[str]()
    bo.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))))
    async with loading_late(bo.page) as may_load:
        await bo.sees_connection("Connected")
        for number in range(5):
            heard = len(frames)
            await key(ana.answers.nth(number), "e")
            await has_come(frames, heard, '"op":"editing"')
        heard = len(frames)
        await ana.page.reload()
        await has_come(frames, heard, '"editors":[]')
        may_load.set()
    await expect(bo.page.locator(".editing-now")).to_have_count(0, timeout=1)
    bo.check_console()


async def has_come(frames: list[str], heard: int, part: str) -> None:
    """Wait until one of the frames after the first `heard` contains a text."""
    async with asyncio.timeout(PATIENCE / 1000):
        while not any(part in frame for frame in frames[heard:]):  # noqa: ASYNC110  # a list has no event
            await asyncio.sleep(0.02)


async def test_editors_from_before_a_restart_are_not_shown(
    ana: Person, model: WireServer, browser: Browser, server: Server
) -> None:
    """LIVE-08: a page that loses its connection while it loads the module does not show the editors from before."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    async with loading_late(bo.page) as may_load:
        async with bo.page.expect_request("**/session-editors.js"):
            await key(ana.answers.first, "e")
        await ana.page.goto("about:blank")
        await asyncio.to_thread(server.kill)
        await bo.sees_connection("Reconnecting")
        await asyncio.to_thread(server.start)
        await bo.sees_connection("Connected")
        may_load.set()
    await expect(bo.page.locator(".editing-now")).to_have_count(0, timeout=1)
    bo.check_console()


async def test_reload_and_deletion_remove_the_line_of_an_editor(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """LIVE-08: the line disappears when the editor's page is reloaded without an unsaved edit, and when the message is
    deleted."""
    await talk(ana, model, "An answer", "Another answer")
    bo = await invited(ana, browser, "Bo")
    first, last = ana.answers.first, ana.answers.last
    await key(bo.answers.first, "e")
    await expect(line(first)).to_be_visible()
    await bo.page.reload()
    await expect(line(first)).to_have_count(0)
    await key(bo.answers.last, "e")
    await field(bo).fill("Not saved")
    await expect(line(last)).to_be_visible()
    await bo.page.reload()
    await expect(field(bo)).to_have_value("Not saved")
    await expect(line(last)).to_be_visible()
    await key(last, "Delete")
    await expect(ana.answers).to_have_count(1)
    await expect(field(bo)).to_have_count(0)
    await expect(ana.page.locator(".editing-now:visible")).to_have_count(0)
    bo.check_console()


async def test_delivery_ends_the_editing_of_a_queued_message(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: others see that a queued message is being edited. The line disappears when the message is delivered."""
    bo = await invited(ana, browser, "Bo")
    gate = asyncio.Event()
    model.script(reply("Wor", gate=gate, rest=("king",)), reply("Done"))
    await ana.say("Go")
    await expect(ana.answers).to_have_count(1)
    await bo.say("Then this")
    await expect(ana.queue).to_have_count(1)
    await bo.page.get_by_role("button", name="Edit the queued message", exact=True).click()
    await expect(line(ana.queue)).to_contain_text("is editing…")
    gate.set()
    await expect(ana.messages.filter(has_text="Then this")).to_have_count(1)
    # Earlier than the next renewal, which would also end the editor.
    await expect(ana.page.locator(".editing-now:visible")).to_have_count(0, timeout=15_000)
    bo.check_console()


async def test_two_editors_of_a_message_see_each_other(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08, MSG-11: both forms have a note that describes the field. The first user also gets an announcement, and
    keeps the focus and the text. A form without changes gets the text that the other user saves."""
    await talk(ana, model, "An answer")
    bo = await invited(ana, browser, "Bo")
    answer, theirs = ana.answers.first, bo.answers.first
    await key(theirs, "e")
    await field(bo).press_sequentially("!")
    await expect(line(answer)).to_be_visible()
    await key(answer, "e")
    await expect(note(answer)).to_contain_text(SHARED)
    await expect(line(answer)).to_be_hidden()
    description = "field => document.getElementById(field.getAttribute('aria-describedby')).textContent"
    assert SHARED in await field(ana).evaluate(description)
    await expect(note(theirs)).to_contain_text("Admin")
    await expect(bo.page.locator("#announcer")).to_contain_text(SHARED)
    await expect(field(bo)).to_be_focused()
    await expect(field(bo)).to_have_value("An answer!")
    for person in (ana, bo):
        assert await violations(person.page) == []
    await field(bo).press("Control+Enter")
    await expect(field(bo)).to_have_count(0)
    await expect(note(answer)).to_have_count(0)
    await expect(field(ana)).to_have_value("An answer!")
    await expect(line(theirs)).to_contain_text("Admin")
    await field(ana).press("Escape")
    await expect(line(theirs)).to_have_count(0)
    bo.check_console()


async def test_line_names_two_editors_and_no_suggestions(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: the line names two users, and shows more as "several people".

    A user who suggests an edit is not an editor.
    """
    await talk(ana, model, "An answer")
    people: list[Person] = []
    for name in ("Bo", "Cy", "Di"):
        people.append(await invited(ana, browser, name))
        await ana.page.reload()  # the share dialog starts without the last link
    bo, cy, di = people
    for person, words in ((bo, "is editing…"), (cy, "are editing…"), (di, "Several people are editing…")):
        await key(person.answers.first, "e")
        await expect(line(ana.answers.first)).to_contain_text(words)
    await expect(note(bo.answers.first)).to_contain_text("are editing this too.")
    question = bo.page.locator("#messages .user")
    await choose(bo, question, "Suggest an edit")
    await expect(field(bo).or_(bo.page.get_by_role("textbox", name="Suggest an edit"))).to_have_count(2)
    await di.page.goto("about:blank")
    await expect(line(ana.answers.first)).to_contain_text("and")
    await expect(line(ana.page.locator("#messages .user"))).to_have_count(0)
    for person in (bo, cy):
        person.check_console()


async def test_editors_of_the_system_prompt_are_shown(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-08: while a user's text in the panel differs, others see that user there, and what they type is kept."""
    bo = await invited(ana, browser, "Bo")
    for person in (ana, bo):
        await opened(person)
    seen = ana.page.locator("#prompt-editing")
    await expect(seen).to_be_hidden()
    await prompt(bo).fill("Be brief")
    await expect(seen).to_contain_text("is editing…")
    await prompt(ana).fill("Be kind")
    await expect(seen).to_contain_text(SHARED)
    assert await violations(ana.page) == []
    await bo.page.get_by_role("button", name="Discard", exact=True).click()
    await expect(seen).to_be_hidden()
    await expect(prompt(ana)).to_have_value("Be kind")
    bo.check_console()
