"""The settings of a workspace in a real browser: members, their roles, and what owners and admins see of others."""

from __future__ import annotations

from urllib.parse import urljoin

from playwright.async_api import Browser, Page, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited


async def open_workspace(person: Person) -> Page:
    await person.choose_in_account_menu("Workspace settings")
    await expect(person.page.get_by_role("heading", name="Members")).to_be_visible()
    return person.page


async def change(page: Page, name: str, role: str) -> None:
    await page.locator("summary", has_text=name).press("Enter")
    await page.get_by_label(f"Role · {name}").select_option(label=role)
    await page.get_by_role("button", name="Save role").locator("visible=true").press("Enter")


async def test_owner_changes_roles_and_takes_a_removal_back(ana: Person, browser: Browser) -> None:
    """LIVE-06: a guest becomes an admin, manages others but no owner, and is removed and brought back."""
    gil = await invited(ana, browser, "Gil")
    session = gil.page.url
    page = await open_workspace(ana)
    await change(page, "Gil", "Admin")
    await expect(page.locator("#toasts")).to_contain_text("Gil is now: Admin")
    await expect(page.locator(".members li", has_text="Gil")).to_contain_text("Admin")

    await gil.page.goto(urljoin(session, "/"))
    theirs = await open_workspace(gil)
    await expect(theirs.get_by_role("heading", name="Usage")).to_be_visible()
    await expect(theirs.locator("summary")).to_have_count(1)  # their own: the owner is out of reach
    # The last owner cannot leave.
    await page.locator(".members li", has_text="(you)").locator("summary").click()
    await page.get_by_role("button", name="Leave workspace").click()
    await expect(page.get_by_role("alert")).to_contain_text("A workspace needs an owner.")
    ana.complaints.clear()  # the status of the refusal

    await page.locator(".members li", has_text="Gil").locator("summary").click()
    await page.get_by_role("button", name="Remove from workspace").click()
    await expect(page.locator("#toasts")).to_contain_text("Gil was removed.")
    assert (await theirs.request.get(session)).status == 404
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator("#toasts")).to_contain_text("Gil is a member again.")
    assert (await theirs.request.get(session)).status == 200
    gil.complain()


async def test_member_sees_the_members_and_leaves(ana: Person, browser: Browser) -> None:
    """LIVE-06: a member sees who is there, changes no one, and may leave."""
    gil = await invited(ana, browser, "Gil")
    page = await open_workspace(ana)
    await change(page, "Gil", "Member")
    await expect(page.locator("#toasts")).to_contain_text("Gil is now: Member")
    await gil.page.goto(urljoin(gil.page.url, "/"))
    theirs = await open_workspace(gil)
    await expect(theirs.get_by_role("heading", name="Usage")).to_have_count(0)
    await theirs.locator("summary", has_text="Gil").click()
    await theirs.get_by_role("button", name="Leave workspace").click()
    await expect(theirs.get_by_role("heading", name="Welcome, Gil")).to_be_visible()
    gil.complain()
