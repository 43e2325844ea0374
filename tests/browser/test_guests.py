"""Guests, the export of a user's own data, erasure and sign-out, in a real browser."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from urllib.parse import urljoin

from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited


async def test_guest_works_in_one_session_only(ana: Person, browser: Browser) -> None:
    """LIVE-06: a guest has only that session until they are made a member.

    The owner sees who is a guest, and how many uses a link has left.
    """
    gil = await invited(ana, browser, "Gil")
    page = gil.page
    await expect(page.locator("#new-session")).to_have_count(0)
    await page.get_by_role("button", name="Account:").click()
    await expect(page.get_by_role("menuitem", name="Settings")).to_be_visible()
    for name in ("Import…", "Admin"):
        await expect(page.get_by_role("menuitem", name=name)).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(page.locator("#model")).to_have_count(0)
    await page.get_by_role("button", name="More", exact=True).click()
    await expect(page.get_by_role("menuitem", name="Removed messages")).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Fork session")).to_have_count(0)
    await page.keyboard.press("Escape")
    await gil.say("/new")
    await expect(page.locator("#notices")).to_contain_text("/new")
    await page.goto(urljoin(page.url, "/"))
    await expect(page.get_by_role("heading", name="Welcome, Gil")).to_be_visible()
    await expect(page.get_by_role("textbox", name="First message")).to_have_count(0)

    await ana.page.get_by_role("button", name="Share").click()
    dialog = ana.page.get_by_role("dialog")
    await expect(dialog.locator(".people")).to_contain_text("gil · Guest")
    await expect(dialog.locator(".links")).to_have_count(0)  # the link was for one user
    await dialog.get_by_label("Invite", exact=True).select_option("5")
    await dialog.get_by_role("button", name="Create link").click()
    await expect(dialog.locator(".links")).to_contain_text("Viewer · 5 of 5 uses left")

    await ana.page.goto(urljoin(ana.page.url, "/settings/"))
    await ana.page.get_by_role("button", name="Make a member · Gil").click()
    await expect(ana.page.locator("#toasts")).to_contain_text("Gil is now a member of “Home”.")
    await expect(ana.page.locator("#guests")).to_have_count(0)
    await page.reload()
    await expect(page.get_by_role("textbox", name="First message")).to_be_visible()
    gil.check_console()


async def test_removal_on_a_phone_has_its_buttons_in_one_row(ana: Person, browser: Browser) -> None:
    """On a phone, “Cancel” is beside the button that removes a guest, below the whole text."""
    gil = await invited(ana, browser, "Gil")
    await ana.page.set_viewport_size({"width": 390, "height": 844})
    await ana.page.goto(urljoin(ana.page.url, "/settings/"))
    guest = ana.page.locator("#guests li")
    await guest.locator("summary").click()
    text, remove, cancel = [
        await each.bounding_box()
        for each in (
            guest.locator(".help").last,
            guest.get_by_role("button", name="Remove guest"),
            guest.locator("summary"),
        )
    ]
    assert text
    assert remove
    assert cancel
    assert abs(remove["y"] - cancel["y"]) < 1
    assert text["y"] + text["height"] <= remove["y"]
    assert text["width"] > 300
    await guest.locator("summary").click()
    await expect(guest.get_by_role("button", name="Remove guest")).to_be_hidden()
    gil.check_console()


async def test_user_exports_their_data_and_leaves_nothing_in_the_browser(ana: Person, tmp_path: Path) -> None:
    """Users export their data in the settings.

    Sign-out asks first, and then deletes drafts and unsent messages from the browser.
    """
    page = ana.page
    session = page.url.rstrip("/").rpartition("/")[2]
    await ana.composer.fill("A secret draft")
    await page.wait_for_function("Object.keys(localStorage).some(name => name.startsWith('parley:draft:'))")
    await page.goto(urljoin(page.url, "/settings/"))
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export").click()
    download = await downloading.value
    assert download.suggested_filename == "Parley admin.zip"
    await download.save_as(tmp_path / "export.zip")
    names = zipfile.ZipFile(io.BytesIO((tmp_path / "export.zip").read_bytes())).namelist()
    assert any(name.startswith(f"sessions/{session}") and name.endswith("session.md") for name in names)

    await page.evaluate("localStorage.setItem('parley:outbox:1:s', '[{}]')")
    await page.evaluate("localStorage.setItem('parley:theme', 'dark')")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await page.get_by_role("button", name="Sign out anyway").click()
    question = page.get_by_role("dialog", name="Sign out and discard unsent messages?")
    await question.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await question.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/accounts/sign-in/**")
    left = await page.evaluate("[...Object.keys(localStorage), ...Object.keys(sessionStorage)]")
    assert [name for name in left if name != "parley:theme"] == []


async def test_erased_session_closes_where_it_is_open(ana: Person, browser: Browser) -> None:
    """LIVE-06: the admin pages ask once and report what is erased, and every open page of the session closes."""
    gil = await invited(ana, browser, "Gil")
    await gil.say("Hello")
    await expect(gil.messages.first).to_be_visible()
    session = ana.page.url.rstrip("/").rpartition("/")[2]
    staff = await ana.page.context.new_page()
    await staff.goto(urljoin(ana.page.url, f"/admin/chat/session/{session.replace('_', '_5F')}/change/"))
    await staff.get_by_role("button", name="Erase…").click()
    await expect(staff.locator("#content")).to_contain_text("This can’t be undone.")
    await staff.get_by_label("Erase permanently").check()
    await staff.get_by_role("button", name="Erase", exact=True).click()
    await expect(staff.locator(".messagelist")).to_contain_text("Erased 1 item.")
    for person in (ana, gil):
        await expect(person.page.get_by_text("You no longer have access.").first).to_be_visible()
    await gil.page.goto(urljoin(gil.page.url, "/"))
    await expect(gil.page.get_by_text("No sessions are shared with you.")).to_be_attached()
