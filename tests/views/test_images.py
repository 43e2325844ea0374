"""The proxy for external images: only images, only from public addresses, only with a signature."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from ipaddress import ip_address
from threading import BoundedSemaphore

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from django.test import AsyncClient

from agents.toolbox.web_client import Policy
from chat.models import User
from chat.rendering.markdown.external_images import signature
from chat.views import external_images as images

pytestmark = pytest.mark.django_db(transaction=True)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ANSWERS = {
    "/a.png": (PNG, "image/png"),
    "/a.txt": (PNG, "text/html"),
    "/script.png": (b"<script>alert(1)</script>", "image/png"),
    "/vector.svg": (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "image/svg+xml"),
    "/large.png": (PNG + b"\0" * 3_000_000, "image/png"),
}


@pytest_asyncio.fixture
async def site() -> AsyncIterator[TestServer]:
    async def answer(request: web.Request) -> web.Response:
        body, kind = ANSWERS[request.path]
        return web.Response(body=body, content_type=kind)

    app = web.Application()
    app.router.add_get("/{name}", answer)
    server = TestServer(app, host="127.0.0.1")
    async with server:
        yield server


@pytest.fixture
def reachable(site: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch that lets the view reach only the test's own site."""
    here = ip_address("127.0.0.1")
    monkeypatch.setattr(images, "POLICY", Policy(lambda address: address == here, ports=(site.port or 0,)))


async def got(user: User, address: str, given: str | None = None) -> tuple[int, str, bytes, str]:
    client = AsyncClient()
    await client.aforce_login(user)
    answer = await client.get("/image", {"address": address, "signature": given or signature(address)})
    policy = answer.headers.get("Content-Security-Policy", "")
    return answer.status_code, answer.headers["Content-Type"], answer.content, policy


@pytest.mark.usefixtures("reachable")
async def test_picture_is_passed_on(site: TestServer, ana: User) -> None:
    """UI-01: a picture is recognized by its bytes, whatever media type its server sends, and served in a sandbox."""
    for name in ("/a.png", "/a.txt"):
        status, kind, body, policy = await got(ana, str(site.make_url(name)))
        assert (status, kind, body[:8]) == (200, "image/png", PNG[:8])
        assert policy == "default-src 'none'; sandbox"


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("name", ["/script.png", "/vector.svg", "/large.png"])
async def test_anything_but_a_picture_is_not_passed_on(site: TestServer, ana: User, name: str) -> None:
    """MSG-12: scripts, SVG and large files are refused."""
    status, _kind, body, _policy = await got(ana, str(site.make_url(name)))
    assert (status, body) == (502, b"")


@pytest.mark.usefixtures("reachable")
async def test_no_more_than_a_few_are_fetched_at_once(
    site: TestServer, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-12: requests to servers that never answer do not pile up; further requests get a Retry-After."""
    monkeypatch.setattr(images, "places", BoundedSemaphore(1))
    address = str(site.make_url("/a.png"))
    with images.places:
        assert (await got(ana, address))[0] == 503
    assert [(await got(ana, address))[0] for _time in range(2)] == [200, 200]


async def test_private_address_is_not_fetched(site: TestServer, ana: User) -> None:
    """MSG-12: a message cannot make the server send requests into its own network."""
    assert (await got(ana, str(site.make_url("/a.png"))))[0] == 502


async def test_address_that_stood_in_no_message_is_not_fetched(ana: User) -> None:
    """MSG-12: only signed addresses are fetched, so the view is not an open proxy."""
    assert (await got(ana, "https://example.org/a.png", signature("https://example.org/b.png")))[0] == 404
