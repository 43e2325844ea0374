"""Screens of the export and import of sessions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from playwright.async_api import FilePayload, Page, expect

from tests.browser.person import choose_in_account_menu
from tests.browser.screens import Showcase, enter_small, open_sidebar, screen
from tests.transfer import samples

NOTES: FilePayload = {"name": "Notes.txt", "mimeType": "text/plain", "buffer": b"Seven"}


@screen
async def export(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Export…").click()
    await expect(page.get_by_role("dialog", name="Export session")).to_be_visible()


@screen
async def importing(page: Page, showcase: Showcase) -> None:
    """The import dialog after a file that is not an export was chosen."""
    await open_import(page)
    await page.get_by_label("Choose a file").set_input_files(NOTES)
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("This isn’t a conversation export")
    await page.get_by_text("How to export your conversations").click()


@screen
async def import_choice(page: Page, showcase: Showcase) -> None:
    """The conversations of a file, of which one is chosen."""
    await open_import(page)
    talks = [samples.chatgpt(title) for title in ("Trip to Kyoto", "论文大纲", "سفر إلى القاهرة", "Regex " * 30)]
    await page.get_by_label("Choose a file").set_input_files(conversations(talks * 3))
    await page.get_by_role("checkbox", name="Trip to Kyoto").first.check()


@screen
async def imported(page: Page, showcase: Showcase) -> None:
    """The result of an import, with a conversation that was not imported."""
    await open_import(page)
    broken = {"format": "parley.session", "version": 1, "session": {"title": 5}}
    await page.get_by_label("Choose a file").set_input_files(
        conversations([samples.chatgpt(), samples.claude(), broken])
    )
    await page.get_by_role("checkbox", name="All shown").check()
    await page.get_by_role("button", name="Import", exact=True).click()
    await expect(page.get_by_role("heading", name="Not imported")).to_be_visible()


async def open_import(page: Page) -> None:
    await page.goto("/")
    await open_sidebar(page)
    await choose_in_account_menu(page, "Import…")


def conversations(talks: Sequence[object]) -> FilePayload:
    return {"name": "conversations.json", "mimeType": "application/json", "buffer": json.dumps(talks).encode()}
