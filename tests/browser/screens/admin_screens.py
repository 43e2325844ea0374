"""Screens of the admin: users, workspaces and agents."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.screens import Showcase, screen, sign_in_as


async def _open(page: Page, showcase: Showcase, address: str) -> None:
    await sign_in_as(page, showcase, "admin")
    await page.goto(f"/admin/chat/{address}")


@screen
async def staff_agents(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "agentpreset/")


@screen
async def staff_agent(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "agentpreset/add/?like=assistant")


@screen
async def staff_agent_refused(page: Page, showcase: Showcase) -> None:
    await staff_agent(page, showcase)
    await page.get_by_label("Model:").fill("none/such")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("No provider here offers")).to_be_visible()


@screen
async def staff_people(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "user/")


@screen
async def staff_person(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "user/")
    await page.locator("#result_list").get_by_role("row", name="mei").first.get_by_role("link").first.click()
    await expect(page.get_by_role("heading", level=1, name="mei")).to_be_visible()


@screen
async def staff_new_person(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "user/add/")


@screen
async def staff_workspaces(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "workspace/")


@screen
async def staff_workspace(page: Page, showcase: Showcase) -> None:
    await staff_workspaces(page, showcase)
    await page.locator("#result_list tbody").get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="Members")).to_be_visible()


@screen
async def staff_kept_workspace(page: Page, showcase: Showcase) -> None:
    await staff_workspace(page, showcase)
    await page.get_by_role("link", name="Delete").click()
    await expect(page.get_by_text("This can’t be deleted")).to_be_visible()


@screen
async def staff_shares(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "share/")


@screen
async def staff_tokens(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "apitoken/")


@screen
async def staff_token(page: Page, showcase: Showcase) -> None:
    await staff_tokens(page, showcase)
    await page.get_by_role("link", name="Nightly report", exact=True).click()
    await expect(page.get_by_role("heading", name="Nightly report")).to_be_visible()


@screen
async def staff_deleted_session(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "session/?status__exact=deleted")
    await page.get_by_role("link", name="Deleted by mistake").click()
    await expect(page.get_by_role("button", name="Restore")).to_be_visible()


@screen
async def staff_invitations(page: Page, showcase: Showcase) -> None:
    await _open(page, showcase, "invitation/")
