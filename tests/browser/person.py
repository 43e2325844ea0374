"""A user at a browser: their actions and what they see, by roles and names, and all reports in their console."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urljoin

from playwright.async_api import Browser, Locator, Page, expect

from agents.messages import Json
from tests.browser.console import collect_reports
from tests.support.entering import token_in

PATIENCE = 30_000
# Retries of requests, because a server may close an idle connection just when a request is about to use it.
RETRIES = 2
# Reduced motion, because transitions would take a tenth of the tests' time.
WINDOW: Json = {"viewport": {"width": 1200, "height": 800}, "reduced_motion": "reduce"}
expect.set_options(timeout=PATIENCE)


async def choose_in_account_menu(
    page: Page, name: str, role: Literal["menuitem", "menuitemradio"] = "menuitem"
) -> None:
    await page.get_by_role("button", name="Account:").click()
    await page.get_by_role(role, name=name, exact=True).click()


async def shows_briefly(page: Page, condition: str, argument: str = "") -> None:
    """Wait until a condition on the page holds. It is checked after each change, so a state that ends soon is seen."""
    script = f"""argument => new Promise((resolve) => {{
        const holds = {condition};
        const check = () => holds(argument) && (observer.disconnect(), resolve());
        const observer = new MutationObserver(check);
        observer.observe(document.body, {{ attributes: true, characterData: true, childList: true, subtree: true }});
        check();
    }})"""
    async with asyncio.timeout(PATIENCE / 1000):
        await page.evaluate(script, argument)


@asynccontextmanager
async def without_login(page: Page) -> AsyncIterator[None]:
    """End the login of a page in its browser for the block. Then restore it, as if the user had signed in again."""
    cookies = await page.context.cookies()
    await page.context.clear_cookies(name="parley_session")
    yield
    await page.context.add_cookies([each for each in cookies if each["name"] == "parley_session"])  # type: ignore[misc]


# A part of Chromium's report of a response with a status from 400 to 499.
REFUSED = "responded with a status of 4"


class Person:
    """One browser context with one page, and the user who works in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.reports = collect_reports(page)
        self.ignores_refusals = False
        page.set_default_timeout(PATIENCE)

    @classmethod
    async def enter(cls, browser: Browser, address: str) -> Person:
        context = await browser.new_context(**WINDOW)
        person = cls(await context.new_page())
        await person.page.goto(address)
        button = person.page.get_by_role("button", name="Sign in", exact=True)
        if "/accounts/link/" in address and await button.count():
            await button.click()
            # When the page is loaded, its scripts have run. Before that, keys and clicks have no effect.
            await person.page.wait_for_url(lambda url: "/accounts/link/" not in url)
        return person

    @classmethod
    async def in_a_session(cls, browser: Browser, link: str) -> Person:
        """Sign in and open a new session, as `enter` and `begin` do, without rendering the pages before it."""
        context = await browser.new_context(**WINDOW)
        person = cls(await context.new_page())
        asked = await context.request.get(link)
        home = await context.request.post(link, form={"csrfmiddlewaretoken": token_in(await asked.text())})
        await person._open_new(home.url, token_in(await home.text()))
        return person

    async def begin(self) -> None:
        """Open a new session, from any page."""
        await self._open_new(self.page.url, await self.token())

    async def token(self) -> str:
        """Return the CSRF token of the page."""
        return await self.page.locator("[name=csrfmiddlewaretoken]").first.input_value()

    async def _open_new(self, address: str, token: str) -> None:
        headers = {"Accept": "application/json", "X-CSRFToken": token}
        begun = await self.page.request.post(urljoin(address, "/sessions/new"), headers=headers, max_retries=RETRIES)
        await self.page.goto(urljoin(address, (await begun.json())["address"]))

    def check_console(self) -> None:
        """Fail if the console has reported anything, such as script errors, CSP violations or missing files."""
        wrong = [report for report in self.reports if not (self.ignores_refusals and REFUSED in report)]
        assert not wrong, wrong

    def ignore_refusals(self) -> None:
        """Ignore the browser's own reports of refused requests, including those that come later."""
        self.ignores_refusals = True

    @property
    def composer(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def stop(self) -> Locator:
        return self.page.get_by_role("button", name="Stop")

    @property
    def messages(self) -> Locator:
        """All messages, in order."""
        return self.page.locator("#messages article.message")

    @property
    def answers(self) -> Locator:
        return self.page.locator("#messages article.assistant")

    @property
    def queue(self) -> Locator:
        return self.page.get_by_role("group", name="Queued messages").locator("article")

    async def say(self, text: str) -> None:
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def choose_in_account_menu(self, name: str, role: Literal["menuitem", "menuitemradio"] = "menuitem") -> None:
        await choose_in_account_menu(self.page, name, role)

    async def sees_state(self, status: str) -> None:
        """Wait for the agent's status on the page: idle, thinking, tool_calling."""
        await expect(self.page.locator("main.session")).to_have_attribute("data-status", status)

    async def sees_connection(self, words: str) -> None:
        await expect(self.page.locator("#connection")).to_contain_text(words)

    async def transcript(self) -> list[str]:
        """Return the sender, status and body text of each message, which are the same for all viewers."""
        script = """articles => articles.map(article => [
            article.querySelector('.who')?.textContent,
            article.dataset.status,
            article.querySelector('[data-body], .plain, .tool')?.innerText.trim(),
        ].join(' | '))"""
        result: list[str] = await self.messages.evaluate_all(script)
        return result

    async def bodies(self) -> list[str]:
        """Return the HTML of the answers' blocks, which must be the same live and after a reload."""
        result: list[str] = await self.page.locator("#messages [data-body]").evaluate_all(
            "bodies => bodies.map(body => [...body.children].map(part => part.innerHTML).join(''))"
        )
        return result
