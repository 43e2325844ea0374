"""The account menu, and the home page for users who have just installed Parley."""

from __future__ import annotations

from playwright.async_api import Browser, expect

from tests.browser.gallery import Showcase, visit
from tests.browser.person import Person
from tests.browser.test_accessibility import violations


async def test_account_menu_has_all_entries(ana: Person) -> None:
    """UI-11: the menu has settings, themes, archived sessions, import, the admin for staff, and sign-out."""
    page = ana.page
    await page.get_by_role("button", name="Account:").click()
    menu = page.get_by_role("menu", name="Account")
    items = menu.locator("[role^=menuitem] .menu-label")
    entries = [
        *("Settings", "Workspace settings"),
        *("System theme", "Light theme", "Dark theme"),
        *("Archived sessions", "Import…"),
        *("Keyboard shortcuts", "Admin"),
        "Sign out",
    ]
    await expect(items).to_have_text(entries, use_inner_text=True)
    assert await violations(page) == []
    await menu.get_by_role("menuitem", name="Admin").click()
    await page.wait_for_url("**/admin/")


async def test_theme_that_is_not_stored_is_not_shown(ana: Person) -> None:
    """LIVE-01: if a theme cannot be stored, the page says so and shows the earlier one, as a reload would."""
    ana.ignore_refusals()
    html = ana.page.locator("html")
    await ana.choose_in_account_menu("Light theme", "menuitemradio")
    await expect(html).to_have_attribute("data-theme", "light")
    await ana.page.route("**/settings/preferences", lambda route: route.fulfill(status=403))
    await ana.choose_in_account_menu("Dark theme", "menuitemradio")
    await expect(ana.page.locator("#toasts")).to_contain_text("Something went wrong.")
    await expect(html).to_have_attribute("data-theme", "light")


async def test_sign_out_without_a_password_asks_first(ana: Person) -> None:
    """UI-11: a user without a password is asked first, because they could not sign in again by themselves."""
    page = ana.page
    await ana.choose_in_account_menu("Sign out")
    dialog = page.get_by_role("dialog", name="Sign out without a password?")
    await expect(dialog.get_by_role("link", name="Set a password")).to_be_visible()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await ana.choose_in_account_menu("Sign out")
    await dialog.get_by_role("button", name="Sign out anyway").click()
    await page.wait_for_url("**/accounts/sign-in/**")


async def test_sign_out_in_the_settings_asks_first(ana: Person) -> None:
    """UI-11: signing out in the settings asks the same question. Its link leads to the settings, so the page stays."""
    await ana.page.goto(f"{'/'.join(ana.page.url.split('/')[:3])}/settings/")
    button = ana.page.get_by_role("button", name="Sign out", exact=True)
    dialog = ana.page.get_by_role("dialog", name="Sign out without a password?")
    await button.click()
    await dialog.get_by_role("link", name="Set a password").click()
    await expect(dialog).to_have_count(0)
    await button.click()
    await dialog.get_by_role("button", name="Sign out anyway").click()
    await ana.page.wait_for_url("**/accounts/sign-in/**")


async def test_home_explains_how_to_connect_a_model(browser: Browser, showcase: Showcase) -> None:
    """UI-11: without a model, the home page tells administrators how to connect one, and members whom to ask.

    It also offers to set a missing password.
    """
    member = await visit(browser, showcase, who="mei")
    await member.goto("/")
    await expect(member.locator(".home-hint").first).to_contain_text("Ask your administrator to connect a model.")
    await expect(member.get_by_text("Connect a model", exact=True)).to_have_count(0)
    await member.context.close()
    page = await visit(browser, showcase, who="ana")
    await page.goto("/")
    await page.get_by_text("Connect a model").click()
    await expect(page.locator("#connect")).to_contain_text("OPENAI_API_KEY=")
    await page.get_by_role("link", name="Set a password").click()
    await expect(page.get_by_role("heading", name="Set a password")).to_be_visible()
    await page.context.close()
