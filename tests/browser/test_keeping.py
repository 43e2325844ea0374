"""No text is lost or garbled in a real browser: with recreated feeds, full storage, and long or rejected texts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from playwright.async_api import WebSocketRoute, expect

from chat.live.hub import LINGER
from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

LIMIT = 2_000
OUTBOX = "Object.keys(localStorage).find((name) => name.startsWith('parley:outbox:')) ?? null"
PROMPTS = 'prompts = [{{ title = "Today", text = "What is new?", icon = "globe" }}, "Say <hello>"]\n'


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server that accepts only short messages."""
    async with servers.use(CONFIG + PROMPTS, LEASE_SECONDS="2", MAX_MESSAGE_CHARS=str(LIMIT)) as server:
        yield server


class Network:
    """The page's connection to the server, which tests can cut."""

    def __init__(self) -> None:
        self.is_up = True
        self.loses: Callable[[str], bool] = lambda frame: False  # whether a frame of the server does not arrive
        self._routes: list[WebSocketRoute] = []

    async def lead(self, route: WebSocketRoute) -> None:
        def pass_on(frame: str | bytes) -> None:
            if not self.loses(str(frame)):
                route.send(frame)

        if self.is_up:
            self._routes.append(route)
            route.connect_to_server().on_message(pass_on)
        else:
            await route.close()

    async def cut(self) -> None:
        self.is_up = False
        for route in self._routes:
            await route.close()


async def test_stream_continues_from_a_new_feed(ana: Person, model: WireServer) -> None:
    """LIVE-02: a page that reconnects to a new feed, whose frames count from one, shows the text of the rows."""
    network = Network()
    await ana.page.route_web_socket("**/ws/**", network.lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    pieces = ["One.\n\n", "Two *and* ", "three.\n\n", "- four\n", "- five\n"]
    gates = [asyncio.Event() for _piece in pieces]
    parts: list[bytes | asyncio.Event] = []
    for piece, gate in zip(pieces, gates, strict=True):
        parts += [gate, *chunk(piece)]
    end = openai.sse(*openai.text("\nThe **end**."), openai.finish(), openai.usage())
    last = asyncio.Event()
    model.script(Reply([*openai.sse(openai.role(), done=False), *parts, last, *end]))
    await ana.say("Count")
    for gate, words in zip(gates[:4], ("One", "and", "three", "four"), strict=True):
        gate.set()
        await expect(ana.answers.first).to_contain_text(words)
    await network.cut()
    await ana.sees_connection("Reconnecting")
    await asyncio.sleep(LINGER + 1)  # the server drops the feed after a time, without an event
    network.is_up = True
    gates[4].set()
    await expect(ana.answers.first).to_contain_text("five")
    last.set()
    await expect(ana.answers.first.locator("strong")).to_have_text("end")
    await ana.sees_state("idle")
    before = await ana.bodies()
    await ana.page.reload()
    await ana.sees_connection("Connected")
    assert await ana.bodies() == before
    assert (
        await ana.answers.first.locator("[data-body]").inner_text()
        == "One.\n\nTwo and three.\n\nfour\nfive\n\nThe end."
    )


def chunk(text: str) -> list[bytes]:
    return openai.sse(*openai.text(text), done=False)


@pytest.mark.parametrize("refusal", ["throw new DOMException('full', 'QuotaExceededError')", "return"])
async def test_message_is_sent_when_storage_is_full(ana: Person, model: WireServer, refusal: str) -> None:
    """LIVE-04: the page sends a message even if it cannot store it for the next page."""
    model.script(reply("Got it"))
    network = Network()
    await ana.page.route_web_socket("**/ws/**", network.lead)
    await ana.page.add_init_script(f"Storage.prototype.setItem = () => {{ {refusal}; }}")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await network.cut()
    await ana.sees_connection("Reconnecting")
    await ana.say("Keep me in mind")
    await expect(ana.queue).to_contain_text("Keep me in mind")
    network.is_up = True
    await expect(ana.answers.first).to_contain_text("Got it")
    await expect(ana.messages.filter(has_text="Keep me in mind")).to_have_count(1)
    await expect(ana.queue).to_have_count(0)


async def test_sent_texts_give_way_when_storage_is_full(ana: Person, model: WireServer) -> None:
    """LIVE-04: a message and a draft are stored for the next page, although the storage is full of sent texts."""
    model.script(reply("Got it"))
    network = Network()
    await ana.page.route_web_socket("**/ws/**", network.lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.page.evaluate("""() => {
        for (let size = 1_000_000; size >= 1; size = Math.floor(size / 2))
            try {
                for (let number = 0; ; number++)
                    localStorage.setItem(`parley:sent:1:s_${size}_${number}`, "x".repeat(size));
            } catch {}
    }""")
    await network.cut()
    await ana.sees_connection("Reconnecting")
    await ana.say("Keep me in mind")
    await expect(ana.queue).to_contain_text("Keep me in mind")
    await ana.composer.fill("And this draft")
    await ana.page.reload()
    await expect(ana.queue).to_contain_text("Keep me in mind")
    await expect(ana.composer).to_have_value("And this draft")
    network.is_up = True
    await expect(ana.answers.first).to_contain_text("Got it")
    await expect(ana.messages.filter(has_text="Keep me in mind")).to_have_count(1)


async def test_recall_keeps_few_characters(ana: Person, model: WireServer) -> None:
    """UI-09: the browser stores only the last 20,000 characters of a session's sent texts."""
    texts = [f"{number} " + "x" * (LIMIT - 10) for number in range(11)]
    await ana.page.evaluate(
        """texts => {
            const { viewerId, session } = document.getElementById("main").dataset;
            localStorage.setItem(`parley:sent:${viewerId}:${session}`, JSON.stringify(texts));
        }""",
        texts,
    )
    model.script(reply("Read"))
    await ana.say("Last")
    await expect(ana.answers.first).to_contain_text("Read")
    name = "Object.keys(localStorage).find((name) => name.startsWith('parley:sent:'))"
    assert await ana.page.evaluate(f"JSON.parse(localStorage[{name}])") == [*texts[1:], "Last"]


async def test_draft_is_kept_although_the_clock_is_slow(ana: Person) -> None:
    """LIVE-04: text that was typed without a connection is newer than the server's draft, whatever the clocks say."""
    network = Network()
    await ana.page.route_web_socket("**/ws/**", network.lead)
    await ana.page.add_init_script("const now = Date.now; Date.now = () => now() - 300_000;")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.composer.fill("Dear team, ")
    await ana.page.wait_for_function(
        """() => Object.entries(localStorage).some(
            ([name, value]) => name.startsWith("parley:draft:") && JSON.parse(value).said === "Dear team, "
        )"""
    )
    await network.cut()
    await ana.sees_connection("Reconnecting")
    await ana.composer.fill("Dear team, here are three paragraphs")
    await ana.page.reload()
    await expect(ana.composer).to_have_value("Dear team, here are three paragraphs")


async def test_message_that_arrives_before_its_ack_is_shown_once(ana: Person, model: WireServer) -> None:
    """LIVE-04: a message that arrives before the response to its command is shown once."""
    model.script(reply("Got it"))

    async def without_answers(route: WebSocketRoute) -> None:
        def pass_on(frame: str | bytes) -> None:
            if '"send:' not in str(frame):
                route.send(frame)

        route.connect_to_server().on_message(pass_on)

    await ana.page.route_web_socket("**/ws/**", without_answers)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.say("Once")
    await expect(ana.answers.first).to_contain_text("Got it")
    await expect(ana.messages.filter(has_text="Once")).to_have_count(1)
    await expect(ana.queue).to_have_count(0)


async def test_message_whose_ack_is_lost_does_not_return_after_a_day(ana: Person, model: WireServer) -> None:
    """LIVE-04: a page that is opened a day later shows the message, so its text does not return to the composer."""
    model.script(reply("Got it"))
    network = Network()
    network.loses = lambda frame: '"send:' in frame
    await ana.page.route_web_socket("**/ws/**", network.lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.say("Pay the invoice")
    await expect(ana.answers.first).to_contain_text("Got it")
    await ana.page.evaluate(f"""() => {{
        const [entry] = JSON.parse(localStorage[{OUTBOX}]);
        localStorage[{OUTBOX}] = JSON.stringify([{{ ...entry, at: entry.at - 25 * 3_600_000 }}]);
    }}""")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(ana.composer).to_have_value("")
    await expect(ana.page.get_by_role("alert")).to_be_empty()
    assert await ana.page.evaluate(OUTBOX) is None


async def test_message_that_is_shown_after_a_day_does_not_return(ana: Person, model: WireServer) -> None:
    """LIVE-04: a page that stays open without a connection for a day first shows what the server has."""
    accepted = asyncio.Event()
    model.script(reply("Got it"))
    await ana.page.clock.install()
    network = Network()

    def loses(frame: str) -> bool:
        if '"send:' in frame:
            accepted.set()
        return True

    await ana.page.route_web_socket("**/ws/**", network.lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    network.loses = loses
    await ana.say("Pay the invoice")
    await accepted.wait()
    await network.cut()
    await ana.sees_connection("Reconnecting")
    await ana.page.clock.fast_forward("25:00:00")
    network.loses = lambda frame: False
    network.is_up = True
    await ana.page.clock.fast_forward("01:00")
    await expect(ana.answers.first).to_contain_text("Got it")
    await expect(ana.messages.filter(has_text="Pay the invoice")).to_have_count(1)
    await expect(ana.queue).to_have_count(0)
    await expect(ana.composer).to_have_value("")
    await expect(ana.page.get_by_role("alert")).to_be_empty()


async def test_messages_of_a_day_ago_return_in_order(ana: Person) -> None:
    """LIVE-04: several messages that waited for a day return to the composer, the first one at the top."""
    await ana.page.evaluate("""() => {
        const { viewerId, session } = document.getElementById("main").dataset;
        const at = Date.now() - 25 * 3_600_000;
        const entries = ["First", "Second", "Third"].map((text) => ({ key: crypto.randomUUID(), text, files: [], at }));
        localStorage.setItem(`parley:outbox:${viewerId}:${session}`, JSON.stringify(entries));
    }""")
    await ana.page.reload()
    await expect(ana.page.get_by_text("This wasn’t sent while you were away.")).to_be_visible()
    await expect(ana.composer).to_have_value("First\n\nSecond\n\nThird")


async def test_text_that_is_too_long_stays_in_the_composer(ana: Person, model: WireServer) -> None:
    """MSG-12: text that is too long is rejected before it is sent. Characters are counted as on the server."""
    model.script(reply("Read"))
    fits, too_long = "😀" * LIMIT, "😀" * (LIMIT + 1)
    await ana.say(too_long)
    await expect(ana.page.get_by_role("alert")).to_contain_text("has 2,001 characters; the limit is 2,000")
    await expect(ana.composer).to_have_value(too_long)
    await expect(ana.queue).to_have_count(0)
    await ana.say(fits)
    await expect(ana.answers.first).to_contain_text("Read")
    assert model.requests[0].body["messages"][-1]["content"] == fits


async def test_edit_of_a_queued_message_stays_until_it_is_accepted(ana: Person, model: WireServer) -> None:
    """RUN-06, MSG-12: an edit of a queued message stays open if the text is too long or rejected.

    Accepted text closes it.
    """
    gate = asyncio.Event()
    model.script(reply("Busy", gate=gate), reply("Done"))
    await ana.say("First")
    await expect(ana.answers.first).to_contain_text("Busy")
    await ana.say("Second")
    await ana.queue.first.get_by_role("button", name="Edit").click()
    field = ana.page.get_by_role("textbox", name="Queued message")
    for words, notice in (("x" * (LIMIT + 1), "the limit is 2,000"), ("Bad \0 text", "NUL")):
        await field.fill(words)
        await field.press("Enter")
        await expect(ana.page.get_by_role("alert")).to_contain_text(notice)
        await expect(field).to_have_value(words)
    await field.fill("Better")
    await field.press("Enter")
    await expect(field).to_have_count(0)
    await expect(ana.queue.first.locator(".queued-text")).to_have_text("Better")
    await expect(ana.queue.first.get_by_role("button", name="Edit")).to_be_focused()
    gate.set()
    await expect(ana.answers.nth(1)).to_contain_text("Done")
    await expect(ana.composer).to_have_value("")
    assert model.requests[1].body["messages"][-1]["content"] == "Better"


async def test_empty_session_offers_the_presets_prompts(ana: Person, model: WireServer) -> None:
    """An empty session offers the preset's prompts, also by keyboard.

    A prompt fills the composer, another one replaces it, and the user's own text is kept.
    """
    model.script(reply("News"))
    offered = ana.page.get_by_role("list", name="Suggestions").get_by_role("button")
    await expect(offered).to_have_text(["Today What is new?", "Say <hello>"])
    await expect(offered.first.locator(".icon use")).to_have_attribute("href", re.compile("#globe$"))
    await offered.nth(1).press("Enter")
    await expect(ana.composer).to_have_value("Say <hello>")
    await expect(ana.composer).to_be_focused()
    await offered.first.press("Enter")
    await expect(ana.composer).to_have_value("What is new?")
    await ana.composer.fill("In Rome")
    await offered.first.press("Enter")
    await expect(ana.composer).to_have_value("What is new?\n\nIn Rome")
    await ana.composer.press("Enter")
    await expect(ana.answers.first).to_contain_text("News")
    await expect(offered.first).to_be_hidden()


async def test_stop_is_announced(ana: Person, model: WireServer) -> None:
    """RUN-07: a screen reader announces that the agent was stopped."""
    model.script(reply("So far", gate=asyncio.Event()))
    await ana.page.evaluate("""() => {
        window.heard = [];
        const announcer = document.getElementById("announcer");
        new MutationObserver(() => heard.push(announcer.textContent)).observe(announcer, {childList: true});
    }""")
    await ana.say("Talk")
    await expect(ana.answers.first).to_contain_text("So far")
    await ana.stop.click()
    await ana.sees_state("idle")
    await ana.page.wait_for_function("() => heard.some(text => text.includes('Stopped'))")


async def test_stop_without_a_connection_leaves_no_trace(ana: Person, model: WireServer) -> None:
    """RUN-07, UI-07: the page does not show "Stopping…" if the request could not be sent for a while.

    The notice disappears when the agent is idle, because there is nothing left to stop.
    """
    gate = asyncio.Event()
    model.script(reply("So far", " and on", gate=gate))
    await ana.say("Talk")
    await expect(ana.answers.first).to_contain_text("So far")
    await ana.page.clock.install()
    await ana.page.context.set_offline(True)
    await ana.sees_connection("You’re offline")
    await ana.stop.click()
    await expect(ana.page.locator("#status")).to_contain_text("Stopping")
    await ana.page.clock.fast_forward(30_000)
    notice = ana.page.locator("#notices .notice")
    await expect(notice).to_contain_text("You’re offline. Try again when you’re connected.")
    await expect(ana.page.locator("#status")).not_to_contain_text("Stopping")
    await ana.page.context.set_offline(False)
    await ana.sees_connection("Connected")
    await expect(notice).to_be_visible()
    gate.set()
    await ana.sees_state("idle")
    await expect(notice).to_have_count(0)
