"""Texts of users, models and tools in a real browser. They cannot run scripts, load files, or leave their place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Dialog, Request, Route, expect

from agents.messages import Json
from chat.rendering.markdown.live_text import LiveText
from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.rendering.vectors import VECTORS
from tests.support.effort import cases
from tests.support.server import ROOT, Server, run_forked
from tests.wire.server import WireServer

PREFIXES = cases(25)

SCRIPT = (ROOT / "tests/browser/hostile.js").read_text()
STREAM = f"(texts) => {{ {SCRIPT}\nreturn stream(texts); }}"
PAGE = f"() => {{ {SCRIPT}\nreturn page(); }}"
WATCH = """() => {
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI));
}"""


class Watch:
    """A collector of forbidden events: dialogs, requests to other sites, and violations of the CSP."""

    def __init__(self, person: Person, server: Server) -> None:
        self.person, self.address = person, server.address
        self.happened: list[str] = []
        person.page.on("dialog", self._dialog)
        person.page.on("request", self._request)
        person.page.on("popup", lambda page: self.happened.append(f"window {page.url}"))

    async def begin(self) -> None:
        await self.person.page.add_init_script(f"({WATCH})()")

    async def end(self) -> None:
        violations = await self.person.page.evaluate("window.violations ?? []")
        assert (self.happened, violations) == ([], [])

    async def _dialog(self, dialog: Dialog) -> None:
        self.happened.append(f"dialog {dialog.message}")
        await dialog.dismiss()

    def _request(self, request: Request) -> None:
        own = (self.address, self.address.replace("http", "ws"))
        if not request.url.startswith(own):
            self.happened.append(request.url)


async def send_source(route: Route) -> None:
    """Respond with a module of static/. The built files of pages have no exports that a test could import."""
    await route.fulfill(path=ROOT / "static" / urlsplit(route.request.url).path.removeprefix("/sources/"))


@pytest_asyncio.fixture(loop_scope="session")
async def watch(ana: Person, server: Server) -> AsyncIterator[Watch]:
    watch = Watch(ana, server)
    await watch.begin()
    await ana.page.reload()
    yield watch
    await watch.end()


def frames_of(text: str) -> list[Json]:
    """Return the frames of a text that arrives in many small pieces."""
    live, frames = LiveText("m"), []
    step = max(1, len(text) // PREFIXES)
    for start in range(0, len(text), step):
        live.append(text[start : start + step])
        frames.append(live.frame())
    frames.append(live.frame(end=True))
    return [LiveText("m").snapshot(), *(frame for frame in frames if frame)]


@pytest.mark.usefixtures("watch")
async def test_hostile_text_is_harmless_while_it_streams(ana: Person) -> None:
    """MSG-12, LIVE-01: the page is checked at many moments while each hostile text streams.

    It runs nothing and loads nothing.
    """
    await ana.page.route("**/sources/**", send_source)
    await ana.sees_connection("Connected")
    for start in range(0, len(VECTORS), 50):
        assert await ana.page.evaluate(STREAM, [frames_of(text) for text in VECTORS[start : start + 50]]) == []


@pytest.mark.usefixtures("watch")
async def test_hostile_text_is_harmless_on_a_page(ana: Person, server: Server) -> None:
    """MSG-12, MSG-10: hostile texts are in titles, names, messages, reasoning, errors, tools, arguments and results.

    They run nothing and stay in their place.
    """
    output = await asyncio.to_thread(run_forked, "tests/support/hostile.py", data=server.data)
    for session in json.loads(output):
        await ana.page.goto(f"{server.address}/sessions/{session}/")
        await ana.sees_connection("Connected")
        await ana.page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        assert await ana.page.evaluate(PAGE) == []


@pytest.mark.both_browsers
@pytest.mark.usefixtures("watch")
async def test_hostile_answer_is_harmless_live(ana: Person, model: WireServer) -> None:
    """MSG-12, LIVE-01: a model sends the texts through the server in one answer, and a user sends them as a message."""
    everything = "\n\n".join(text for text in VECTORS if len(text) < 300 and "\n" not in text and "\0" not in text)
    pieces = [everything[start : start + 97] for start in range(0, len(everything), 97)]
    model.script(reply(*pieces))
    await ana.say(everything[:3000])
    await expect(ana.answers.first).to_contain_text("onslotchange")
    await ana.sees_state("idle")
    assert await ana.page.evaluate(PAGE) == []
