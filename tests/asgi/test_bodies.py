"""The size and pace of bodies, decided before Django reads them. tests/servers has the same over real connections."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.urls import resolve, reverse

from chat.api.api import api
from chat.asgi import bodies
from chat.asgi.bodies import ANONYMOUS_LIMIT, BodyLimits, limit_of
from chat.models import User
from chat.services.people import api_tokens
from tests.access.test_sockets import cookie_of
from tests.support.testing_node import TestNode

Message = dict[str, Any]
Headers = list[tuple[bytes, bytes]]


async def reading(scope: Message, receive: Callable[[], Awaitable[Message]], send: Any) -> None:
    """Read the whole body like Django, and answer with its size and the headers about it."""
    size = 0
    while True:
        message = await receive()
        size += len(message["body"])
        if not message["more_body"]:
            break
    declared = dict(scope["headers"]).get(b"content-length", b"")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps([size, declared.decode()]).encode()})


async def ask(path: str, *parts: bytes, headers: Headers | None = None, pause: asyncio.Event | None = None) -> Any:
    """Send a body in parts, without its length unless the headers give it; return the status and the answer."""
    waiting = list(parts)
    sent: list[Message] = []

    async def receive() -> Message:
        if pause is not None and len(waiting) == 1:
            await pause.wait()
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = headers or [(b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    await BodyLimits(reading)(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def declared(size: int, *more: tuple[bytes, bytes]) -> Headers:
    return [(b"content-length", str(size).encode()), *more]


async def test_small_chunked_body_passes_and_gets_a_content_length() -> None:
    """A small chunked body gets a Content-Length, because Django would treat the form as empty without one."""
    assert await ask("/api/sessions", b"12345", b"67890") == (200, [10, "10"])


@pytest.mark.parametrize("headers", [declared(-1), declared(5, (b"transfer-encoding", b"chunked"))])
async def test_lengths_that_make_no_sense_are_refused(headers: Headers) -> None:
    status, problem = await ask("/api/sessions", b"12345", headers=headers)

    assert (status, problem["code"]) == (400, "malformed")


async def test_body_that_stops_coming_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is on the pace, not on the total time: a client that sends for long at a good pace can finish."""
    monkeypatch.setattr(bodies, "GRACE_SECONDS", 0.01)

    status, problem = await ask("/api/sessions", b"1", b"2", pause=asyncio.Event())

    assert (status, problem["code"]) == (408, "too_slow")
    monkeypatch.setattr(bodies, "SLOWEST_BYTES_PER_SECOND", 1)
    patience = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, patience.set)
    assert (await ask("/api/sessions", b"1" * 3600, b"2", pause=patience))[0] == 200


async def test_more_than_a_megabyte_is_for_those_who_are_signed_in(node: TestNode, ana: User) -> None:
    much = [b"x" * 600_000] * 2
    size = declared(1_200_000)
    _token, secret = await node.do(lambda: api_tokens.create(user=ana, name="Script", scope="write", days=0))
    cookie = await node.do(cookie_of, ana)
    chunked = (b"transfer-encoding", b"chunked")

    for headers in ([chunked], size, declared(5), [chunked, (b"authorization", b"Bearer parley_" + b"x" * 43)]):
        assert (await ask("/api/sessions", *much, headers=headers))[0] == 413
    for headers in ([chunked, cookie], [*size, (b"authorization", f"Bearer {secret}".encode())]):
        assert await ask("/api/sessions", *much, headers=headers) == (200, [1_200_000, "1200000"])


async def test_database_that_is_away_is_no_refusal_for_good(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(scope: Message) -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(bodies, "is_signed_in", away)

    status, problem = await ask("/api/sessions", b"x", headers=declared(ANONYMOUS_LIMIT + 1))

    assert (status, problem["code"]) == (503, "unavailable")


@pytest.mark.django_db
def test_limits_are_those_of_the_address(settings: Any, ana: User) -> None:
    settings.MAX_ATTACHMENT_MB, settings.MAX_IMPORT_MB = 3, 7
    megabyte = 1024 * 1024

    sizes = {
        reverse("session-attachments", args=["s_0"]): 3,
        reverse("new-session-attachments"): 3,
        reverse("api:upload_attachment", args=["s_0"]): 3,
        reverse("api:list_knowledge", args=[1]): 3,
        reverse("import-file"): 7,
        reverse("api:import_sessions"): 7,
        reverse("settings"): 10,
    }
    for address, limit in sizes.items():
        assert limit_of(address).size == limit * megabyte + bodies.FORM_OVERHEAD
    for address in ("/", "/no/such/address", reverse("api:import_sessions") + "/"):
        assert limit_of(address).size == settings.DATA_UPLOAD_MAX_MEMORY_SIZE


def test_every_operation_that_takes_a_file_has_a_limit() -> None:
    """An operation with a file has its own limit; without one, it would refuse files larger than a message."""
    takes_files = {
        resolve(re.sub(r"{\w+}", "s_0", path)).view_name
        for path, operations in api.get_openapi_schema()["paths"].items()
        for operation in operations.values()
        if "multipart/form-data" in operation.get("requestBody", {}).get("content", {})
    }
    assert takes_files <= set(bodies.UPLOADS)
    assert takes_files
