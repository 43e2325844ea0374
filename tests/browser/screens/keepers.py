"""The admin: people, workspaces and agents."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.screens import House, screen, sign_in_as


async def _open(page: Page, house: House, address: str) -> None:
    await sign_in_as(page, house, "admin")
    await page.goto(f"/admin/chat/{address}")


@screen
async def staff_agents(page: Page, house: House) -> None:
    await _open(page, house, "agentpreset/")


@screen
async def staff_agent(page: Page, house: House) -> None:
    await _open(page, house, "agentpreset/add/?like=assistant")


@screen
async def staff_agent_refused(page: Page, house: House) -> None:
    await staff_agent(page, house)
    await page.get_by_label("Model:").fill("none/such")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("No provider here offers")).to_be_visible()


@screen
async def staff_people(page: Page, house: House) -> None:
    await _open(page, house, "user/")


@screen
async def staff_person(page: Page, house: House) -> None:
    await _open(page, house, "user/")
    await page.locator("#result_list").get_by_role("row", name="mei").first.get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="Change person")).to_be_visible()


@screen
async def staff_new_person(page: Page, house: House) -> None:
    await _open(page, house, "user/add/")


@screen
async def staff_workspaces(page: Page, house: House) -> None:
    await _open(page, house, "workspace/")


@screen
async def staff_workspace(page: Page, house: House) -> None:
    await staff_workspaces(page, house)
    await page.locator("#result_list tbody").get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="Change workspace")).to_be_visible()


@screen
async def staff_kept_workspace(page: Page, house: House) -> None:
    await staff_workspace(page, house)
    await page.get_by_role("link", name="Delete").click()
    await expect(page.get_by_text("This cannot be deleted")).to_be_visible()


@screen
async def staff_shares(page: Page, house: House) -> None:
    await _open(page, house, "share/")


@screen
async def staff_tokens(page: Page, house: House) -> None:
    await _open(page, house, "apitoken/")


@screen
async def staff_token(page: Page, house: House) -> None:
    await staff_tokens(page, house)
    await page.get_by_role("link", name="Nightly report").click()
    await expect(page.get_by_role("heading", name="View API token")).to_be_visible()


@screen
async def staff_deleted_session(page: Page, house: House) -> None:
    await _open(page, house, "session/?status__exact=deleted")
    await page.get_by_role("link", name="Deleted by mistake").click()
    await expect(page.get_by_role("button", name="Bring it back")).to_be_visible()


@screen
async def staff_invitations(page: Page, house: House) -> None:
    await _open(page, house, "invitation/")
