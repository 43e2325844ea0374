"""Sessions as files in a real browser: export, import, and the choice of sessions from a file."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from playwright.async_api import FilePayload, expect

from tests.browser.person import Person, shows_briefly
from tests.browser.test_chat import reply
from tests.transfer import samples
from tests.wire.server import WireServer

DROP = """(dialog, text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "conversations.json", { type: "application/json" }));
    dialog.querySelector(".drop-file").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""  # noqa: E501


async def test_session_is_exported_and_imported(ana: Person, model: WireServer, tmp_path: Path) -> None:
    """MSG-01, UI-11: sessions are exported from the menu and by command, imported from the palette, and continued."""
    model.script(reply("Hello"), reply("Welcome back"))
    page = ana.page
    await ana.say("Hi there")
    await expect(ana.answers).to_contain_text("Hello")
    await ana.sees_state("idle")
    await page.get_by_role("button", name="More", exact=True).press("Enter")
    await page.get_by_role("menuitem", name="Export…").press("Enter")
    dialog = page.get_by_role("dialog", name="Export session")
    async with page.expect_download() as text:
        await dialog.get_by_role("link", name="Markdown").press("Enter")
    assert (await text.value).suggested_filename == "Hi there.md"
    await expect(dialog).to_have_count(0)
    await ana.say("/export")
    async with page.expect_download() as document:
        await dialog.get_by_role("link", name="JSON").click()
    file = tmp_path / (await document.value).suggested_filename
    await (await document.value).save_as(file)
    exported = page.url
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Search sessions, messages and actions").fill("import")
    await expect(page.get_by_role("option", name="Import…")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    await page.get_by_label("Choose a file").set_input_files(file)
    await expect(page).not_to_have_url(exported)
    await expect(ana.messages).to_have_count(2)
    await ana.say("Where were we?")
    await expect(ana.answers.last).to_contain_text("Welcome back")
    assert "Hi there" in str(model.requests[-1].body["messages"])
    ana.check_console()


async def test_conversations_are_chosen_from_a_file(ana: Person) -> None:
    """MSG-12, UI-11: conversations of a file are searched by title, counted and imported.

    Omissions are listed, and other files are rejected.
    """
    page = ana.page
    many = [samples.chatgpt(f"Talk {number}") for number in range(8)] + [samples.claude("会议 notes")]
    await ana.choose_in_account_menu("Import…")
    dialog = page.get_by_role("dialog", name="Import sessions")
    bad: FilePayload = {"name": "notes.json", "mimeType": "application/json", "buffer": b"{"}
    await dialog.get_by_label("Choose a file").set_input_files(bad)
    await expect(dialog.get_by_role("alert")).to_contain_text("This isn’t a conversation export")
    await dialog.evaluate(DROP, json.dumps(many))
    await expect(dialog.get_by_role("searchbox", name="Find by title")).to_be_focused()
    await expect(dialog.get_by_role("alert")).to_be_hidden()
    await expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_disabled()
    await dialog.get_by_role("checkbox", name="Talk 3").check()
    await dialog.get_by_role("searchbox").fill("会议")
    await dialog.get_by_role("checkbox", name="All shown").check()
    await expect(dialog.get_by_role("checkbox", name="会议 notes")).to_be_checked()
    await expect(dialog.get_by_text("2 of 9 selected")).to_be_visible()
    sending = "words => document.querySelector('.sending').textContent === words"
    async with asyncio.TaskGroup() as looks:
        looks.create_task(shows_briefly(page, sending, "Importing 2 conversations…"))
        await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog.locator(".brought > li")).to_have_count(2)
    await expect(dialog).to_contain_text("1 message of another branch was left out.")
    await expect(page.locator("#session-list")).to_contain_text("会议 notes")
    await dialog.get_by_role("link", name="会议 notes").click()
    await expect(page).to_have_title(re.compile("会议 notes"))
    await expect(ana.answers.last).to_contain_text("How about Ebb?")
    # The browser itself reports error responses in the console.
    ana.reports[:] = [report for report in ana.reports if "Failed to load resource" not in report]
