"""Coming in over HTTP as a browser does: by the printed link, then into a session in which nothing has been said."""

from __future__ import annotations

import re

from aiohttp import ClientSession

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


async def enter(client: ClientSession, link: str) -> str:
    """Use a sign-in link up and begin a session; returns the session's path."""
    async with client.get(link) as page:
        home, html = page.url, await page.text()
    token = TOKEN.search(html)
    assert token, html
    headers = {"Accept": "application/json", "X-CSRFToken": token[1]}
    async with client.post(home.with_path("/sessions/new"), headers=headers) as begun:
        path: str = (await begun.json())["address"]
        return path
