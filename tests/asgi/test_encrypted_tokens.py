"""The refusal of API tokens that were sent without encryption to a server that requires HTTPS."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from chat.asgi.encrypted_tokens import EncryptedTokens
from config.asgi import application
from tests.support.socket import Socket

Headers = list[tuple[bytes, bytes]]
TOKEN = (b"authorization", b"Bearer parley_x")


@pytest.fixture(autouse=True)
def _behind_a_proxy(settings: Settings) -> None:
    settings.HTTPS = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


async def passed_on(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b'{"code": "passed on"}'})


async def ask(path: str, headers: Headers) -> tuple[int, str]:
    """Return the status and the code of the response."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    await EncryptedTokens(passed_on)(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])["code"]


@pytest.mark.parametrize("path", ["/api/me", "/mcp"])
@pytest.mark.parametrize("proto", [None, b"http", b"wss"])
async def test_unencrypted_token_is_refused(path: str, proto: bytes | None) -> None:
    """A client learns that others may have read its token."""
    assert await ask(path, [TOKEN, *([(b"x-forwarded-proto", proto)] if proto else [])]) == (403, "https_required")


@pytest.mark.parametrize("headers", [[TOKEN, (b"x-forwarded-proto", b"https")], [], [(b"authorization", b"Basic x")]])
async def test_other_requests_are_passed_on(headers: Headers) -> None:
    assert await ask("/api/me", headers) == (200, "passed on")


async def test_servers_without_https_accept_tokens(settings: Settings) -> None:
    settings.HTTPS = False
    assert await ask("/api/me", [TOKEN]) == (200, "passed on")


@pytest.mark.parametrize(("proto", "is_refused"), [(b"http", True), (b"https", False), (b"wss", False)])
async def test_sockets_with_unencrypted_tokens_are_refused(proto: bytes, is_refused: bool) -> None:
    """LIVE-06: the refusal comes before the socket is accepted. Traefik names the scheme of sockets `wss`."""
    headers = [TOKEN, (b"x-forwarded-proto", proto)]
    async with Socket("/ws/me", headers=headers, app=EncryptedTokens(accepting)) as socket:
        await socket.closed()
        assert socket.accepted is not is_refused


async def accepting(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 1000})


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_server_checks_requests_and_sockets(kind: str) -> None:
    assert isinstance(application.application_mapping[kind], EncryptedTokens)
