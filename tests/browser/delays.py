"""Responses that reach the page later than the server has sent them."""

from __future__ import annotations

from asyncio import Event

from playwright.async_api import Route


async def delay_response(route: Route, arrives: Event, read: Event | None = None) -> None:
    """Read the response to a request of the page, set `read`, and pass the response on when `arrives` is set."""
    # Playwright may use a connection that the server is closing.
    response = await route.fetch(max_retries=2)
    if read:
        read.set()
    await arrives.wait()
    await route.fulfill(response=response)
