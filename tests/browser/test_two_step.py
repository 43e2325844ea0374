"""Two-step verification in a real browser: set up and use a passkey and an authenticator app, under the strict CSP."""

from __future__ import annotations

from playwright.async_api import Browser, Page, Route, expect

from tests.browser.person import Person
from tests.support.second_factors import code_of
from tests.support.server import Server

PASSWORD = "a long enough passphrase"
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


async def test_passkey_and_app_are_set_up_and_sign_in(browser: Browser, server: Server) -> None:
    """UI-09: a user sets up a passkey and an app by keyboard. The passkey signs in alone.

    The app's code is asked for after the password.
    """
    # Browsers do not support passkeys at IP addresses.
    home = f"http://localhost:{server.port}/"
    person = await Person.enter(browser, server.link.replace("127.0.0.1", "localhost"))
    page = person.page
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("WebAuthn.enable")
    await cdp.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})

    await page.goto(f"{home}settings/")
    await page.get_by_label("New password", exact=True).fill(PASSWORD)
    await page.get_by_label("Repeat the new password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("Password changed.")

    await page.goto(f"{home}settings/two-step/")
    await follow(page, "Add a passkey")
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await expect(page.get_by_role("button", name="Continue")).to_be_enabled()
    await page.keyboard.type("Laptop")
    await page.keyboard.press("Enter")
    codes = page.locator("#codes li")
    await expect(codes).to_have_count(10)
    await follow(page, "I have saved them")
    await expect(page.get_by_role("list", name="Your passkeys")).to_contain_text("Laptop")

    await follow(page, "Set up an app")
    await page.locator("details summary").press("Enter")
    secret = (await page.locator(".setup-key code").inner_text()).replace(" ", "")
    await page.get_by_label("Code", exact=True).fill(code_of(secret))
    await page.keyboard.press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("Authenticator app set up.")

    await sign_out(page, home)
    passkey = page.get_by_role("button", name="Sign in with a passkey")
    await expect(passkey).to_be_enabled()
    await passkey.press("Enter")
    await expect(page).to_have_url(home)

    await sign_out(page, home)
    await page.get_by_label("User name").fill("admin")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Code from your authenticator app")).to_be_focused()
    await page.keyboard.type(code_of(secret))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(home)
    person.check_console()


async def test_refused_challenge_shows_the_wait(browser: Browser, server: Server) -> None:
    """If too many users of a network sign in by passkey, the page shows for how long to wait."""
    refusal = "Too many requests. Try again in 9 minutes."

    async def refuse(route: Route) -> None:
        accepts_json = await route.request.header_value("Accept") == "application/json"
        await route.fulfill(status=429, **({"json": {"message": refusal}} if accepts_json else {"body": "<p>A page"}))

    context = await browser.new_context()
    page = await context.new_page()
    await page.route("**/passkey", refuse)
    await page.goto(f"http://localhost:{server.port}/accounts/sign-in/")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("alert")).to_have_text(refusal)
    await context.close()


async def follow(page: Page, name: str) -> None:
    """Follow a link by keyboard."""
    await page.get_by_role("link", name=name).press("Enter")


async def sign_out(page: Page, home: str) -> None:
    await page.goto(f"{home}settings/")
    await page.get_by_role("button", name="Sign out", exact=True).press("Enter")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
