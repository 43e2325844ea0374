"""LIVE-01: details that an open page must update when a change makes them wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import APIResponse, Browser, WebSocketRoute, expect

from agents.messages import Json
from tests.browser.conftest import CONFIG
from tests.browser.crowd import Line
from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited, reply, written
from tests.browser.test_messages import bar_of, talk
from tests.browser.test_page import fill
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TOOLS = '\ntools = ["calculator", "confirmation"]\n'


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TOOLS, LEASE_SECONDS="2") as server:
        yield server


def calls(count: int) -> Reply:
    """Return a response with `count` calls."""
    chunks = [
        chunk
        for number in range(count)
        for chunk in openai.tool_call(number, f"call_{number}", "calculator", json.dumps({"expression": "6*7"}))
    ]
    return Reply(openai.sse(openai.role(), *chunks, openai.finish("tool_calls"), openai.usage()))


async def test_calls_unfold_when_the_answer_after_them_is_deleted(ana: Person, model: WireServer) -> None:
    """LIVE-01: folded calls unfold when the answer after them is deleted, because the last call is always visible."""
    model.script(calls(4), reply("They are 42."))
    await ana.say("Go")
    await expect(ana.answers).to_contain_text(["They are 42."])
    await ana.sees_state("idle")
    tools = ana.page.locator("article.tool_group")
    await expect(ana.page.locator(".tool-run")).to_be_visible()
    await expect(tools.last).to_be_hidden()
    await ana.answers.last.focus()
    await ana.page.keyboard.press("Delete")
    await expect(ana.answers).to_have_count(0)
    await expect(tools.last).to_be_visible()
    await expect(ana.page.locator(".tool-run")).to_have_count(0)


async def test_message_that_a_stop_holds_shows_it_in_the_edit(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-06, LIVE-01: Stop puts a message on hold while its sender edits it.

    The sender sees this immediately, continues to edit, and can send the message.
    """
    model.script(reply("Busy", gate=asyncio.Event()), reply("Sent."))
    bo = await invited(ana, browser, "Bo")
    await ana.say("First")
    await expect(bo.answers.first).to_contain_text("Busy")
    await bo.say("Sekond")
    await bo.queue.first.get_by_role("button", name="Edit").click()
    field = bo.page.get_by_role("textbox", name="Queued message")
    await field.fill("Second")
    await ana.stop.click()
    await ana.sees_state("idle")
    await expect(bo.page.get_by_text("This message is on hold")).to_be_visible()
    await expect(field).to_have_value("Second")
    await expect(field).to_be_focused()
    await field.press("Enter")
    await expect(bo.queue.first.locator(".queued-text")).to_have_text("Second")
    await bo.queue.first.get_by_role("button", name="Send now").click()
    await expect(ana.answers.last).to_contain_text("Sent.")


async def test_status_stays_empty_if_the_agent_does_not_answer(ana: Person, browser: Browser) -> None:
    """UI-07, RUN-17: a message that mentions no agent leaves the sender's status line empty."""
    bo = await invited(ana, browser, "Bo", automatic=True)
    for text in ("Lunch?", "Now?"):
        await ana.say(text)
        await expect(bo.messages.last).to_contain_text(text)
    await bo.say("Yes.")
    await expect(ana.messages).to_have_count(3)
    await expect(ana.page.locator("#status")).to_be_empty()
    await expect(bo.page.locator("#status")).to_be_empty()


async def test_edit_button_has_the_label_for_its_message(ana: Person, browser: Browser, model: WireServer) -> None:
    """MSG-11: when the pointer moves to another user's message, "Edit" becomes "Suggest an edit", and back."""
    bo = await invited(ana, browser, "Bo", automatic=True)
    for person in (ana, bo, ana):
        await person.say("Hello")
        await expect(bo.messages.last).to_have_attribute("data-user-id", await viewer_id(person))
    for number, name in ((1, "Edit"), (0, "Suggest an edit"), (1, "Edit")):
        message = bo.messages.nth(number)
        await message.hover()
        await expect((await bar_of(message)).get_by_role("button", name=name, exact=True)).to_be_visible()
    resting = bo.page.locator("#log > .resting")
    await expect(resting.get_by_role("button", name="Suggest an edit", exact=True)).to_have_count(1)
    await bo.say("Mine")
    await expect(resting.get_by_role("button", name="Edit", exact=True)).to_have_count(1)


async def viewer_id(person: Person) -> str:
    return await person.page.locator("main").get_attribute("data-viewer-id") or ""


async def test_panel_shows_the_new_role_of_a_person(ana: Person, browser: Browser) -> None:
    """LIVE-01, UI-20: an open panel follows when a user's role is changed elsewhere, and when a user is removed."""
    bo = await invited(ana, browser, "Bo")
    await ana.page.keyboard.press("Control+.")
    panel = ana.page.get_by_role("complementary", name="Session details")
    people = panel.locator("[data-member]")
    await expect(people.filter(has_text="Bo")).to_contain_text("Editor")
    address = urljoin(ana.page.url, f"/api{urlsplit(ana.page.url).path}members/{await viewer_id(bo)}")
    headers = {"X-CSRFToken": await ana.token()}
    request = ana.page.request
    assert (await request.put(address, data={"role": "viewer"}, headers=headers, max_retries=RETRIES)).ok
    await expect(people.filter(has_text="Bo")).to_contain_text("Viewer")
    assert (await request.delete(address, headers=headers, max_retries=RETRIES)).ok
    await expect(people).to_have_count(1)


async def test_panel_shows_the_tokens_of_a_response_that_asks(ana: Person, model: WireServer) -> None:
    """RUN-04, LIVE-01: while the agent waits, an open panel shows the tokens of the response that asked."""
    await ana.page.keyboard.press("Control+.")
    panel = ana.page.get_by_role("complementary", name="Session details")
    call = openai.tool_call(0, "call_1", "confirmation", json.dumps({"question": "Sure?", "confirm": "Yes"}))
    asking = openai.sse(openai.role(), *call, openai.finish("tool_calls"), openai.usage(654, 32))
    model.script(reply("Hello"), Reply(asking))
    await expect(panel.get_by_text("No requests yet.")).to_be_visible()  # the panel takes the focus when it opens
    await ana.say("Hi")
    await expect(panel.locator(".usage-figures")).to_contain_text("11")
    await ana.say("Go")
    await ana.sees_state("waiting")
    await expect(panel.locator(".usage-figures")).to_contain_text("665")


async def test_streaming_text_continues_after_a_reload(ana: Person, model: WireServer, server: Server) -> None:
    """LIVE-01, RUN-14: a page that is loaded in the middle of an answer shows each new word as soon as it arrives."""
    gates = [asyncio.Event() for _ in range(4)]
    pieces = [openai.sse(*openai.text(f"{words}\n\nAnd "), done=False) for words in ("One", "two", "three", "four")]
    steps: list[bytes | asyncio.Event] = []
    for piece, gate in zip(pieces, gates, strict=True):
        steps += [*piece, gate]
    end = openai.sse(*openai.text("the **end**."), openai.finish(), openai.usage())
    model.script(Reply([*openai.sse(openai.role(), done=False), *steps, *end]))
    await ana.say("Write")
    await expect(ana.answers.first).to_contain_text("One")
    await written(server, "One\n\nAnd ")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    for gate, words in zip(gates, ("And two", "And three", "And four", "the end."), strict=True):
        gate.set()
        await expect(ana.answers.first).to_contain_text(words)
    await ana.sees_state("idle")
    ana.check_console()


async def test_streaming_text_continues_after_loading_older_rows(
    ana: Person, model: WireServer, server: Server
) -> None:
    """LIVE-02: stored rows lag behind a streaming text.

    If the page loads a part from such rows, the missing text is added.
    """
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    gates = asyncio.Event(), asyncio.Event()
    one, two = (openai.sse(*openai.text(f"{words}\n\nAnd\n\n"), done=False) for words in ("One", "Two"))
    end = openai.sse(*openai.text("the **end**."), openai.finish(), openai.usage())
    model.script(Reply([*openai.sse(openai.role(), done=False), *one, gates[0], *two, gates[1], *end]))
    await ana.say("Write")
    await expect(ana.answers.first).to_contain_text("One")
    await written(server, "One\n\nAnd\n\n")
    older = await ana.page.request.get(f"{ana.page.url}messages", max_retries=RETRIES)
    rows = await older.text()
    gates[0].set()
    await expect(ana.answers.first).to_contain_text("Two")
    await ana.page.keyboard.press("Control+Home")
    await ana.page.locator("#log").focus()
    await ana.page.keyboard.press("Control+Home")
    await expect(ana.answers).to_have_count(0)
    await ana.page.route("**/messages", lambda route: route.fulfill(body=rows, content_type="text/html"))
    await ana.page.locator("[data-action=latest]").click()
    await expect(ana.answers.first).to_contain_text("Two")
    gates[1].set()
    await expect(ana.answers.first).to_have_text(re.compile(r"One\s*And\s*Two\s*And\s*the end\."))
    await ana.sees_state("idle")
    ana.check_console()


async def test_edit_stays_open_when_messages_above_have_moved(ana: Person, server: Server) -> None:
    """LIVE-02, UI-11: an edit stays open and focused when messages above it were removed or restored while the page was
    disconnected."""
    await asyncio.to_thread(fill, server)
    line = Line()
    await ana.page.route_web_socket("**/ws/**", line.lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.page.keyboard.press("Alt+ArrowUp")
    await ana.page.keyboard.press("e")
    field = ana.page.locator("form.edit textarea")
    await field.fill("Half a sentence")
    removed = ana.page.locator('#messages > [data-sequence="170"]')
    message = f"messages/{await removed.get_attribute('id')}"
    for method, path in (("DELETE", message), ("POST", f"{message}/restore")):
        await line.cut()
        await ana.sees_connection("Reconnecting")
        assert (await ask_api(ana, method, path)).ok
        line.restore()
        await expect(ana.messages.last).to_have_attribute("data-sequence", "179" if method == "DELETE" else "180")
        await expect(field).to_have_value("Half a sentence")
        await expect(field).to_be_focused()
    numbers = await ana.messages.evaluate_all("all => all.map(({ dataset }) => Number(dataset.sequence))")
    assert numbers == sorted(numbers)


async def test_focus_moves_when_its_element_disappears(ana: Person, model: WireServer) -> None:
    """UI-11: if the focused element disappears, another one gets the focus.

    This covers a toast, a saved prompt, and a session that is archived and restored elsewhere.
    """
    await talk(ana, model, "Hello")
    page = ana.page
    await ana.answers.last.focus()
    await page.keyboard.press("c")
    await page.locator(".toast-close").press("Enter")
    await expect(ana.answers.last).to_be_focused()
    await page.keyboard.press("Control+.")
    prompt = page.get_by_role("textbox", name="System prompt")
    await prompt.fill("Be brief.")
    await page.locator("#prompt-save").press("Enter")
    await expect(page.locator("#prompt-save")).to_be_hidden()
    await expect(prompt).to_be_focused()
    for field, place in ((prompt, "#panel"), (ana.composer, "#main")):
        await field.focus()
        assert (await ask_api(ana, "PATCH", data={"status": "archived"})).ok
        await expect(page.locator(place)).to_be_focused()
        await page.locator("[data-action=restore-session]").focus()
        assert (await ask_api(ana, "PATCH", data={"status": "active"})).ok
        await expect(ana.composer).to_be_focused()
        await expect(prompt).to_be_editable()


@pytest.mark.parametrize("together", [False, True], ids=["one-by-one", "together"])
async def test_focus_moves_to_the_question_after_a_click_on_retry(
    ana: Person, model: WireServer, together: bool
) -> None:
    """The toolbar below the last message is hidden while the agent works, and must not take the focus with it.

    The focus moves to the user's message, also if the page receives the new answer together with the agent's status.
    """
    line = Line()
    await ana.page.route_web_socket("**/ws/**", line.lead)
    await ana.page.reload()
    await talk(ana, model, "An answer")
    other = await ana.page.context.new_page()
    await other.goto(ana.page.url)
    gate = asyncio.Event()
    model.script(reply("Another answer", gate=gate))
    if together:
        line.hold()
    await ana.page.locator(".message-actions.resting").get_by_role("button", name="Retry").click()
    await expect(other.locator("article.assistant[data-status=streaming]")).to_be_attached()
    line.release()
    await expect(ana.page.locator("article.assistant[data-status=streaming]")).to_be_attached()
    await expect(ana.page.locator("#messages article.user")).to_be_focused()
    gate.set()
    await ana.sees_state("idle")


async def test_focus_stays_at_a_question_that_is_answered_elsewhere(ana: Person, model: WireServer) -> None:
    """UI-11: when a question is answered elsewhere, its focused button disappears, and the card gets the focus."""
    call = openai.tool_call(0, "call_1", "confirmation", json.dumps({"question": "Sure?", "confirm": "Yes"}))
    model.script(Reply(openai.sse(openai.role(), *call, openai.finish("tool_calls"), openai.usage())), reply("Done"))
    await ana.say("Go")
    await ana.page.get_by_role("button", name="Yes").focus()
    other = await ana.page.context.new_page()
    await other.goto(ana.page.url)
    await other.get_by_role("button", name="Yes").click()
    await expect(ana.answers.last).to_contain_text("Done")
    await expect(ana.page.locator("article.tool_group")).to_be_focused()


async def test_focus_moves_to_the_composer_after_send_all(ana: Person, model: WireServer) -> None:
    """RUN-06, UI-11: "Send all" disappears when it is pressed, and the composer gets the focus."""
    model.script(reply("Busy", gate=asyncio.Event()), reply("Sent"), reply("Sent"))
    await ana.say("First")
    await expect(ana.answers.first).to_contain_text("Busy")
    for text in ("Second", "Third"):
        await ana.say(text)
        await expect(ana.queue.last).to_contain_text(text)
    await ana.stop.click()
    await expect(ana.page.get_by_text("These messages are on hold")).to_be_visible()
    await ana.page.get_by_role("button", name="Send all").press("Enter")
    await expect(ana.page.locator(".held-bar")).to_be_hidden()
    await expect(ana.composer).to_be_focused()


async def ask_api(person: Person, method: str, path: str = "", data: Json | None = None) -> APIResponse:
    """Send a request to the REST API for the person's session, or for the `path` below it."""
    address = urljoin(person.page.url, f"/api{urlsplit(person.page.url).path}{path}").removesuffix("/")
    headers = {"X-CSRFToken": await person.token()}
    return await person.page.request.fetch(address, method=method, data=data, headers=headers, max_retries=RETRIES)


async def test_frames_after_one_that_fails_are_applied(ana: Person, model: WireServer) -> None:
    """LIVE-01: if the page cannot apply a frame, it reports the error and applies the next ones."""

    def add_bad_frames(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def forward(frame: str | bytes) -> None:
            if '"message"' in str(frame)[:40]:
                route.send('{"op": "session"}')
            route.send(frame)

        server.on_message(forward)

    await ana.page.route_web_socket("**/ws/**", add_bad_frames)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    model.script(reply("Yes."))
    await ana.say("Hi")
    await expect(ana.answers).to_contain_text(["Yes."])
    await ana.sees_state("idle")
    assert ana.reports
    assert all("TypeError" in report for report in ana.reports)
    ana.reports.clear()
