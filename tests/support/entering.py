"""Signing in over HTTP like a browser: open the printed link, then create an empty session."""

from __future__ import annotations

import re

from aiohttp import ClientSession
from yarl import URL

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


async def sign_in(client: ClientSession, link: str) -> tuple[URL, str]:
    """Open a sign-in link and press its button. Return the URL to which it redirects and that page's HTML."""
    async with client.get(link) as page:
        assert page.status == 200, link
        values = {"csrfmiddlewaretoken": token_in(await page.text())}
    async with client.post(link, data=values) as page:
        assert page.status == 200, link
        return page.url, await page.text()


def token_in(html: str) -> str:
    """Return the CSRF token of a page's forms."""
    token = TOKEN.search(html)
    assert token, html
    return token[1]


async def enter(client: ClientSession, link: str) -> str:
    """Sign in with a link and create a session. Return the session's path."""
    home, html = await sign_in(client, link)
    headers = {"Accept": "application/json", "X-CSRFToken": token_in(html)}
    async with client.post(home.with_path("/sessions/new"), headers=headers) as begun:
        path: str = (await begun.json())["address"]
        return path
