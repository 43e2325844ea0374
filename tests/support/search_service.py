"""A search service on 127.0.0.1 with the formats of SearXNG, Brave Search and Tavily."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TIDES = {"title": "Tide <b>tables</b>", "url": "https://tides.example/today", "content": "High &amp; low\nwater"}
MOON: dict[str, Any] = {"title": "", "url": "https://moon.example/", "content": None}


class Service:
    """A search service on 127.0.0.1 that records its requests."""

    def __init__(self) -> None:
        self.answer: Any = {"results": [TIDES, MOON]}
        self.status = 200
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: dict[str, str] = {}
        self.release = asyncio.Event()
        self.release.set()
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.requests.append((request.method, request.path, dict(request.query), body))
        self.headers = dict(request.headers)
        await self.release.wait()
        data = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        headers = {"Content-Type": "application/json", "Location": "https://elsewhere.example"}
        return web.Response(body=data, status=self.status, headers=headers)


@asynccontextmanager
async def search_service() -> AsyncIterator[Service]:
    """Run a search service, and yield it."""
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield service
    service.release.set()
    await runner.cleanup()
