"""Responses that reach the page later than the server has sent them, or never."""

from __future__ import annotations

import asyncio
from asyncio import Event

from playwright.async_api import Page, Route

# Resolves after the handlers of what has arrived. Tests may have replaced the page's timers.
HANDLED = """new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;
  port2.postMessage("");
}).then(() => {})"""


async def lose_next_response(page: Page, pattern: str) -> None:
    """Let the server carry out the next POST request that matches, and let the connection break before the response."""
    is_lost = False

    async def lose(route: Route) -> None:
        nonlocal is_lost
        if is_lost or route.request.method != "POST":
            await route.fallback()
            return
        is_lost = True
        await route.fetch(max_retries=2)
        await route.abort()

    await page.route(pattern, lose)


class Delay:
    """Holds back the responses to the requests of a page until `release` is called."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.routes: list[Route] = []
        self._read, self._released = Event(), Event()

    @classmethod
    async def next_response(cls, page: Page, pattern: str) -> Delay:
        """Delay the response to the next request that matches `pattern`."""
        delay = cls(page)
        await page.route(pattern, delay._hold, times=1)
        return delay

    @classmethod
    async def all_responses(cls, page: Page, pattern: str) -> Delay:
        """Delay the responses to all requests that match `pattern`. Those requested after `release` pass at once."""
        delay = cls(page)
        await page.route(pattern, delay._hold)
        return delay

    async def read(self) -> None:
        """Wait until the server has answered the first request."""
        async with asyncio.timeout(20):
            await self._read.wait()

    async def release(self) -> None:
        """Pass the responses on, and wait until the page has the first one and has run its handler."""
        await self.read()
        first = self.routes[0].request
        async with self.page.expect_response(lambda response: response.request == first):
            self._released.set()
        await self.page.evaluate(HANDLED)

    async def _hold(self, route: Route) -> None:
        self.routes.append(route)
        # Playwright may use a connection that the server is closing.
        response = await route.fetch(max_retries=2)
        self._read.set()
        await self._released.wait()
        await route.fulfill(response=response)
