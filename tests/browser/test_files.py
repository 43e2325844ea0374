"""The files of a session in real browsers. Two users browse them by mouse and keys while an agent changes them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Locator, ViewportSize, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_messages import choose
from tests.browser.test_uploads import attach, chips
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TOOLS = """
tools = ["bash", "read_file", "write_file", "edit_file", "list_files"]
[agents.assistant.approval]
allow = ["bash"]
"""
PHONE: ViewportSize = {"width": 390, "height": 780}


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    async with servers.use(CONFIG + TOOLS) as server:
        yield server


def calls(name: str, **arguments: str) -> Reply:
    call = openai.tool_call(0, f"call_{name}", name, json.dumps(arguments))
    return Reply(openai.sse(openai.role(), *call, openai.finish("tool_calls")))


def files(person: Person) -> Locator:
    return person.page.get_by_role("tabpanel", name="Files")


def link(person: Person, name: str) -> Locator:
    return files(person).get_by_role("link", name=name, exact=True)


def entry(person: Person, name: str) -> Locator:
    """Return the link of a file in a list. Its name also contains the size."""
    return files(person).get_by_role("link", name=re.compile(rf"^{re.escape(name)} \d"))


def text_of(path: Path) -> str:
    return path.read_text()


async def opened(person: Person) -> None:
    await person.page.keyboard.press("Control+.")
    await person.page.get_by_role("tab", name="Files").click()


async def test_files_appear_for_all_users_while_the_agent_works(
    ana: Person, browser: Browser, model: WireServer, server: Server
) -> None:
    """UI-10: two users see each change of the files without a reload, and can download a file and a ZIP archive."""
    bo = await invited(ana, browser, "Bo")
    await opened(ana)
    await opened(bo)
    await expect(files(bo)).to_contain_text("No files yet")
    slow = "mkdir -p out; echo 1 > out/one; until [ -e out/go ]; do sleep 0.2; done; echo 2 > out/two"
    model.script(
        calls("write_file", path="notes.md", content="# Plan\n\nfirst\n"),
        calls("bash", command=slow),
        calls("write_file", path="notes.md", content="# Plan\n\nsecond\n"),
        reply("Done"),
    )
    await ana.say("Go")
    for person in (ana, bo):
        await link(person, "Folder out").click()  # the command is still running
        await expect(entry(person, "one")).to_be_visible()
    workspace = server.data / "workspaces" / ana.page.url.rstrip("/").rpartition("/")[2]
    (workspace / "out" / "go").touch()
    for person in (ana, bo):
        await expect(entry(person, "two")).to_be_visible()
    await expect(ana.answers.last).to_contain_text("Done")
    await link(bo, "Session files").click()
    changes = files(bo).get_by_role("region", name="Last changes")
    await changes.locator("summary").last.click()
    await expect(changes.locator("del").last).to_have_text("first")
    await expect(changes.locator("ins").last).to_have_text("second")
    await entry(bo, "notes.md").click()
    await expect(files(bo).locator("pre")).to_have_text("# Plan\n\nsecond\n")
    async with bo.page.expect_download() as download:
        await link(bo, "Download").click()
    assert text_of(await (await download.value).path()) == "# Plan\n\nsecond\n"
    await link(bo, "Back").click()
    async with bo.page.expect_download() as download:
        await link(bo, "Download all").click()
    assert (await download.value).suggested_filename.endswith(".zip")
    assert await violations(bo.page) == []
    ana.check_console()
    bo.check_console()


async def test_html_file_is_previewed(ana: Person, model: WireServer) -> None:
    """UI-10: an HTML file has the same preview as HTML in an answer, and a button that copies its text."""
    model.script(calls("write_file", path="page.html", content="<h1>Hello</h1>\n"), reply("Done"))
    await opened(ana)
    await ana.say("Go")
    await expect(ana.answers.last).to_contain_text("Done")
    await entry(ana, "page.html").click()
    copy = files(ana).get_by_role("button", name="Copy", exact=True)
    inside = (
        "button => button.offsetTop >= 0 && button.offsetTop + button.offsetHeight < button.parentElement.offsetHeight"
    )
    assert await copy.evaluate(inside)
    preview = files(ana).get_by_role("button", name="Preview")
    await preview.click()
    await expect(ana.page.frame_locator("iframe").get_by_role("heading", name="Hello")).to_be_visible()
    await ana.page.get_by_role("complementary", name="Preview").get_by_role("button").first.click()
    await expect(preview).to_be_focused()


async def test_call_shows_its_changes_and_leads_to_the_file(ana: Person, model: WireServer) -> None:
    """UI-10: the card of a call shows what it has changed in a file, and its button opens the file.

    By keyboard, the focus is never lost.
    """
    model.script(
        calls("write_file", path="src/a.py", content="a = 1\nb = 2\n"),
        calls("edit_file", path="src/a.py", old="b = 2", new="b = 3"),
        reply("Done"),
    )
    await ana.say("Go")
    await expect(ana.answers.last).to_contain_text("Done")
    card = ana.page.locator("article.tool_group").last
    await expect(card.locator(".diff-count")).to_contain_text("1 lines added, 1 removed")
    await card.locator("summary").click()
    await expect(card.locator(".diff del")).to_have_text("b = 2")
    await expect(card.locator(".diff ins")).to_have_text("b = 3")
    await card.get_by_role("button", name="Open file").click()
    await expect(files(ana).locator("pre")).to_have_text("a = 1\nb = 3\n")
    await link(ana, "Back").press("Enter")
    await expect(entry(ana, "a.py")).to_be_focused()
    await link(ana, "Session files").press("Enter")
    await expect(link(ana, "Folder src")).to_be_focused()
    ana.check_console()


async def test_file_grows_on_the_page_while_the_model_writes_it(
    ana: Person, browser: Browser, model: WireServer, server: Server
) -> None:
    """UI-10: two users read the beginning of a file while the model writes it, also after a reload.

    Then they see its card.
    """
    gate = asyncio.Event()
    head, first, second = openai.tool_call(
        0, "call_w", "write_file", '{"path": "notes.md", "content": "# Plan\\n\\nfirst', '\\nsecond\\n"}'
    )[:3]
    model.script(
        Reply(
            [
                *openai.sse(openai.role(), head, first, done=False),
                gate,
                *openai.sse(second, openai.finish("tool_calls")),
            ]
        ),
        reply("Done"),
    )
    bo = await invited(ana, browser, "Bo")
    await ana.say("Go")
    for person in (ana, bo):
        written = person.page.get_by_role("group", name="Arguments of write_file")
        await expect(written.locator("pre").last).to_have_text("# Plan\n\nfirst")
        await expect(written).to_contain_text("notes.md")
    await bo.page.reload()
    await expect(bo.page.get_by_role("group", name="Arguments of write_file")).to_contain_text("first")
    await expect(bo.page.locator(".tool.writing")).to_contain_text("being written")
    assert await violations(ana.page) == []
    gate.set()
    for person in (ana, bo):
        await expect(person.page.locator("details.tool summary")).to_contain_text("notes.md")
        await expect(person.page.locator(".tool.writing")).to_have_count(0)
        await expect(person.answers.last).to_contain_text("Done")
    ana.check_console()
    bo.check_console()


async def test_attachments_are_in_the_workspace(ana: Person, model: WireServer) -> None:
    """UI-10: commands can read attachments but not delete them, and the Files tab shows them."""
    model.script(calls("bash", command="cat attachments/*.csv; rm -f attachments/*"), reply("Done"))
    await attach(ana, {"name": "Zahlen 1.csv", "mimeType": "text/csv", "buffer": b"name,sum\nx,42\n"})
    await expect(chips(ana).locator(".chip-name")).to_have_count(1)
    await ana.say("Read it")
    await expect(ana.answers.last).to_contain_text("Done")
    await expect(ana.page.locator(".screen")).to_contain_text("x,42")
    await opened(ana)
    await link(ana, "Folder attachments").click()
    await entry(ana, "Zahlen 1.csv").click()
    await expect(files(ana).get_by_role("cell", name="42")).to_be_visible()
    ana.check_console()


async def test_files_tab_fits_a_phone(ana: Person, model: WireServer) -> None:
    """UI-10: on a phone the Files tab covers the page, and nothing in it is wider than the screen."""
    await ana.page.set_viewport_size(PHONE)
    model.script(calls("write_file", path="a/" + "long" * 30 + ".txt", content="wide " * 100), reply("Done"))
    await ana.say("Go")
    await expect(ana.answers.last).to_contain_text("Done")
    await opened(ana)
    await link(ana, "Folder a").click()
    await files(ana).get_by_role("link", name="long").first.click()
    await expect(files(ana).locator("pre")).to_contain_text("wide")
    assert await ana.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await files(ana).evaluate("tab => tab.scrollWidth <= tab.clientWidth")
    ana.check_console()


async def test_fork_has_the_files_and_their_time(ana: Person, model: WireServer) -> None:
    """RUN-13: a notice about the files appears once in a fork.

    A note at the top of the fork and in its Files tab stays. The fork's agent changes only the fork's files.
    """
    model.script(calls("write_file", path="notes.md", content="first\n"), reply("Done"))
    await ana.say("Go")
    await expect(ana.answers.last).to_contain_text("Done")
    original = ana.page.url
    await choose(ana, ana.answers.last, "Fork from here")
    await ana.page.wait_for_url(lambda url: "/sessions/" in url and url != original)
    await expect(ana.page.get_by_text("were copied as they are now")).to_be_visible()
    await expect(ana.page.get_by_text("Forked from")).to_contain_text("may be newer than the messages")
    await opened(ana)
    await expect(files(ana)).to_contain_text("may be newer than the messages. Open the original")
    await ana.page.reload()
    await expect(ana.page.get_by_text("were copied as they are now")).to_have_count(0)
    model.script(
        calls("read_file", path="notes.md"),
        calls("edit_file", path="notes.md", old="first", new="second"),
        reply("Changed"),
    )
    await ana.say("Change it")
    await expect(ana.answers.last).to_contain_text("Changed")
    system, *_rest = model.requests[-1].body["messages"]
    assert "files may be newer than what the conversation says about them" in system["content"]
    await ana.page.get_by_role("tab", name="Files").click()
    await entry(ana, "notes.md").click()
    await expect(files(ana).locator("pre")).to_have_text("second\n")
    assert await violations(ana.page) == []
    await ana.page.goto(original)
    await ana.page.get_by_role("tab", name="Files").click()
    await entry(ana, "notes.md").click()
    await expect(files(ana).locator("pre")).to_have_text("first\n")
    ana.check_console()
