"""CTX-07: earlier messages are summarized, folded, and restored, for all users in the session."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_messages import bar_of
from tests.browser.test_page import fill
from tests.browser.test_paging import go_to
from tests.browser.test_scrolling import id_of, numbered
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

pytestmark = pytest.mark.any_browser


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent has no tools, because their descriptions would fill most of the model's small window."""
    async with servers.use(CONFIG + "tools = []\n") as server:
        yield server


def filling(text: str, read: int) -> Reply:
    """Return an answer that reports `read` input tokens. The model's context window is 1,000 tokens."""
    return Reply(openai.sse(openai.role(), *openai.text(text), openai.finish(), openai.usage(prompt=read)))


async def test_two_users_see_a_compaction_and_its_undo(ana: Person, model: WireServer, browser: Browser) -> None:
    """CTX-07: from 80% of the context on, the page offers to compact.

    A summary replaces the older messages, which can still be shown. Undo restores them for both users.
    """
    bo = await invited(ana, browser, "Bo")
    offer = bo.page.get_by_text("The conversation fills 85%")
    model.script(filling("Four legs.", 200))
    await ana.say("How many legs has a cat?")
    await expect(bo.answers).to_have_count(1)
    await ana.sees_state("idle")
    await expect(ana.page.locator(".context-bar")).to_be_hidden()
    model.script(filling("Six legs.", 850))
    await ana.say("And a beetle?")
    await expect(offer).to_be_visible()
    model.script(filling("Eight legs.", 870))
    await ana.say("And a spider?")
    await expect(ana.answers).to_have_count(3)
    await ana.sees_state("idle")

    model.script(reply("They counted **legs**."))
    await bo.page.get_by_role("button", name="Compact", exact=True).click()
    for person in (ana, bo):
        summary = person.page.get_by_role("article", name="Summary")
        await expect(summary).to_contain_text("They counted legs.")
        await expect(summary).to_contain_text("Bo summarized 2 messages")
        toast = person.page.locator(".toast")
        await expect(toast).to_contain_text("Bo summarized 2 messages")
        await expect(toast.get_by_role("button", name="Undo")).to_be_visible()
        await expect(person.answers.filter(has_text="Four legs.")).to_be_hidden()
        await expect(person.answers.filter(has_text="Eight legs.")).to_be_visible()
        await expect(person.page.locator("#messages > .day")).to_be_visible()
        await expect(person.page.locator(".context-bar")).to_be_hidden()
    before = await bo.transcript()
    await bo.page.reload()
    await expect(bo.answers.filter(has_text="Four legs.")).to_be_hidden()
    assert await bo.transcript() == before

    await ana.page.get_by_role("button", name="Show messages").click()
    await expect(ana.answers.filter(has_text="Four legs.")).to_be_visible()
    await ana.page.get_by_role("button", name="Hide messages").click()
    await expect(ana.answers.filter(has_text="Four legs.")).to_be_hidden()
    await ana.page.get_by_role("article", name="Summary").get_by_role("button", name="Undo").click()
    for person in (ana, bo):
        await expect(person.page.get_by_role("article", name="Summary")).to_have_count(0)
        await expect(person.answers.filter(has_text="Four legs.")).to_be_visible()
    ana.check_console()
    bo.check_console()


async def test_messages_before_an_unloaded_summary_are_marked(ana: Person, model: WireServer, server: Server) -> None:
    """CTX-07: a reader of old messages sees that they were summarized, even if the summary is not loaded.

    The page shows this immediately, after a reload, and in an edit.
    """
    await asyncio.to_thread(fill, server)
    await go_to(ana, f"{ana.page.url}#{await id_of(server, 30)}")
    message, marked = numbered(ana, 30), ana.page.locator("#messages > .summarized")
    await expect(message).to_be_in_viewport()
    await expect(message).to_be_focused()  # else it takes the focus while the command is typed
    await expect(ana.page.locator("#newer[hx-get]")).to_have_count(1)
    await expect(marked).to_have_count(0)
    model.script(*[reply("They count.")] * 20)
    await ana.composer.press_sequentially("/compact")
    await ana.composer.press("Enter")
    await expect(message).to_have_class(re.compile("summarized"))
    await expect(ana.page.locator("#messages > article:not(.summarized)")).to_have_count(0)
    await expect(message).to_be_in_viewport()
    await ana.page.reload()
    await expect(message).to_have_class(re.compile("summarized"))
    mark = "getComputedStyle(document.querySelector('.summarized > .column > .meta'), '::before').content"
    assert "Replaced by a summary" in await ana.page.evaluate(mark)

    await message.hover()
    await (await bar_of(message)).get_by_role("button", name="Edit").click()
    await expect(ana.page.get_by_text("The model reads the summary instead of this message.")).to_be_visible()
    await ana.page.keyboard.press("Escape")
    summary = await ana.page.evaluate("() => document.getElementById('newer').dataset.summary")
    session = await ana.page.locator("main").get_attribute("data-session")
    address = urljoin(ana.page.url, f"/api/sessions/{session}/messages/{summary}")
    headers = {"X-CSRFToken": await ana.token()}
    assert (await ana.page.request.delete(address, headers=headers, max_retries=RETRIES)).ok
    await expect(marked).to_have_count(0)


async def test_summary_that_is_excluded_with_other_messages_is_shown_so(ana: Person, model: WireServer) -> None:
    """LIVE-01: an open page marks a summary that is excluded together with other messages, and shows what it replaced.

    Including them undoes both.
    """
    model.script(*[reply(f"Answer {number}.") for number in range(3)], reply("They counted."))
    for number in range(3):
        await ana.say(f"Question {number}")
        await expect(ana.answers.filter(has_text=f"Answer {number}.")).to_be_visible()
        await ana.sees_state("idle")
    await ana.composer.press_sequentially("/compact")
    await ana.composer.press("Enter")
    summary = ana.page.get_by_role("article", name="Summary")
    await expect(summary).to_contain_text("They counted.")
    await expect(ana.answers.filter(has_text="Answer 0.")).to_be_hidden()

    session = await ana.page.locator("main").get_attribute("data-session")
    last = await ana.messages.last.get_attribute("id")
    address = urljoin(ana.page.url, f"/api/sessions/{session}/messages/{last}")
    headers = {"X-CSRFToken": await ana.token()}
    request = ana.page.request
    assert (await request.post(f"{address}/exclude_before", headers=headers, data={}, max_retries=RETRIES)).ok
    await expect(summary).to_contain_text("hidden from the model")
    await expect(summary).to_have_class(re.compile("excluded"))
    await expect(ana.answers.filter(has_text="Answer 0.")).to_be_visible()

    assert (await request.post(f"{address}/include_before", headers=headers, data={}, max_retries=RETRIES)).ok
    await expect(summary).not_to_have_class(re.compile("excluded"))
    await expect(ana.answers.filter(has_text="Answer 0.")).to_be_hidden()


async def test_slash_compact_reports_that_nothing_can_be_compacted(ana: Person, model: WireServer) -> None:
    """CTX-07: without earlier messages, /compact shows an error, and the composer still works."""
    await ana.composer.press_sequentially("/compact")
    await ana.composer.press("Enter")
    await expect(ana.page.get_by_role("alert")).to_contain_text("no earlier messages")
    model.script(reply("Hello."))
    await ana.say("Hi")
    await expect(ana.answers).to_have_count(1)
    await ana.sees_state("idle")
