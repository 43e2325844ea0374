"""Screens with menus, boxes, dialogs, the panel or the palette, which open above or beside a session."""

from __future__ import annotations

from playwright.async_api import FilePayload, Page, expect

from tests.browser.person import choose_in_account_menu
from tests.browser.screens import Showcase, answered, begin, beside, enter, enter_small, is_phone, open_sidebar, screen
from tests.support import files

IMAGE: FilePayload = {"name": "Lageplan.png", "mimeType": "image/png", "buffer": files.picture("PNG", (300, 200))}
NOTES: FilePayload = {"name": "A file whose name goes on and on.txt", "mimeType": "text/plain", "buffer": b"Seven"}
PROGRAM: FilePayload = {"name": "setup.exe", "mimeType": "application/x-msdownload", "buffer": b"MZ\0\0" * 64}


@screen
async def message_menu(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("article.assistant").press("m")
    await expect(page.get_by_role("menu", name="Message actions")).to_be_visible()


@screen
async def message_details(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("article.assistant").press("d")
    await expect(page.get_by_role("dialog", name="Details")).to_be_visible()


@screen
async def message_edit(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("article.user").press("e")
    await expect(page.get_by_role("textbox", name="Edit message")).to_be_focused()


@screen
async def message_source(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("article.assistant").press("s")
    await expect(page.get_by_role("group", name="View Markdown")).to_be_visible()


@screen
async def toast(page: Page, showcase: Showcase) -> None:
    """A toast with Undo."""
    await begin(page, "who")
    await answered(page)
    await page.locator("article.user").press("Delete")
    await expect(page.locator("#toasts")).to_contain_text("Message deleted")
    await page.get_by_role("button", name="Undo").hover()


@screen
async def share(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.session)
    await page.get_by_role("button", name="Share").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Priya")


@screen
async def share_link(page: Page, showcase: Showcase) -> None:
    """The share dialog with users to add, and a link that was just created."""
    await enter_small(page, showcase)
    await page.get_by_role("button", name="Share").click()
    await page.get_by_role("button", name="Create link").click()
    await expect(page.get_by_label("Invitation link")).to_be_visible()


@screen
async def share_viewer(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.read_only)
    await page.get_by_role("button", name="People", exact=True).click()
    await page.get_by_text("Leave this session…").click()


@screen
async def schedules(page: Page, showcase: Showcase) -> None:
    """The dialog of schedules with the form of one, which shows all fields."""
    await begin(page, "who")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Schedule…").click()
    dialog = page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_label("Message").fill("Summarize the new error reports.")
    await dialog.get_by_role("button", name="Add schedule").click()
    await dialog.get_by_role("button", name="Edit").first.click()
    await dialog.get_by_label("Repeat").first.select_option("Every week")
    await dialog.get_by_label("Thursday").first.check()


@screen
async def model_picker(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("#model").click()
    await expect(page.get_by_role("listbox", name="Models")).to_be_visible()


@screen
async def figures(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("#figures").click()
    await expect(page.get_by_role("dialog", name="Token usage")).to_be_visible()


@screen
async def more(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("#more").click()
    await expect(page.get_by_role("menu")).to_be_visible()


@screen
async def rename(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("#rename").click()
    await expect(page.locator("#title-input")).to_be_focused()


@screen
async def panel(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.session)
    await page.keyboard.press("Control+.")
    await expect(page.get_by_role("textbox", name="System prompt")).to_be_visible()


@screen
async def panel_end(page: Page, showcase: Showcase) -> None:
    await panel(page, showcase)
    await page.locator(".usage-models, .usage-figures").last.scroll_into_view_if_needed()


async def open_context(page: Page) -> None:
    await page.keyboard.press("Control+.")
    await page.get_by_role("tab", name="Context").click()
    await expect(page.locator(".context-list")).to_be_visible()


@screen
async def panel_context(page: Page, showcase: Showcase) -> None:
    """The next request of the long session, on its last page."""
    await enter(page, showcase.session)
    await open_context(page)


@screen
async def panel_context_end(page: Page, showcase: Showcase) -> None:
    await panel_context(page, showcase)
    await page.locator(".context-list > li").last.scroll_into_view_if_needed()


@screen
async def panel_context_past(page: Page, showcase: Showcase) -> None:
    """The request for an answer, after the user has edited the question."""
    await begin(page, "tools")
    await answered(page)
    await page.locator("article.user").press("e")
    await page.get_by_role("textbox", name="Edit message").fill("Try your tools, please.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("article.user")).to_contain_text("please")
    await page.locator("article.assistant").last.press("d")
    await page.get_by_role("button", name="View request").click()
    await expect(page.locator("#panel-context")).to_contain_text("1 message is edited")


@screen
async def panel_conflict(page: Page, showcase: Showcase) -> None:
    """A conflict between two users who have changed the system prompt."""
    other = await beside(page, showcase, "mei")
    for each in (page, other):
        await enter(each, showcase.small)
        await each.keyboard.press("Control+.")
        await each.get_by_role("textbox", name="System prompt").fill("Be brief.")
    await page.get_by_role("textbox", name="System prompt").fill("Answer in three sentences, with sources.")
    await other.get_by_role("textbox", name="System prompt").fill(f"Antworte kurz. {page.url} {id(page)}")
    await other.locator("#prompt-save").click()
    await expect(page.locator("#prompt-conflict")).to_be_visible()


async def search(page: Page, showcase: Showcase, words: str) -> None:
    await enter_small(page, showcase)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Search sessions, messages and actions").fill(words)


@screen
async def palette(page: Page, showcase: Showcase) -> None:
    await search(page, showcase, "")
    await expect(page.get_by_role("option").first).to_be_visible()


@screen
async def palette_found(page: Page, showcase: Showcase) -> None:
    await search(page, showcase, "report")
    await expect(page.locator(".palette mark").first).to_be_visible()


@screen
async def palette_nothing(page: Page, showcase: Showcase) -> None:
    await search(page, showcase, "qqqqq")
    await expect(page.get_by_text("No results").first).to_be_visible()


@screen
async def session_menu(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await open_sidebar(page)
    row = page.locator(".session-row").nth(3)
    await row.hover()
    await row.get_by_role("button").click()
    await expect(page.get_by_role("menu")).to_be_visible()


@screen
async def session_rename(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await open_sidebar(page)
    row = page.locator(".session-row[data-mine=yes]").first
    await row.hover()
    await row.get_by_role("button").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await expect(page.locator(".session-rename input")).to_be_focused()


@screen
async def select_sessions(page: Page, showcase: Showcase) -> None:
    await session_menu(page, showcase)
    await page.get_by_role("menuitem", name="Select").click()
    await page.locator(".session-check").nth(5).check()
    await expect(page.locator("#selection-count")).to_have_text("2 selected")


@screen
async def archived_sessions(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await open_sidebar(page)
    await choose_in_account_menu(page, "Archived sessions")
    await expect(page.locator("#all-sessions")).to_be_focused()


@screen
async def folded_sidebar(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    if not is_phone(page):
        await page.locator("#sidebar-fold").click()


@screen
async def find(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.keyboard.press("Control+f")
    await page.get_by_role("textbox", name="Text to find").fill("pictures")
    await expect(page.locator(".find output")).to_contain_text("of")


@screen
async def keys(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("article.assistant").press("Control+/")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Stop the agent")


async def write(page: Page, showcase: Showcase, text: str) -> None:
    """Write a draft in a session that no other screen uses, because drafts are stored."""
    await enter(page, showcase.scratch)
    await page.locator("#text").fill(text)


@screen
async def slash(page: Page, showcase: Showcase) -> None:
    await write(page, showcase, "/")
    await expect(page.locator("#completion [role=option]").first).to_be_visible()


@screen
async def mention(page: Page, showcase: Showcase) -> None:
    await write(page, showcase, "Ask @")
    await expect(page.locator("#completion [role=option]").first).to_be_visible()


@screen
async def uploads(page: Page, showcase: Showcase) -> None:
    """The composer with two uploaded files and a refused file, in a new session, because the files stay with it."""
    await begin(page, "who")
    await answered(page)
    await page.locator("#files").set_input_files([IMAGE, NOTES, PROGRAM])
    await expect(page.locator(".chip[data-state=ready]")).to_have_count(2)
    await expect(page.locator(".chip[data-state=failed]")).to_have_count(1)


@screen
async def long_draft(page: Page, showcase: Showcase) -> None:
    await write(page, showcase, "Line of a long draft, with a word or two more than would fit on a phone\n" * 30)


@screen
async def lightbox(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.get_by_role("list", name="Images").get_by_role("link").first.click()
    await expect(page.get_by_role("dialog", name="Image")).to_be_visible()
