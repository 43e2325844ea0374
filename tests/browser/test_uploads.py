"""Files in the composer in a real browser: added by button, paste and drop; kept, rejected, retried and sent."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Route, expect

from tests.browser.delays import lose_next_response
from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited, reply
from tests.wire.server import WireServer

NOTES: FilePayload = {"name": "notes <1>.txt", "mimeType": "text/plain", "buffer": b"Seven wells, one bridge."}
TABLE: FilePayload = {"name": "table.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"}
PROGRAM: FilePayload = {"name": "setup.exe", "mimeType": "application/x-msdownload", "buffer": b"MZ\0\0" * 64}
# The browser itself reports error responses in the console.
REFUSED = "Failed to load resource"
DRAG = """([kind, text]) => {
    const data = new DataTransfer();
    if (text) data.items.add(new File([text], "dropped.txt", { type: "text/plain" }));
    const target = document.querySelector(".drop-here") ?? document.getElementById("log");
    target.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
PASTE = """(field, { text, html, file }) => {
    const data = new DataTransfer();
    if (text) data.setData("text/plain", text);
    if (html) data.setData("text/html", html);
    if (file) data.items.add(new File(["x"], file, { type: "image/png" }));
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def chips(person: Person) -> Locator:
    return person.page.get_by_role("list", name="Attached files").get_by_role("listitem")


async def attach(person: Person, *files: FilePayload) -> None:
    async with person.page.expect_file_chooser() as opened:
        await person.page.get_by_role("button", name="Attach files").click()
    await (await opened.value).set_files(list(files))


async def uploaded(person: Person, number: int) -> None:
    """Wait until this many files are uploaded. A reload keeps only these."""
    await expect(chips(person).and_(person.page.locator("[data-state=ready]"))).to_have_count(number)


@pytest.mark.both_browsers
async def test_files_are_kept_until_they_are_sent(ana: Person, model: WireServer) -> None:
    """LIVE-04: attached files survive a reload, can be removed one by one, and are sent with the message."""
    model.script(reply("I see"))
    await attach(ana, NOTES, TABLE)
    await expect(chips(ana).locator(".chip-name")).to_have_text(["notes <1>.txt", "table.csv"])
    await expect(chips(ana).first).to_contain_text("24 byte")
    await uploaded(ana, 2)
    await ana.page.reload()
    await expect(chips(ana)).to_have_count(2)
    await ana.page.get_by_role("button", name="Remove table.csv").press("Enter")
    await expect(ana.page.get_by_role("button", name="Remove notes <1>.txt")).to_be_focused()
    await expect(chips(ana)).to_have_count(1)
    await ana.say("What is in it?")
    await expect(ana.answers.first).to_contain_text("I see")
    await expect(chips(ana)).to_have_count(0)
    assert "Seven wells, one bridge." in str(model.requests[0].body["messages"][-1]["content"])
    await ana.page.reload()
    await expect(chips(ana)).to_have_count(0)


async def test_refused_file_shows_the_reason(ana: Person, model: WireServer) -> None:
    """UI-09: a refused file shows the reason, and the message is not sent until the file is removed."""
    model.script(reply("Fine"))
    await attach(ana, PROGRAM)
    await expect(chips(ana).first).to_contain_text("Use images, PDF or text.")
    await expect(ana.page.get_by_role("button", name="Try again")).to_be_hidden()
    await ana.say("Run it")
    await expect(ana.page.get_by_role("alert")).to_contain_text("Some files failed")
    await expect(ana.composer).to_have_value("Run it")
    await ana.page.get_by_role("button", name="Remove setup.exe").click()
    await expect(ana.page.locator("#notices .notice")).to_have_count(0)
    await ana.composer.press("Enter")
    await expect(ana.answers.first).to_contain_text("Fine")
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_file_whose_response_is_lost_is_attached_once(ana: Person) -> None:
    """LIVE-04: a file that the server has stored although its upload failed for the page is attached only once.

    The page may show the stored file before the user tries again.
    """
    await lose_next_response(ana.page, "**/attachments")
    await attach(ana, NOTES)
    await expect(chips(ana)).to_contain_text("Upload failed")
    await ana.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(chips(ana)).to_have_count(2)
    await ana.page.get_by_role("button", name="Try again").click()
    await uploaded(ana, 1)
    await expect(chips(ana)).to_have_count(1)
    await ana.page.reload()
    await expect(chips(ana)).to_have_count(1)
    assert ana.reports.pop() == "Failed to load resource: net::ERR_FAILED"


async def test_failed_files_are_removed_together(ana: Person) -> None:
    """UI-09: one button in the notice removes all failed files, and uploaded ones stay.

    A text file with binary data is among the refused ones, with its reason.
    """
    binary = FilePayload(name="log.txt", mimeType="text/plain", buffer=b"a\0b")
    await attach(ana, NOTES, PROGRAM, binary)
    await expect(chips(ana).nth(1)).to_contain_text("Use images, PDF or text.")
    await expect(chips(ana).nth(2)).to_contain_text("The file contains binary data.")
    await ana.say("Read it")
    await ana.page.get_by_role("button", name="Remove 2 failed files").click()
    await expect(chips(ana)).to_have_count(1)
    await expect(ana.composer).to_be_focused()
    await expect(ana.page.locator("#notices .notice")).to_have_count(0)
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_failed_file_is_in_view_on_a_phone(ana: Person) -> None:
    """UI-09: a phone shows the files in one line, and the failed one is in view."""
    await ana.page.set_viewport_size({"width": 375, "height": 740})
    await attach(ana, NOTES, TABLE, PROGRAM)
    await expect(chips(ana).last).to_contain_text("Use images, PDF or text.")
    await expect(chips(ana).last).to_be_in_viewport(ratio=0.9)
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_message_waits_for_its_files(ana: Person, model: WireServer) -> None:
    """LIVE-04: Send shows that it waits for the files, and sends the message when they are uploaded.

    A broken upload is tried again.
    """
    model.script(reply("Got both"))
    gate = asyncio.Event()
    tries = 0

    async def slow(route: Route) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            return await route.abort()
        await gate.wait()
        return await route.continue_()

    await ana.page.route("**/attachments", slow)
    await attach(ana, NOTES)
    await expect(chips(ana).first).to_contain_text("Upload failed")
    await ana.page.get_by_role("button", name="Try again").click()
    await ana.say("Read this")
    await expect(ana.page.get_by_role("button", name="Uploading…")).to_be_visible()
    await expect(ana.messages).to_have_count(0)
    gate.set()
    await expect(ana.answers.first).to_contain_text("Got both")
    assert len(model.requests) == 1
    ana.reports = [report for report in ana.reports if REFUSED not in report]


async def test_browser_asks_before_an_upload_is_left(ana: Person) -> None:
    """The browser asks before the page is left during an upload, and after one that can be tried again.

    After the upload it does not ask.
    """
    gate = asyncio.Event()

    async def fail_late(route: Route) -> None:
        await gate.wait()
        await route.abort()

    async def is_asked() -> None:
        async with ana.page.expect_event("dialog") as asking:
            await ana.page.evaluate("() => { setTimeout(() => location.reload()); }")
        await (await asking.value).dismiss()

    await ana.page.route("**/attachments", fail_late, times=1)
    await ana.composer.click()  # browsers ask only users who have used the page
    await attach(ana, NOTES)
    await expect(chips(ana)).to_contain_text("% uploaded")
    await is_asked()
    gate.set()
    await expect(chips(ana)).to_have_attribute("data-state", "failed")
    await is_asked()
    await ana.page.get_by_role("button", name="Try again").click()
    await expect(chips(ana)).to_have_attribute("data-state", "ready")
    await ana.page.reload()
    await expect(chips(ana)).to_have_attribute("data-state", "ready")
    ana.reports = [report for report in ana.reports if REFUSED not in report]


@pytest.mark.any_browser
async def test_files_can_be_dropped_anywhere_on_the_session(ana: Person) -> None:
    """UI-09: while files are dragged, the page shows that they can be dropped.

    It ignores anything else that is dragged.
    """
    cover = ana.page.get_by_text("Drop files to attach them")
    await ana.page.evaluate(DRAG, ["dragenter", ""])
    await expect(cover).to_have_count(0)
    await ana.page.evaluate(DRAG, ["dragenter", "x"])
    await expect(cover).to_be_visible()
    await ana.page.evaluate(DRAG, ["dragleave", "x"])
    await expect(cover).to_have_count(0)
    await ana.page.evaluate(DRAG, ["dragenter", "x"])
    await ana.page.evaluate(DRAG, ["drop", "Some words"])
    await expect(cover).to_have_count(0)
    await expect(chips(ana).locator(".chip-name")).to_have_text(["dropped.txt"])
    await expect(ana.composer).to_be_focused()


async def test_very_long_text_is_pasted_as_a_file(ana: Person) -> None:
    """MSG-12: the file has the exact text and can be inserted again. Shorter texts and images are pasted as usual."""
    long = "Line\t<one> & two 😀\n" * 700
    await ana.composer.evaluate(PASTE, {"text": long})
    await expect(chips(ana).locator(".chip-name")).to_have_text(["Pasted text.txt"])
    await expect(chips(ana).first).to_have_attribute("data-state", "ready")
    address = await ana.page.evaluate(
        "() => JSON.parse(Object.entries(localStorage).find(([k]) => /files/.test(k))[1])[0].url"
    )
    assert (
        await (await ana.page.request.get(ana.page.url.split("/sessions")[0] + address, max_retries=RETRIES)).text()
        == long
    )
    await ana.composer.fill("Before: ")
    await ana.page.reload()
    await ana.page.get_by_role("button", name="Insert as text").click()
    await expect(ana.composer).to_have_value("Before: " + long)
    await expect(chips(ana)).to_have_count(0)
    cells = {"text": "a\tb", "html": "<table><td>a<td>b</table>", "file": "cells.png"}  # from a spreadsheet
    await ana.composer.evaluate(PASTE, cells)
    await expect(chips(ana)).to_have_count(0)
    await ana.composer.evaluate(PASTE, {"text": "photo.png", "file": "photo.png"})  # a file, copied in Finder
    await expect(chips(ana)).to_have_count(1)


async def test_viewer_cannot_attach_files(ana: Person, browser: Browser) -> None:
    """LIVE-06: a viewer has no button to attach files, and cannot drop them."""
    bo = await invited(ana, browser, "Bo")
    await expect(bo.page.get_by_role("button", name="Attach files")).to_be_visible()
    await ana.page.reload()
    await ana.page.get_by_role("button", name="Share").click()
    async with ana.page.expect_response("**/share/member"):
        await ana.page.get_by_role("combobox", name="Role of Bo").select_option("viewer")
    await expect(bo.page.get_by_text("View only.")).to_be_visible()
    await expect(bo.page.get_by_role("button", name="Attach files")).to_have_count(0)
    await bo.page.evaluate(DRAG, ["dragenter", "x"])
    await expect(bo.page.get_by_text("Drop files to attach them")).to_have_count(0)
    bo.check_console()


async def test_chip_of_a_long_name_keeps_its_ending(ana: Person) -> None:
    """UI-09: a long name of a file is shortened in front of its ending."""
    name = "A file whose name goes on and on and on.txt"
    await attach(ana, {"name": name, "mimeType": "text/plain", "buffer": b"Seven"})
    shown = chips(ana).locator(".chip-name")
    await expect(shown).to_have_text(name)
    await expect(chips(ana)).to_have_attribute("data-state", "ready")  # until then its progress redraws it
    overflows = "each => each.scrollWidth > each.clientWidth"
    assert await shown.locator("span").evaluate(overflows)
    assert not await shown.evaluate(overflows)


async def test_unsent_files_are_shown_on_other_devices(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-04: another device shows the files that are not sent yet. Files that one sends disappear on the other."""
    await attach(ana, NOTES, TABLE)
    await uploaded(ana, 2)
    phone = Person(await (await browser.new_context(storage_state=await ana.page.context.storage_state())).new_page())
    await phone.page.goto(ana.page.url)
    await phone.page.evaluate("localStorage.clear()")  # the copied state includes the other browser's storage
    await phone.page.reload()
    await phone.sees_connection("Connected")
    await expect(chips(phone).locator(".chip-name")).to_have_count(2)  # in the order in which they were stored
    await expect(chips(phone).filter(has_text="notes <1>.txt")).to_have_count(1)
    await phone.page.get_by_role("button", name="Remove table.csv").click()
    await expect(chips(phone)).to_have_count(1)
    model.script(reply("I see"))
    await phone.say("What is in it?")
    await expect(ana.answers.first).to_contain_text("I see")
    await expect(chips(ana)).to_have_count(0)
    await ana.page.reload()
    await expect(chips(ana)).to_have_count(0)
    assert "Seven wells, one bridge." in str(model.requests[0].body["messages"][-1]["content"])
    phone.check_console()
