"""Screens outside of sessions: sign-in, the home page, settings, and errors."""

from __future__ import annotations

from playwright.async_api import Page, Route, expect

from tests.browser.screens import Showcase, open_sidebar, say, screen, sign_in_as, speak

PASSWORD = "a long enough passphrase"


@screen
async def sign_in(page: Page, showcase: Showcase) -> None:
    await page.context.clear_cookies()
    await page.goto("/accounts/sign-in/")


@screen
async def sign_in_refused(page: Page, showcase: Showcase) -> None:
    await sign_in(page, showcase)
    await page.locator("[name=username]").fill("ana")
    await page.locator("[name=password]").fill("a wrong passphrase")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_be_visible()


@screen
async def sign_in_link_over(page: Page, showcase: Showcase) -> None:
    await page.context.clear_cookies()
    await page.goto("/accounts/link/used-up")


@screen
async def sign_in_with_link(page: Page, showcase: Showcase) -> None:
    await page.context.clear_cookies()
    await page.goto(showcase.link)


@screen
async def second_step(page: Page, showcase: Showcase) -> None:
    await sign_in(page, showcase)
    await page.locator("[name=username]").fill("kenta")
    await page.locator("[name=password]").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("Code from your authenticator app")).to_be_focused()


@screen
async def account_notices(page: Page, showcase: Showcase) -> None:
    await sign_in_as(page, showcase, "priya")
    await page.goto("/")
    await expect(page.get_by_role("complementary", name="About your account")).to_contain_text("sign-in link")


@screen
async def join(page: Page, showcase: Showcase) -> None:
    await page.context.clear_cookies()
    await page.goto(showcase.invitation)


@screen
async def join_refused(page: Page, showcase: Showcase) -> None:
    await join(page, showcase)
    await page.get_by_label("Your name").fill("Ana")
    await page.get_by_label("User name").fill("mei")
    await page.get_by_label("Password").fill("a long enough passphrase")
    await page.get_by_role("button", name="Join").click()
    await expect(page.get_by_role("alert")).to_be_visible()


@screen
async def join_signed_in(page: Page, showcase: Showcase) -> None:
    await page.goto(showcase.invitation)


@screen
async def join_over(page: Page, showcase: Showcase) -> None:
    await page.goto("/join/used-up")


@screen
async def not_found(page: Page, showcase: Showcase) -> None:
    await page.goto("/sessions/s_000000000000000000000000/")


@screen
async def not_allowed(page: Page, showcase: Showcase) -> None:
    """The error page for a form without a CSRF token."""
    await page.goto("/")
    await page.locator("#begin [name=csrfmiddlewaretoken]").evaluate("field => field.remove()")
    await page.locator("#begin").evaluate("form => { form.text.value = 'x'; form.submit(); }")
    await page.get_by_text("403").wait_for()


@screen
async def broken(page: Page, showcase: Showcase) -> None:
    async def answer(route: Route) -> None:
        await route.fulfill(status=500, body=showcase.broken, content_type="text/html")

    await page.route("**/broken", answer)
    await page.goto("/broken")


@screen
async def home(page: Page, showcase: Showcase) -> None:
    await page.goto("/")
    await expect(page.locator(".home-session time").first).not_to_be_empty()


@screen
async def home_simplified(page: Page, showcase: Showcase) -> None:
    await speak(page, showcase, "zh-hans")
    await home(page, showcase)


@screen
async def home_traditional(page: Page, showcase: Showcase) -> None:
    await speak(page, showcase, "zh-hant")
    await home(page, showcase)


@screen
async def home_refused(page: Page, showcase: Showcase) -> None:
    await home(page, showcase)
    await page.context.set_offline(True)
    await say(page, "Half a thought")
    await expect(page.get_by_role("alert")).to_contain_text("Nothing is lost")


@screen
async def home_keys(page: Page, showcase: Showcase) -> None:
    await home(page, showcase)
    await page.locator("#new-session").press("Control+/")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Ctrl+K")


@screen
async def home_sidebar(page: Page, showcase: Showcase) -> None:
    await home(page, showcase)
    await open_sidebar(page)


@screen
async def settings(page: Page, showcase: Showcase) -> None:
    await page.goto("/settings/")


@screen
async def settings_saved(page: Page, showcase: Showcase) -> None:
    await settings(page, showcase)
    await page.locator("[name=clock][value='24']").check()
    await page.locator("[name=send_key]:not(:checked)").check()
    await page.locator("[name=send_key][value='enter']").check()
    await expect(page.locator("#toasts")).to_contain_text("Saved")


@screen
async def settings_tokens(page: Page, showcase: Showcase) -> None:
    """The settings with a new API token, and one that is about to be revoked."""
    await settings(page, showcase)
    for name in ("Nightly reports", "The pipeline that builds and checks what everyone in this team has written"):
        await page.get_by_label("Token name").fill(name)
        await page.get_by_role("button", name="Create token").click()
        await expect(page.get_by_label("New token")).to_be_focused()
    await page.locator(".revoking summary").last.click()


@screen
async def settings_password(page: Page, showcase: Showcase) -> None:
    await settings(page, showcase)
    await page.locator("#password-title").scroll_into_view_if_needed()
    await page.get_by_role("button", name="Sign out", exact=True).scroll_into_view_if_needed()


@screen
async def two_step(page: Page, showcase: Showcase) -> None:
    """Two-step verification with an app, two passkeys and recovery codes. One passkey is being renamed."""
    await sign_in_as(page, showcase, "kenta")
    await page.goto("/settings/two-step/")
    await page.get_by_role("list", name="Your passkeys").locator("summary").first.click()


@screen
async def two_step_app(page: Page, showcase: Showcase) -> None:
    """The setup of an app, after the page that asks for the password, which it does only once for all screenshots."""
    await sign_in_as(page, showcase, "mei")
    await page.goto("/settings/two-step/app")
    if "/confirm" in page.url:
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Continue").click()
    await page.locator("details summary").click()
    await expect(page.locator(".qr-code svg")).to_be_visible()


@screen
async def two_step_passkey(page: Page, showcase: Showcase) -> None:
    """The setup of a passkey, on localhost, because passkeys need a host name instead of an IP address."""
    # The browser does not send cookies of 127.0.0.1 to localhost.
    home = showcase.address.replace("127.0.0.1", "localhost")
    name, value = showcase.cookies["mei"].split("=", 1)
    await page.context.add_cookies([{"name": name, "value": value, "url": home}])
    await page.goto(f"{home}/settings/two-step/passkey")
    if "/confirm" in page.url:
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()


@screen
async def settings_data(page: Page, showcase: Showcase) -> None:
    await settings(page, showcase)
    await page.locator("#data").scroll_into_view_if_needed()


@screen
async def reference(page: Page, showcase: Showcase) -> None:
    """The API reference."""
    await page.goto("/api/docs")


@screen
async def settings_simplified(page: Page, showcase: Showcase) -> None:
    await speak(page, showcase, "zh-hans")
    await settings(page, showcase)
