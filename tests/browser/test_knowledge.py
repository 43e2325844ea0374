"""Files of a workspace in a real browser: added, chosen, found, cited, removed and restored (CTX-09)."""

from __future__ import annotations

from urllib.parse import urljoin

from playwright.async_api import Browser, FilePayload, Page, expect

from tests.browser.delays import Delay
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.browser.test_questions import asking
from tests.support import files
from tests.support.server import Server
from tests.wire.server import WireServer

HOURS = "# Opening hours\n\nThe shop opens at nine.\n\n# Refunds\n\nRefunds are made within **30 days**."
FILES: list[FilePayload] = [
    {"name": "Shop.md", "mimeType": "text/markdown", "buffer": HOURS.encode()},
    {"name": "Prices.pdf", "mimeType": "application/pdf", "buffer": files.pdf("Soup costs 5", "Bread costs 2")},
    {"name": "Logo.png", "mimeType": "image/png", "buffer": files.picture()},
]


async def open_knowledge(person: Person) -> Page:
    await person.choose_in_account_menu("Workspace settings")
    await person.page.get_by_role("link", name="Open files").click()
    await expect(person.page.get_by_role("heading", name="Knowledge", level=1)).to_be_visible()
    return person.page


async def add_files(page: Page) -> None:
    """Add the files. The picture is refused, and the page shows the reason."""
    await page.get_by_label("Choose files").set_input_files(FILES)
    await expect(page.get_by_role("heading", name="2 files")).to_be_visible()
    await expect(page.locator("#uploads li", has_text="Logo.png")).to_contain_text("Unsupported file type.")
    await expect(page.locator(".knowledge li")).to_have_count(2)


async def test_long_name_is_cut(ana: Person) -> None:
    """CTX-09: on the page and in the panel, a name has one line, and a tooltip has it in full."""
    session, name = ana.page.url, "long " * 40 + "name.md"
    page = await open_knowledge(ana)
    file: FilePayload = {"name": name, "mimeType": "text/markdown", "buffer": HOURS.encode()}
    await page.get_by_label("Choose files").set_input_files([file])
    link = page.locator(".knowledge li a").first
    await expect(link).to_have_attribute("title", name)
    one_line = "element => element.offsetHeight < 30 && element.scrollWidth > element.offsetWidth"
    assert await link.locator("bdi").evaluate(one_line)
    await page.goto(session)
    await page.get_by_role("button", name="Session details").click()
    shown = page.get_by_role("region", name="Knowledge").get_by_title(name)
    assert await shown.evaluate(one_line)


async def test_two_users_add_choose_and_cite_files(
    ana: Person, model: WireServer, browser: Browser, server: Server
) -> None:
    """CTX-09: one user adds and chooses files, and the other sees the choice. A citation opens the passage."""
    session = ana.page.url
    bo = await invited(ana, browser, "Bo", member=True)
    page = await open_knowledge(ana)
    await add_files(page)
    ana.ignore_refusals()
    assert await violations(page) == []

    await page.goto(session)
    await ana.page.get_by_role("button", name="Session details").click()
    knowledge = ana.page.get_by_role("region", name="Knowledge")
    await knowledge.get_by_label("Shop.md").check()
    await expect(knowledge).to_contain_text("Agents can search, read and cite 1 file here.")
    await bo.page.get_by_role("button", name="Session details").click()
    theirs = bo.page.get_by_role("region", name="Knowledge")
    await expect(theirs.get_by_label("Shop.md")).to_be_checked()
    await expect(theirs.get_by_label("Prices.pdf")).not_to_be_checked()
    assert await violations(bo.page) == []

    model.script(asking(("search_knowledge", {"query": "refund days"})), reply("Within 30 days [1]."))
    await bo.say("How long do refunds take?")
    await expect(ana.answers.last).to_contain_text("Within 30 days")
    chip = ana.page.get_by_role("link", name="Source 1: Shop.md")
    await expect(chip).to_have_count(1)
    await expect(ana.page.locator(".tool-origin")).to_have_text("From Shop.md")
    async with ana.page.context.expect_page() as opened:
        await chip.click()
    cited = await opened.value
    await expect(cited.get_by_role("article", name="Passage 1")).to_be_focused()
    await expect(cited.get_by_role("article", name="Passage 1")).to_contain_text("**30 days**")
    assert await violations(cited) == []
    await cited.close()

    await theirs.get_by_label("All files").check()
    await expect(knowledge).to_contain_text("2 files here.")
    await expect(knowledge.get_by_label("Prices.pdf")).to_be_disabled()
    await knowledge.get_by_label("All files").uncheck()
    await expect(theirs).to_contain_text("Choose the files that agents can search")
    bo.check_console()


async def test_files_are_searched_renamed_removed_and_restored(ana: Person, browser: Browser) -> None:
    """CTX-09: a member sees the files of other users, but manages only their own. A removal can be undone."""
    bo = await invited(ana, browser, "Bo", member=True)
    page = await open_knowledge(ana)
    await add_files(page)
    ana.ignore_refusals()
    await page.get_by_role("searchbox").fill("bread")
    await page.keyboard.press("Enter")
    found = page.get_by_role("list", name="Found passages")
    await expect(found.get_by_role("link")).to_have_text(["Prices.pdf, page 2"])
    await expect(found.locator("mark")).to_have_text("Bread")
    await page.get_by_role("link", name="Clear").click()

    shop = page.locator(".knowledge li", has_text="Shop.md")
    await shop.get_by_text("Rename", exact=False).first.click()
    await expect(shop.get_by_label("Name")).to_be_focused()
    await shop.get_by_label("Name").fill("Prices.pdf")
    await shop.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("There is a file “Prices.pdf” already.")
    ana.ignore_refusals()
    await expect(shop.get_by_label("Name")).to_be_focused()
    await page.locator(".knowledge li", has_text="Shop.md").get_by_label("Name").fill("Store.md")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#toasts")).to_contain_text("Renamed to “Store.md”.")

    await bo.page.goto(urljoin(bo.page.url, "/"))
    theirs = await open_knowledge(bo)
    await expect(theirs.locator(".knowledge li")).to_have_count(2)
    await expect(theirs.locator(".knowledge summary")).to_have_count(0)

    store = page.locator(".knowledge li", has_text="Store.md")
    await store.locator("summary", has_text="Remove").click()
    await store.get_by_role("button", name="Remove file").click()
    await expect(page.locator("#toasts")).to_contain_text("“Store.md” removed.")
    await expect(page.locator(".knowledge li")).to_have_count(1)
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator("#toasts")).to_contain_text("“Store.md” restored.")
    await expect(page.locator(".knowledge li")).to_have_count(2)
    bo.check_console()


async def test_results_of_many_files_are_all_in_view(ana: Person) -> None:
    """CTX-09: the page shows why each file was refused, without scrolling a part of it. Names keep quotation marks."""
    ana.ignore_refusals()
    page = await open_knowledge(ana)
    quoted: FilePayload = {"name": 'The "new" plan.txt', "mimeType": "text/plain", "buffer": b"Seven wells"}
    empty: list[FilePayload] = [
        {"name": f"empty {number}.txt", "mimeType": "text/plain", "buffer": b""} for number in range(9)
    ]
    await page.locator("input[type=file]").set_input_files([*empty, quoted])
    results = page.locator("#uploads")
    await expect(results.locator("li").last).to_have_text('The "new" plan.txtAdded')
    await expect(results.locator(".errors")).to_have_count(9)
    assert await results.evaluate("list => list.scrollHeight === list.clientHeight")
    await expect(page.get_by_role("link", name='The "new" plan.txt')).to_be_visible()


async def test_open_form_stays_at_its_file_when_an_upload_ends(ana: Person) -> None:
    """CTX-09: a form that was opened while a file is uploaded belongs to the same file when the list is updated."""
    page = await open_knowledge(ana)
    names = page.locator(".knowledge li a")

    async def add(*names: str) -> None:
        added: list[FilePayload] = [
            {"name": name, "mimeType": "text/plain", "buffer": f"On {name}".encode()} for name in names
        ]
        await page.locator("input[type=file]").set_input_files(added)

    await add("middle.txt", "zebra.txt")
    await expect(names).to_have_text(["middle.txt", "zebra.txt"])
    late = await Delay.next_response(page, page.url)
    await add("alpha.txt")
    await late.read()
    middle = page.locator(".knowledge li", has_text="middle.txt")
    await middle.locator("summary", has_text="Rename").click()
    await middle.get_by_label("Name").fill("contract.txt")
    await late.release()
    await expect(names).to_have_text(["alpha.txt", "middle.txt", "zebra.txt"])
    await expect(page.locator(".knowledge details[open]")).to_have_count(1)
    await expect(middle.get_by_label("Name")).to_have_value("contract.txt")
    await expect(middle.get_by_label("Name")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(names).to_have_text(["alpha.txt", "contract.txt", "zebra.txt"])
