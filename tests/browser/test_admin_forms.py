"""Forms of the admin in a real browser keep their entries if the login has ended when the user saves them."""

from __future__ import annotations

from urllib.parse import urljoin

from playwright.async_api import Page, expect

from tests.browser.person import Person, without_login
from tests.support.server import Server


async def open_form(person: Person, server: Server, model: str) -> Page:
    await person.page.goto(urljoin(server.address, f"/admin/{model}/add/"))
    return person.page


async def save(page: Page, name: str = "Save") -> None:
    await page.get_by_role("button", name=name, exact=True).click()


async def save_without_login(page: Page) -> None:
    """Save the form after the login has ended, and sign in again."""
    async with without_login(page):
        await save(page)
        await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    await page.reload()  # as after the user has signed in, in this or another tab
    await expect(page.locator(".errornote")).to_have_text("Your entries are back. They aren’t saved yet.")


async def test_added_rows_survive_the_end_of_the_login(ana: Person, server: Server) -> None:
    """ADM-02: a new workspace is filled in again with the members that were added to it, and can be saved."""
    page = await open_form(ana, server, "chat/workspace")
    await page.get_by_label("Name:").fill("Research")
    await page.get_by_role("button", name="Add another Member").click()
    await page.locator(".select2-selection").click()
    await page.get_by_role("option", name="admin", exact=True).click()
    role = page.locator("[name=memberships-0-role]")
    await role.select_option("Owner")
    await save_without_login(page)
    await expect(page.get_by_label("Name:")).to_have_value("Research")
    await expect(page.locator(".select2-selection__rendered")).to_have_text("admin")
    await expect(role.locator("option:checked")).to_have_text("Owner")
    await save(page)
    await expect(page.locator(".messagelist")).to_contain_text("The workspace “Research” was added successfully.")
    ana.check_console()


async def test_chosen_groups_survive_the_end_of_the_login(ana: Person, server: Server) -> None:
    """ADM-02: the form of a person is filled in again with the groups that were chosen in Django's two lists."""
    page = await open_form(ana, server, "auth/group")
    await page.get_by_label("Name:").fill("Support")
    await save(page)
    await page.goto(urljoin(server.address, "/admin/chat/user/"))
    await page.locator("#result_list .field-username a").first.click()
    await page.get_by_label("First name:").fill("Anastasia")
    await page.locator("summary", has_text="Permissions").click()
    await page.locator("#id_groups_from").select_option("Support")
    await page.locator("#id_groups_add").click()
    await save_without_login(page)
    await expect(page.get_by_label("First name:")).to_have_value("Anastasia")
    await expect(page.locator("#id_groups_to option")).to_have_text("Support")
    ana.check_console()


async def test_secrets_do_not_survive_the_end_of_the_login(ana: Person, server: Server) -> None:
    """UI-16: the form of an MCP server is filled in again without its secrets, which the browser does not store."""
    page = await open_form(ana, server, "chat/mcpserver")
    await page.get_by_label("Name:").fill("tickets")
    await page.get_by_label("Secret headers:").fill("Authorization: hidden")
    await page.get_by_label("OAuth client secret:").fill("hidden")
    await save_without_login(page)
    await expect(page.get_by_label("Name:")).to_have_value("tickets")
    await expect(page.get_by_label("Secret headers:")).to_have_value("")
    await expect(page.get_by_label("OAuth client secret:")).to_have_value("")
    assert "hidden" not in await page.evaluate("JSON.stringify(sessionStorage)")
    ana.check_console()


async def test_search_of_a_field_says_that_it_failed_after_the_login_has_ended(ana: Person, server: Server) -> None:
    """ADM-02: the list of a field says why it is empty. The script of the field does not fail at the sign-in page."""
    page = await open_form(ana, server, "chat/approvalrule")
    ana.ignore_refusals()
    async with without_login(page):
        await page.locator(".select2-selection").first.click()
        await expect(page.get_by_role("listbox")).to_have_text("The results could not be loaded.")
    ana.check_console()
