"""CTX-08: an agent proposes a note, a user accepts it, and finds it in the settings and in the context."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_questions import asking
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent may propose notes."""
    async with servers.use(CONFIG + '\ntools = ["remember"]\n') as server:
        yield server


async def test_two_users_see_a_proposed_note_and_one_accepts_it(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """CTX-08: one user edits and accepts a proposed note. Its card is then read-only for both users.

    The note can be edited, removed and restored. The names of the controls contain the note (UI-11).
    """
    bo = await invited(ana, browser, "Bo")
    model.script(asking(("remember", {"note": "Ana likes tables.", "scope": "me"})), reply("Noted."))
    await ana.say("I like tables")
    await expect(bo.page.get_by_role("heading", name="Remember this")).to_be_visible()
    await ana.page.get_by_label("Note", exact=True).fill("Ana loves tables.")
    await ana.page.get_by_role("button", name="Remember", exact=True).click()
    for person in (ana, bo):
        await expect(person.answers).to_contain_text(["Noted."])
        await expect(person.page.get_by_role("group", name="Remember this")).to_contain_text("Ana loves tables.")
        await expect(person.page.get_by_role("button", name="Remember", exact=True)).to_have_count(0)
    await ana.page.goto(urljoin(ana.page.url, "/settings"))
    memory = ana.page.get_by_role("region", name="Memory")
    await expect(memory.get_by_role("textbox", name="Note · Ana loves tables.")).to_have_value("Ana loves tables.")
    await memory.get_by_role("textbox", name="Note · Ana loves tables.").fill("Ana loves lists.")
    await memory.get_by_role("button", name="Save · Ana loves tables.").click()
    await expect(memory.get_by_role("textbox", name="Note · Ana loves lists.")).to_have_value("Ana loves lists.")
    await memory.get_by_role("button", name="Remove · Ana loves lists.").click()
    await expect(memory).to_contain_text("No notes yet.")
    await memory.get_by_text("Removed notes").click()
    await memory.get_by_role("button", name="Restore").click()
    await expect(memory.get_by_role("textbox", name="Note · Ana loves lists.")).to_have_value("Ana loves lists.")
    ana.check_console()
    bo.check_console()
