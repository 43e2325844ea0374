"""LIVE-01: small things that an open page must not keep showing after a change that makes them untrue."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin, urlsplit

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited, reply, written
from tests.browser.test_messages import bar_of
from tests.browser.test_page import fill
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TOOLS = '\ntools = ["calculator"]\n'


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TOOLS, LEASE_SECONDS="2") as server:
        yield server


def calls(count: int) -> Reply:
    """Return a response with so many calls."""
    chunks = [
        chunk
        for number in range(count)
        for chunk in openai.tool_call(number, f"call_{number}", "calculator", json.dumps({"expression": "6*7"}))
    ]
    return Reply(openai.sse(openai.role(), *chunks, openai.finish("tool_calls"), openai.usage()))


async def test_text_goes_on_after_a_reload(ana: Person, model: WireServer, server: Server) -> None:
    """LIVE-01, RUN-14: a page that is loaded in the middle of an answer shows each word as it comes."""
    gates = [asyncio.Event() for _ in range(4)]
    pieces = [openai.sse(*openai.text(f"{words}\n\nAnd "), done=False) for words in ("One", "two", "three", "four")]
    steps = [step for piece, gate in zip(pieces, gates, strict=True) for step in (*piece, gate)]
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
    ana.complain()


async def test_text_goes_on_after_a_page_of_older_rows(ana: Person, model: WireServer, server: Server) -> None:
    """LIVE-02: rows are a moment behind a text that streams; a part of the list read from them lacks its last blocks."""
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
    ana.complain()
