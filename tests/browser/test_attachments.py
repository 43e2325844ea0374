"""Files in messages in a real browser. Their space is reserved before they load, and a click shows the full size."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Route, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_uploads import attach, chips
from tests.support import files
from tests.wire.server import WireServer

RED: FilePayload = {"name": "red.png", "mimeType": "image/png", "buffer": files.picture("PNG", (1600, 800))}
BLUE: FilePayload = {"name": "blue.jpg", "mimeType": "image/jpeg", "buffer": files.picture("JPEG", (300, 600))}
PAPER: FilePayload = {"name": "Übersicht.pdf", "mimeType": "application/pdf", "buffer": files.pdf("Hello")}


async def send(person: Person, text: str, *payloads: FilePayload) -> None:
    await attach(person, *payloads)
    await expect(chips(person).locator(".chip-name")).to_have_count(len(payloads))
    await person.say(text)
    await expect(person.answers.last).to_be_visible()
    await person.sees_state("idle")


def pictures(person: Person) -> Locator:
    return person.page.get_by_role("list", name="Images").get_by_role("link")


@pytest.mark.any_browser
async def test_all_users_see_the_files_of_a_message(ana: Person, browser: Browser, model: WireServer) -> None:
    """LIVE-01, UI-01: all users see images and documents, live and after a reload. The model gets the PDF's text."""
    model.script(reply("I see"))
    bo = await invited(ana, browser, "Bo")
    await send(ana, "Look", RED, PAPER)
    for person in (ana, bo):
        await expect(pictures(person).get_by_role("img", name="red.png")).to_be_visible()
        await expect(person.page.get_by_role("link", name="Übersicht.pdf")).to_contain_text("1 page")
    live = await bo.page.locator("#messages .user .bubble").inner_html()
    await bo.page.reload()
    assert await bo.page.locator("#messages .user .bubble").inner_html() == live
    assert "Hello" in str(model.requests[0].body["messages"][-1]["content"])
    bo.check_console()


async def test_space_of_an_image_is_reserved(ana: Person, model: WireServer) -> None:
    """UI-01: the space of an image is reserved, so that content below it does not jump."""
    model.script(reply("I see"))
    held: asyncio.Queue[Route] = asyncio.Queue()
    await send(ana, "Look", RED)
    await ana.page.route("**/thumb", held.put)
    await ana.page.reload()
    image = pictures(ana).get_by_role("img")
    before = await image.bounding_box()
    assert before is not None
    assert (before["width"], before["height"]) == (360, 180)
    async with ana.page.expect_response("**/thumb"):
        await (await held.get()).continue_()
    await expect(image).to_have_js_property("complete", True)
    assert await image.bounding_box() == before


async def test_images_open_large_and_change_by_keys(ana: Person, model: WireServer) -> None:
    """UI-01: Enter opens an image, the arrow keys wrap around, and Escape closes it and restores the focus."""
    model.script(reply("I see"))
    await send(ana, "", RED, BLUE)
    await pictures(ana).first.press("Enter")
    dialog = ana.page.get_by_role("dialog", name="Image", exact=True)
    await expect(dialog).to_contain_text("1 of 2")
    await expect(dialog.get_by_role("img", name="red.png")).to_have_js_property("naturalWidth", 1600)
    await ana.page.keyboard.press("ArrowRight")
    await expect(dialog.get_by_role("img", name="blue.jpg")).to_have_js_property("naturalHeight", 600)
    await dialog.get_by_role("button", name="Next image").click()
    await expect(dialog.get_by_role("img", name="red.png")).to_be_visible()
    await ana.page.keyboard.press("ArrowLeft")
    await ana.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(pictures(ana).nth(1)).to_be_focused()

    await ana.page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("2 of 2")
    await ana.messages.first.evaluate("message => message.remove()")  # another user deletes it
    await ana.page.keyboard.press("Escape")
    await expect(ana.page.locator("#main")).to_be_focused()


async def test_attached_html_never_runs(ana: Person, model: WireServer) -> None:
    """MSG-12: an attached HTML page is a download, and its script never runs."""
    model.script(reply("I see"))
    evil: FilePayload = {"name": "a.html", "mimeType": "text/html", "buffer": b"<script>alert(1)</script>"}
    await send(ana, "Open it", evil)
    async with ana.page.expect_download() as download:
        await ana.page.get_by_role("link", name="a.html").click()
    assert (await download.value).suggested_filename == "a.html"
