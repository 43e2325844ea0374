"""The main flow in a real browser: sign-in, chat, reload, stop, queue, a lost network, and a second user."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.async_api import Browser, expect

from tests.browser.person import PATIENCE, RETRIES, Person
from tests.support.server import Server, run_in
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

pytestmark = pytest.mark.both_browsers


def reply(*pieces: str, gate: asyncio.Event | None = None, rest: tuple[str, ...] = ()) -> Reply:
    """Return a streamed answer. `rest` is sent when the gate opens."""
    begin = openai.sse(openai.role(), *openai.text(*pieces), done=False)
    end = openai.sse(*openai.text(*rest), openai.finish(), openai.usage())
    return Reply([*begin, *([gate] if gate else []), *end])


async def test_printed_link_signs_in_once_and_opens_home(model: WireServer, server: Server, browser: Browser) -> None:
    """UI-08: the link signs in once and opens home with the focus in the field; a message names its new session.

    A second use explains how to get a new link.
    """
    model.script(reply("With pleasure"))
    ana = await Person.enter(browser, server.link)
    await expect(ana.page.get_by_label("First message")).to_be_focused()
    await ana.page.keyboard.type("Help me to begin")
    await ana.page.keyboard.press("Enter")
    await expect(ana.answers.first).to_contain_text("With pleasure")
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Help me to begin")
    ana.check_console()
    again = await Person.enter(browser, server.link)
    await expect(again.page.get_by_role("main")).to_contain_text("make link")


async def test_sent_message_is_answered_live(ana: Person, model: WireServer) -> None:
    """RUN-01, UI-06, UI-07: the status shows immediately, the text streams under its model, and then the agent is idle.

    The status disappears when the text begins.
    """
    gates = asyncio.Event(), asyncio.Event()
    start = openai.sse(openai.role(), done=False)
    hello = openai.sse(*openai.text("Hello "), done=False)
    end = openai.sse(*openai.text("**world**."), openai.finish(), openai.usage())
    model.script(Reply([*start, gates[0], *hello, gates[1], *end]))
    await ana.say("Hi there")
    await expect(ana.page.get_by_text("Thinking…")).to_be_visible()
    gates[0].set()
    await expect(ana.answers).to_have_count(1)
    await expect(ana.answers.first).to_contain_text("Hello")
    await expect(ana.answers.first).to_contain_text("wire-large")
    await expect(ana.page.get_by_text("Thinking…")).to_be_hidden()
    gates[1].set()
    await expect(ana.answers.first.locator("strong")).to_have_text("world")
    await ana.sees_state("idle")
    await expect(ana.page.get_by_text("Thinking…")).to_have_count(0)


async def test_reload_shows_the_same_page(ana: Person, model: WireServer) -> None:
    """LIVE-01: in the middle and at the end of an answer, a reload shows the same page."""
    gate = asyncio.Event()
    text = ("# Title\n\nOne *two*\n\n- a\n- b\n\n```python\nprint(", "1)\n```\n\nThree")
    model.script(
        reply(*text, gate=gate, rest=(" four [link](https://example.org)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",))
    )
    await ana.say("Write")
    await expect(ana.answers.first).to_contain_text("Three")
    before = await ana.bodies()
    await ana.page.reload()
    await expect(ana.answers.first).to_contain_text("Three")
    await ana.sees_connection("Connected")
    assert await ana.bodies() == before
    gate.set()
    await ana.sees_state("idle")
    await expect(ana.answers.first.locator("td")).to_have_count(2)
    before, transcript = await ana.bodies(), await ana.transcript()
    await ana.page.reload()
    await ana.sees_connection("Connected")
    assert (await ana.bodies(), await ana.transcript()) == (before, transcript)


async def test_stop_keeps_the_text_so_far(ana: Person, model: WireServer) -> None:
    """RUN-07, RUN-08: Stop keeps the text so far, and the next message works."""
    model.script(reply("So far", gate=asyncio.Event()), reply("Fine."))
    await expect(ana.stop).to_be_hidden()
    await ana.say("Talk")
    await expect(ana.answers.first).to_contain_text("So far")
    await ana.stop.click()
    await ana.sees_state("idle")
    await expect(ana.page.get_by_text("Stopped by Admin", exact=True)).to_be_visible()
    await expect(ana.answers.first).to_contain_text("So far")
    await ana.say("And now?")
    await expect(ana.answers.nth(1)).to_contain_text("Fine.")
    assert model.requests[1].body["messages"][-2]["content"] == "So far\n\n[interrupted]"


async def test_message_sent_while_the_agent_works_is_queued(ana: Person, model: WireServer) -> None:
    """RUN-06, UI-09: the message shows as queued, can be edited, and is delivered when the turn is done."""
    gate = asyncio.Event()
    model.script(reply("Busy", gate=gate), reply("Second answer"))
    await ana.say("First")
    await expect(ana.answers.first).to_contain_text("Busy")
    await ana.say("Sekond")
    await ana.say("Never mind")
    await expect(ana.queue).to_have_count(2)
    await ana.queue.nth(1).get_by_role("button", name="Remove").click()
    await expect(ana.queue).to_have_count(1)
    await ana.queue.first.get_by_role("button", name="Edit").click()
    field = ana.page.get_by_role("textbox", name="Queued message")
    await field.fill("Second")
    await field.press("Enter")
    await expect(ana.queue.first).to_contain_text("Second")
    gate.set()
    await expect(ana.answers.nth(1)).to_contain_text("Second answer")
    await expect(ana.queue).to_have_count(0)
    assert model.requests[1].body["messages"][-1]["content"] == "Second"


async def test_second_person_sees_the_same_text_live(
    ana: Person, model: WireServer, browser: Browser, server: Server
) -> None:
    """LIVE-01, CTX-06, MSG-04: a second user joins by invitation, sees the stream, and the model gets their name."""
    gate = asyncio.Event()
    model.script(reply("Shared ", gate=gate, rest=("words",)), reply("Hello Bo"))
    bo = await invited(ana, browser, "Bo")
    await ana.say("Hello all")
    await expect(bo.answers.first).to_contain_text("Shared")
    gate.set()
    await expect(bo.answers.first).to_contain_text("Shared words")
    await bo.sees_state("idle")
    await bo.say("And me?")
    await expect(ana.answers.nth(1)).to_contain_text("Hello Bo")
    await expect(ana.messages.filter(has_text="And me?").locator(".who")).to_have_text("Bo")
    await ana.sees_state("idle")
    await bo.sees_state("idle")
    assert await ana.transcript() == await bo.transcript()
    sent = [message["content"] for message in model.requests[1].body["messages"] if message["role"] == "user"]
    assert sent == ["[Admin] Hello all", "[Bo] And me?"]
    bo.check_console()


async def test_removed_user_loses_access_immediately(ana: Person, browser: Browser) -> None:
    """LIVE-06: a removed user loses the open page, and gets "not found" after a reload."""
    bo = await invited(ana, browser, "Bo")
    await bo.sees_connection("Connected")
    await ana.page.reload()
    await ana.page.get_by_role("button", name="Share").click()
    await ana.page.get_by_role("button", name="Remove Bo").click()
    question = ana.page.get_by_role("dialog", name="Remove Bo?")  # a guest needs a new invitation
    await question.get_by_role("button", name="Remove").click()
    await bo.sees_connection("no longer have access")
    response = await bo.page.reload()
    assert response is not None
    assert response.status == 404


async def test_lost_network_loses_nothing(ana: Person, model: WireServer) -> None:
    """LIVE-02, LIVE-04: the page catches up on text streamed in the meantime, and sends what was typed once."""
    gate = asyncio.Event()
    model.script(reply("Before ", gate=gate, rest=("after",)), reply("Got it"))
    await ana.say("Go")
    await expect(ana.answers.first).to_contain_text("Before")
    await ana.page.context.set_offline(True)
    await ana.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await ana.sees_connection("You’re offline")
    await ana.say("Typed offline")
    gate.set()
    await ana.page.context.set_offline(False)
    await ana.sees_connection("Connected")
    await expect(ana.answers.first).to_contain_text("Before after")
    await expect(ana.answers.nth(1)).to_contain_text("Got it")
    await expect(ana.messages.filter(has_text="Typed offline")).to_have_count(1)
    await ana.page.reload()
    await expect(ana.messages.filter(has_text="Typed offline")).to_have_count(1)


async def test_viewer_is_not_told_that_messages_will_be_sent(ana: Person, browser: Browser) -> None:
    """LIVE-02: viewers have no composer, so nothing of theirs waits for the connection."""
    bo = await invited(ana, browser, "Bo")
    await make_viewer(ana, bo)
    await expect(bo.composer).to_have_count(0)
    await bo.sees_connection("Connected")
    await bo.page.context.set_offline(True)
    await bo.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await expect(bo.page.locator("#connection")).to_have_text("You’re offline.")
    await bo.page.context.set_offline(False)
    await bo.sees_connection("Connected")


async def test_stop_without_a_connection_stops_the_agent_at_the_next_one(ana: Person, model: WireServer) -> None:
    """RUN-07, LIVE-04: the user need not press Stop again when the page is connected again."""
    model.script(reply("A long ", gate=asyncio.Event()))
    await ana.say("Go")
    await expect(ana.answers.first).to_contain_text("A long")
    await ana.page.context.set_offline(True)
    await ana.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await ana.sees_connection("You’re offline")
    await ana.stop.click()
    await expect(ana.page.locator("#status")).to_contain_text("Stopping")
    await ana.page.context.set_offline(False)
    await expect(ana.answers.first).to_have_attribute("data-status", "interrupted")
    await ana.sees_state("idle")
    await expect(ana.page.locator("#notices")).to_be_empty()


async def test_model_and_effort_are_switched_for_the_next_answer(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """RUN-16, MSG-04: the next answer uses the model and the effort; earlier ones keep theirs; other users see it."""
    model.script(reply("One"), reply("Two"))
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.say("First")
    await ana.sees_state("idle")
    await expect(ana.answers).to_have_count(1)
    await ana.page.get_by_role("button", name="Model:").click()
    await ana.page.get_by_role("option", name="wire-small").click()
    await expect(bo.page.get_by_role("button", name="Model: wire-small")).to_be_visible()
    await ana.page.get_by_role("button", name="Model: wire-small").click()
    await ana.page.get_by_label("Reasoning effort").select_option("High")
    await expect(bo.page.get_by_role("button", name="Model: wire-small · High")).to_be_visible()
    await ana.page.keyboard.press("Escape")
    await ana.say("Second")
    await expect(ana.answers.nth(1)).to_contain_text("Two")
    assert [request.body["model"] for request in model.requests] == ["wire-large", "wire-small"]
    assert [request.body.get("reasoning_effort") for request in model.requests] == [None, "high"]
    await expect(ana.answers.nth(0).locator(".who")).to_have_text("wire-large")
    await expect(ana.answers.nth(1).locator(".who")).to_have_text("wire-small")


async def test_error_is_explained_and_retried(ana: Person, model: WireServer) -> None:
    """RUN-10: an error explains the problem, offers another model, and is replaced by the answer to a Retry."""
    model.script(openai.error(401, "Incorrect API key provided"), reply("Now it works"))
    await ana.say("Try")
    problem = ana.page.locator("article.error")
    await expect(problem).to_contain_text("key")
    await ana.sees_state("idle")
    await problem.get_by_role("button", name="Choose another model").click()
    await expect(ana.page.get_by_role("option", name="wire-small")).to_be_visible()
    await ana.page.keyboard.press("Escape")
    await problem.get_by_role("button", name="Retry").click()
    await expect(ana.answers.first).to_contain_text("Now it works")
    await expect(problem).to_have_count(0)


TWELVE_SECONDS = """
from chat.models import ChatMessage
ChatMessage.objects.filter(text="It is 42.").update(duration_ms=12_000)
"""


async def test_time_of_a_later_answer_adds_no_line(ana: Person, model: WireServer, server: Server) -> None:
    """UI-05: the time of a later answer adds no line, because it appears at the end and the page must not jump."""
    call = openai.sse(
        openai.role(),
        *openai.tool_call(0, "call_1", "calculator", '{"expression": "6*7"}'),
        openai.finish("tool_calls"),
    )
    model.script(Reply(call), reply("It is 42."))
    await ana.say("What is six times seven?")
    answer = ana.answers.filter(has_text="It is 42.")
    await expect(answer).to_be_visible()
    await ana.sees_state("idle")
    before = await answer.evaluate("e => e.offsetHeight")
    run_in(server, TWELVE_SECONDS)
    await ana.page.reload()
    await expect(answer).to_contain_text("12s")
    assert await answer.evaluate("e => e.offsetHeight") == before


async def test_tools_and_figures_are_shown(ana: Person, model: WireServer) -> None:
    """UI-01, UI-02, UI-08, RUN-04: text, tool call and text are shown in their order, with used context and tokens."""
    call = openai.sse(
        openai.role(),
        *openai.text("Let me see."),
        *openai.tool_call(0, "call_1", "calculator", '{"expression": ', '"6*7"}'),
        openai.finish("tool_calls"),
        openai.usage(100, 20),
    )
    model.script(Reply(call), reply("It is 42."))
    await ana.say("What is six times seven?")
    await expect(ana.answers.nth(1)).to_contain_text("It is 42.")
    kinds = await ana.messages.evaluate_all("all => all.map(one => one.classList[1])")
    assert kinds == ["user", "assistant", "tool_group", "assistant"]
    await expect(ana.page.locator("article.tool_group")).to_contain_text("calculator")
    figures = ana.page.locator('[data-part="usage"]')
    await expect(figures).to_contain_text("1.1%")
    await expect(figures).to_contain_text("138")


async def test_selection_survives_streaming(ana: Person, model: WireServer) -> None:
    """Text that the user has selected stays selected while the answer grows and when it ends."""
    gate = asyncio.Event()
    model.script(reply("First paragraph stays.\n\nSecond ", gate=gate, rest=("grows.\n\n", "Third.\n")))
    await ana.say("Write")
    await expect(ana.answers.first).to_contain_text("Second")
    await ana.answers.first.locator("[data-body] p").first.select_text()
    selection = "() => getSelection().toString().trim()"
    chosen = await ana.page.evaluate(selection)
    gate.set()
    await expect(ana.answers.first).to_contain_text("Third.")
    await ana.sees_state("idle")
    assert chosen.startswith("First paragraph stays.")
    assert await ana.page.evaluate(selection) == chosen


async def test_answer_is_kept_after_a_kill_and_a_restart(ana: Person, model: WireServer, server: Server) -> None:
    """RUN-14, RUN-15: after kill -9 and a start, the open page reconnects and keeps the text; the session continues."""
    model.script(reply("Half an ", "answer", gate=asyncio.Event()), reply(" and the rest."), reply("Next."))
    await ana.say("Talk")
    await expect(ana.answers.first).to_contain_text("Half an answer")
    await written(server, "Half an answer")  # what is older than the writer's interval is in the rows
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await expect(ana.answers.nth(1)).to_contain_text("and the rest.")
    await expect(ana.answers.first).to_contain_text("Half an answer")
    await ana.sees_state("idle")
    await ana.say("More")
    await expect(ana.answers.nth(2)).to_contain_text("Next.")


async def written(server: Server, text: str) -> None:
    """Wait until a message's text and its deltas together are this text."""
    deltas = "(select group_concat(text, '') from chat_messagedelta d where d.message_id = m.id)"
    query = f"select m.text || coalesce({deltas}, '') from chat_chatmessage m"  # noqa: S608  # of constants
    async with asyncio.timeout(PATIENCE / 1000):
        while True:
            with closing(sqlite3.connect(server.data / "parley.sqlite3")) as connection:
                if (text,) in connection.execute(query).fetchall():
                    return
            await asyncio.sleep(0.02)


async def invited(
    host: Person, browser: Browser, name: str, *, member: bool = False, automatic: bool = False
) -> Person:
    """Invite a user by link as an editor, who creates an account as a guest. `member` makes them a member.

    The agent answers all messages of both. With `automatic`, that depends on the number of users.
    """
    if not automatic:
        await answer_all(host)
    await host.page.get_by_role("button", name="Share").click()
    dialog = host.page.get_by_role("dialog")
    await dialog.get_by_label("Role for this link").select_option("editor")
    await dialog.get_by_role("button", name="Create link").click()
    link = await dialog.get_by_label("Invitation link").input_value()
    await host.page.keyboard.press("Escape")
    guest = await Person.enter(browser, link)
    await guest.page.get_by_label("Your name").fill(name)
    await guest.page.get_by_label("User name").fill(name.lower())
    await guest.page.get_by_label("Password").fill("a long enough passphrase")
    await guest.page.get_by_role("button", name="Join").click()
    await expect(guest.composer).to_be_visible()
    if member:
        await guest.sees_connection("Connected")
        await make_member(host)
        await expect(guest.page.locator("main")).to_have_attribute("data-guest", "no")  # the page has reloaded
    await guest.sees_connection("Connected")
    await host.page.bring_to_front()  # in Firefox, only the page in front has the focus
    await host.page.wait_for_function("document.hasFocus()")
    return guest


async def make_viewer(host: Person, guest: Person) -> None:
    """Make a user with access a viewer by the API."""
    guest_id = await guest.page.locator("main").get_attribute("data-viewer-id")
    headers = {"X-CSRFToken": await host.token()}
    share = urljoin(host.page.url, f"/api{urlsplit(host.page.url).path}members/{guest_id}")
    assert (await host.page.request.put(share, data={"role": "viewer"}, headers=headers, max_retries=RETRIES)).ok
    await expect(guest.composer).to_have_count(0)


async def answer_all(host: Person) -> None:
    """Let the agent of the host's session answer every message, regardless of the number of users."""
    if not (found := re.search(r"/sessions/(s_\w+)", host.page.url)):
        return
    headers = {"X-CSRFToken": await host.token()}
    address = urljoin(host.page.url, f"/api/sessions/{found[1]}")
    answer = await host.page.request.patch(address, data={"replies": "all"}, headers=headers, max_retries=RETRIES)
    assert answer.ok


async def make_member(host: Person) -> None:
    """Make the guest a member of the host's workspace, with a request of the host."""
    request, address = host.page.request, urljoin(host.page.url, "/api/")
    (guest,) = (await (await request.get(f"{address}guests", max_retries=RETRIES)).json())["guests"]
    headers = {"X-CSRFToken": await host.token()}
    of_guest = f"{address}workspaces/{guest['workspace']}/guests/{guest['user_id']}"
    assert (await request.patch(of_guest, data={"role": "member"}, headers=headers, max_retries=RETRIES)).ok
