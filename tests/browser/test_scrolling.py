"""The reader's position in a long session: new messages below, links to messages that are not loaded, reloads."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.person import Person
from tests.browser.test_after_changes import ask_api
from tests.browser.test_chat import reply
from tests.browser.test_page import fill
from tests.support.server import Server, run_in
from tests.wire.server import WireServer

# Simulates a keyboard that covers the page, like Safari's on phones. Chromium's keyboard makes the page smaller.
COVERED = """height => {
    Object.defineProperty(visualViewport, "height", { value: height, configurable: true });
    visualViewport.dispatchEvent(new Event("resize"));
}"""

# Gives every second message another author, because the first message of a run has a margin, a name and a face.
SPEAKERS = """
from django.db.models import F
from chat.models import ChatMessage
every = ChatMessage.objects.annotate(odd=F("sequence") % 2)
every.filter(odd=1).update(role="assistant", user=None, sender="wire-large")
"""
# Messages in view get their real heights with the next frames, which moves those below.
HALF_IN_VIEW = """async (log, id) => {
    const bottom = () => document.getElementById(id).getBoundingClientRect().bottom - log.getBoundingClientRect().top;
    document.getElementById(id).scrollIntoView({ block: "start" });
    for (let frame = 0; frame < 5; frame++) {
        log.scrollTop += bottom() - 20;
        await new Promise(requestAnimationFrame);
    }
}"""

STAYS = """async (part) => {
    for (let still = 0, top = null; still < 5; ) {
        await new Promise(requestAnimationFrame);
        const now = part.getBoundingClientRect().top;
        still = now === top ? still + 1 : 0;
        top = now;
    }
}"""


def log(person: Person) -> Locator:
    return person.page.locator("#log")


def latest(person: Person) -> Locator:
    return person.page.locator("[data-action=latest]")


def numbered(person: Person, number: int) -> Locator:
    return person.page.locator(f'#messages > [data-sequence="{number}"]')


async def id_of(server: Server, number: int) -> str:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(server.data / "parley.sqlite3")) as connection:
        query = "select id from chat_chatmessage where sequence = ?"
        return str(connection.execute(query, (number,)).fetchone()[0])


async def sequences(person: Person) -> list[int]:
    result: list[int] = await person.messages.evaluate_all("all => all.map(one => Number(one.dataset.sequence))")
    return result


async def test_new_messages_are_counted_below(ana: Person, model: WireServer, server: Server) -> None:
    """Above the end, a button shows how many messages have arrived and that the agent works.

    The reader's position stays.
    """
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await expect(numbered(ana, 180)).to_be_in_viewport()
    gate = asyncio.Event()
    model.script(reply("One", gate=gate))
    await ana.say("Question")
    await expect(ana.answers.first).to_contain_text("One")
    await ana.page.mouse.move(600, 300)
    await ana.page.mouse.wheel(0, -600)
    await expect(latest(ana)).to_contain_text("Jump to latest")
    await expect(latest(ana).locator(".pulse")).to_be_visible()
    top = await log(ana).evaluate("log => log.scrollTop")
    await ana.page.evaluate("document.getElementById('text').blur()")
    model.script(reply("Two"))
    await ana.composer.evaluate("field => { field.value = 'Queued'; field.form.requestSubmit(); }")
    await expect(ana.queue.first).to_contain_text("Queued")
    await ana.page.mouse.wheel(0, -600)
    await expect(latest(ana)).to_be_visible()
    gate.set()
    await expect(ana.answers.nth(1)).to_contain_text("Two")
    await expect(latest(ana)).to_contain_text("2 new messages")
    await expect(latest(ana).locator(".pulse")).to_be_hidden()
    assert await log(ana).evaluate("log => log.scrollTop") <= top + 600
    await latest(ana).click()
    await expect(ana.answers.nth(1)).to_be_in_viewport()
    await expect(latest(ana)).to_be_hidden()


async def test_on_screen_keyboard_covers_nothing(ana: Person, server: Server) -> None:
    """UI-09: the composer and the last message stay above a keyboard that covers the page, as Safari's does."""
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await expect(numbered(ana, 180)).to_be_in_viewport()
    whole = await ana.page.evaluate("document.getElementById('main').getBoundingClientRect().height")
    for seen, height in ((420, 420), (800, whole)):
        await ana.page.evaluate(COVERED, seen)
        await expect(ana.page.locator("#main")).to_have_js_property("clientHeight", height)
        await expect(numbered(ana, 180)).to_be_in_viewport()
        assert await ana.page.evaluate("document.getElementById('composer').getBoundingClientRect().bottom") <= height


async def test_link_leads_to_a_message_that_is_not_loaded(ana: Person, model: WireServer, server: Server) -> None:
    """A link loads the message with those around it.

    From there the reader can scroll in both directions without a gap, and messages sent since are at the end.
    """
    await asyncio.to_thread(fill, server)
    address = f"{ana.page.url}#{await id_of(server, 40)}"
    await ana.page.goto("about:blank")
    await ana.page.goto(address)
    await expect(numbered(ana, 40)).to_be_focused()
    await expect(numbered(ana, 40)).to_be_in_viewport()
    await ana.sees_connection("Connected")
    model.script(reply("Newest"))
    await ana.page.evaluate("() => document.getElementById('newer').removeAttribute('hx-get')")
    shown = await sequences(ana)
    assert shown == list(range(shown[0], shown[-1] + 1))
    assert max(shown) < 180
    await latest(ana).click()
    await expect(numbered(ana, 180)).to_be_in_viewport()
    await expect(numbered(ana, 40)).to_have_count(0)
    await ana.say("Question")
    await expect(ana.answers.first).to_contain_text("Newest")
    await ana.page.evaluate("address => { location.href = address; }", address)
    await expect(numbered(ana, 40)).to_be_focused()
    for _page in range(6):
        if await numbered(ana, 180).count():
            break
        await expect(log(ana)).not_to_contain_class("holding")
        before = len(await sequences(ana))
        await log(ana).evaluate("log => log.scrollTop = log.scrollHeight")
        await expect(ana.messages).not_to_have_count(before)
    await expect(ana.answers.first).to_contain_text("Newest")
    shown = await sequences(ana)
    assert shown == sorted(set(shown))


async def test_new_message_waits_until_the_gap_is_loaded(ana: Person, model: WireServer, server: Server) -> None:
    """LIVE-01: while newer messages are not loaded, a new message is not added behind the gap.

    It is there when the reader has loaded them.
    """
    await asyncio.to_thread(fill, server)
    await ana.page.goto(f"{ana.page.url}#{await id_of(server, 20)}")
    await ana.page.reload()
    await expect(numbered(ana, 20)).to_be_in_viewport()
    await ana.sees_connection("Connected")
    model.script(reply("Newest"))
    await ana.composer.evaluate("field => field.focus()")
    state = await ana.page.context.storage_state()
    assert ana.page.context.browser is not None
    other = Person(await (await ana.page.context.browser.new_context(storage_state=state)).new_page())
    await other.page.goto(ana.page.url.split("#")[0])
    await other.sees_connection("Connected")
    await other.say("Question")
    await expect(other.answers.first).to_contain_text("Newest")
    await other.sees_state("idle")
    await ana.sees_state("idle")
    await expect(ana.answers).to_have_count(0)
    await latest(ana).click()
    await expect(ana.answers.first).to_contain_text("Newest")
    assert (await sequences(ana))[-2:] == (await sequences(other))[-2:]
    other.check_console()


async def test_reload_on_the_way_to_a_message_goes_there(ana: Person, server: Server) -> None:
    """LIVE-01: a reload before the message has loaded shows the message, not what was in view before."""
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await expect(numbered(ana, 180)).to_be_in_viewport()
    for _again in range(2):  # on the way there, and after a reload on the way
        async with ana.page.expect_request("**/messages?around=*"):
            await ana.page.route("**/messages?around=*", lambda _route: None, times=1)
            if _again:
                await ana.page.reload()
            else:
                await ana.page.evaluate("id => { location.hash = id; }", await id_of(server, 20))
    await ana.page.reload()
    await expect(numbered(ana, 20)).to_be_in_viewport()


async def test_late_part_does_not_replace_a_newer_one(ana: Person, server: Server) -> None:
    """LIVE-01: after going to two messages that are not loaded, the page shows the second one.

    The response for the first one arrives last and changes nothing.
    """
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await expect(numbered(ana, 180)).to_be_in_viewport()
    held: asyncio.Queue[Route] = asyncio.Queue()
    await ana.page.route("**/messages?around=*", held.put, times=1)
    for number in (20, 60):
        await ana.page.evaluate("id => { location.hash = id; }", await id_of(server, number))
        if number == 20:
            earlier = await held.get()
    await expect(numbered(ana, 60)).to_be_in_viewport()
    async with ana.page.expect_response("**/messages?around=*"):
        await earlier.continue_()
    await expect(numbered(ana, 60)).to_be_in_viewport()
    await expect(numbered(ana, 20)).to_have_count(0)
    await expect(ana.page.get_by_text("no longer in the session")).to_have_count(0)


async def test_link_to_a_missing_message_shows_a_notice(ana: Person, model: WireServer) -> None:
    """A link to a message that does not exist shows a notice, which stays when a live answer ends."""
    gate = asyncio.Event()
    model.script(reply("So far", gate=gate))
    await ana.say("Go")
    await expect(ana.answers).to_contain_text("So far")
    await ana.page.evaluate("location.hash = '#m_000000000000000000000000'")
    await expect(ana.page.get_by_role("alert")).to_contain_text("no longer in the session")
    gate.set()
    await ana.sees_state("idle")
    await expect(ana.page.get_by_role("alert")).to_contain_text("no longer in the session")
    ana.reports = [text for text in ana.reports if "404" not in text]  # the browser's own report of the 404


async def test_reload_keeps_the_position(ana: Person, server: Server) -> None:
    """A reload restores the position: at a message that the newest page does not contain, and at the end."""
    await asyncio.to_thread(fill, server)
    await ana.page.goto(f"{ana.page.url}#{await id_of(server, 60)}")
    await ana.page.reload()
    await expect(numbered(ana, 60)).to_be_in_viewport()
    place = """async log => {
        let top = -1;
        for (let still = 0; still < 10; top = log.scrollTop) {  // nothing moves any more
            await new Promise(requestAnimationFrame);
            still = log.scrollTop === top ? still + 1 : 0;
        }
        const edge = log.getBoundingClientRect().top;
        const first = [...log.querySelectorAll('article')].find(each => each.getBoundingClientRect().bottom > edge);
        return [Number(first.dataset.sequence), Math.round(first.getBoundingClientRect().top - edge)];
    }"""
    await log(ana).evaluate(place)
    await ana.page.mouse.move(600, 300)
    await ana.page.mouse.wheel(0, -300)
    await expect(numbered(ana, 55)).to_be_in_viewport()
    before = await log(ana).evaluate(place)
    await ana.page.reload()
    await expect(numbered(ana, before[0] + 1)).to_be_in_viewport()
    after = await log(ana).evaluate(place)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) <= 2
    await latest(ana).click()
    await expect(numbered(ana, 180)).to_be_in_viewport()
    await ana.page.goto(re.sub("#.*", "", ana.page.url))
    await ana.page.reload()
    await expect(numbered(ana, 180)).to_be_in_viewport()


@pytest.mark.both_browsers
async def test_changes_above_do_not_move_the_lines_below(ana: Person, server: Server) -> None:
    """LIVE-02: changes to a message that is half in view above do not move the lines below it."""
    await asyncio.to_thread(fill, server)
    await asyncio.to_thread(run_in, server, SPEAKERS)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    number = await id_of(server, 150)
    await log(ana).evaluate(HALF_IN_VIEW, number)
    line = ana.page.locator(f"#{await id_of(server, 151)}").locator(".prose, .plain").first
    await settled(line)
    top = await top_of(line)
    for method, data, looks in (
        ("PATCH", {"include_in_context": False}, ".excluded"),
        ("PATCH", {"include_in_context": True}, ":not(.excluded)"),
        ("PATCH", {"text": "Long  \n" * 30}, ":has-text('Long')"),
        ("DELETE", None, None),
    ):
        assert (await ask_api(ana, method, f"messages/{number}", data)).ok
        await expect(ana.page.locator(f"#{number}{looks or ''}")).to_have_count(0 if looks is None else 1)
        await settled(line)
        assert abs(await top_of(line) - top) < 2, (method, data)


async def settled(part: Locator) -> None:
    """Wait until a part does not move for some frames, because messages in view still get their real heights."""
    await part.evaluate(STAYS)


async def top_of(part: Locator) -> float:
    top: float = await part.evaluate("part => part.getBoundingClientRect().top")
    return top


DIAGRAM = """
from chat.models import ChatMessage
text = "```mermaid\\ngraph TD\\n  A --> B --> C --> D\\n```" + "".join(f"\\n\\nLine {n}" for n in range(40))
ChatMessage.objects.filter(sequence=149).update(role="assistant", user=None, sender="wire-large", text=text)
"""


@pytest.mark.both_browsers
async def test_diagram_that_is_drawn_above_moves_no_line(ana: Person, server: Server) -> None:
    """LIVE-02: a diagram above the line that is read is much higher than its code.

    When it is drawn, that line does not move.
    """
    await asyncio.to_thread(fill, server)
    await asyncio.to_thread(run_in, server, DIAGRAM)
    gate = asyncio.Event()

    async def late(route: Route) -> None:
        await gate.wait()
        await route.continue_()

    await ana.page.route("**/frames/diagram", late)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    line = numbered(ana, 149).get_by_text("Line 3", exact=True)
    await line.evaluate("line => line.scrollIntoView({ block: 'start' })")
    await settled(line)
    frame = ana.page.locator("iframe.diagram")
    await expect(frame).to_have_count(1)
    top, height = await top_of(line), await numbered(ana, 149).evaluate("message => message.offsetHeight")
    gate.set()
    await expect(frame).to_have_attribute("data-drawn", "")
    await settled(line)
    assert await numbered(ana, 149).evaluate("message => message.offsetHeight") > height + 100
    assert abs(await top_of(line) - top) < 2


async def test_button_to_the_end_is_hidden_if_all_messages_are_in_view(ana: Person, model: WireServer) -> None:
    """A retry from the first message, at the beginning of the list, removes all messages out of view."""
    model.script(reply("One\n\n" * 60, "End"), reply("Two"))
    await ana.say("Question")
    await expect(ana.answers).to_contain_text("End")
    await ana.sees_state("idle")
    await ana.page.mouse.move(600, 300)
    await ana.page.mouse.wheel(0, -9000)
    await expect(latest(ana)).to_be_visible()
    await ana.messages.first.hover()
    await ana.messages.first.get_by_role("button", name="Retry from here").click()
    await expect(ana.answers).to_have_text([re.compile("Two")])
    await ana.sees_state("idle")
    await expect(latest(ana)).to_be_hidden()
