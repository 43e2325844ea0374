"""Malformed bodies and headers: each is refused with a message, and nothing is lost or written."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client
from pytest_django.fixtures import Settings

from chat.models import ChatMessage, Session, User
from tests.api.asking import Asker, code, token_of
from tests.support.filled import HI, fill

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
JSON = "application/json"
BROKEN = (
    (b"", 422),
    (b"{", 400),
    (b"nul", 400),
    (b"\xff\xfe\x00", 400),
    (b'"\xed\xa0\x80"', 422),
    (b"[" * 100_000, 400),
    (b'{"text":' * 50_000, 400),
    (b'{"text":' + b"9" * 5000 + b"}", 400),
    (b'{"text":1e999}', 422),
    (b'{"text":NaN}', 422),
    (b"null", 422),
    (b"[]", 422),
    (b'"text"', 422),
    (b'{"text":null}', 422),
    (b'{"text":["Hi"]}', 422),
    (b'{"text":"a\\u0000b"}', 422),
    (b'{"text":"a\\ud800b"}', 422),
    (b'{"text":"Hi","key":"a\\u0000b"}', 422),
    (b'{"text":"Hi","key":""}', 422),
    (b'{"text":"Hi","\\ud800":1}', 422),
    (b'{"text":"Hi","attachments":["a\\u0000b"]}', 422),
    (b'{"text":"Hi","attachments":["a_none"]}', 422),
    (b'{"text":"   "}', 422),
)
KINDS = (
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    "text/plain",
    "text/plain; charset=nonsense",
    "nonsense",
    "",
    "\0",
)


@pytest.fixture
def address(session: Session) -> str:
    return f"/api/sessions/{session.pk}/messages"


@pytest.fixture
def client(ana: User) -> Client:
    return Client(headers={"Authorization": f"Bearer {token_of(ana)}"})


@pytest.mark.parametrize(("body", "status"), BROKEN, ids=lambda value: str(value)[:30])
def test_broken_body_is_refused(client: Client, address: str, body: bytes, status: int) -> None:
    """MSG-12: a malformed body is refused with a problem that explains the error."""
    answer = client.post(address, body, JSON)
    assert code(answer)[0] == status
    refusal = answer.json()
    assert refusal["detail"]
    assert len(answer.content) < 5000
    assert not ChatMessage.objects.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_body_that_is_not_sent_as_json_is_refused(client: Client, session: Session, ana: User, kind: str) -> None:
    """MSG-12: a body that is not sent as JSON, as by a form of another site, is refused with a token or a cookie."""
    page = Client()
    page.force_login(ana)
    for who in (client, page):
        for method, address in (("POST", f"{session.pk}/messages"), ("PATCH", session.pk), ("POST", "")):
            path = f"/api/sessions/{address}".rstrip("/")
            answer = who.generic(method, path, b'{"text":"Hi"}', content_type=kind)
            assert code(answer)[0] in (415, 400), (kind, method)
    assert not ChatMessage.objects.exists()


def test_too_much_is_refused(client: Client, address: str, settings: Settings) -> None:
    """MSG-12: requests beyond the limit of a body, and texts beyond that of a message, are refused."""
    settings.MAX_MESSAGE_CHARS = 100
    assert code(client.post(address, {"text": "x" * 101}, JSON)) == (422, "too_long")
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert code(client.post(address, {"text": "x" * 1001}, JSON)) == (413, "too_large")


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "x" * 5000},
        {"If-Match": '"' + "9" * 40 + '.0000000000000000"'},
        {"If-Match": "\xff"},
        {"If-None-Match": '"' * 1000},
        {"If-None-Match": "\xff"},
        {"Accept-Language": "x" * 600},
        {"Cookie": f"{configured.SESSION_COOKIE_NAME}=\xff%00"},
        {"X-CSRFToken": "\xff"},
        {"Authorization": "Basic \xff"},
        {"Authorization": "Bearer"},
        {"Authorization": "\0"},
    ],
    ids=str,
)
def test_odd_headers_do_no_harm(client: Client, session: Session, headers: dict[str, Any]) -> None:
    """Malformed headers are ignored or refused, without a server error (MSG-12)."""
    row = fill(session, HI)[0]
    for path in (f"/api/sessions/{session.pk}", f"/api/sessions/{session.pk}/messages/{row.pk}"):
        assert client.get(path, headers=headers).status_code in (200, 401)
        answer = client.patch(path, {}, JSON, headers=headers)
        assert answer.status_code in (200, 401, 412)


def test_large_numbers_are_refused(asker: Asker, session: Session) -> None:
    """MSG-12: invalid revisions and places, such as negative or too large numbers, are refused."""
    row = fill(session, HI)[0]
    for number in (-1, 2**62, 2**63, 10**30, 1.5, True, "1"):
        answer = asker.patch(f"/api/sessions/{session.pk}/messages/{row.pk}", {"text": "x", "revision": number})
        assert code(answer) == (422, "malformed")
        assert code(asker.post(f"/api/sessions/{session.pk}/read", {"revision": number})) == (422, "malformed")
    for query in (
        "before=1&after=2",
        "turn=%00",
        "before=-1",
        "after=99999999999999999999",
        "before=x",
        "limit=0",
        "limit=201",
        "after=%00",
    ):
        assert code(asker.get(f"/api/sessions/{session.pk}/messages?{query}")) == (422, "malformed")


def test_methods_that_are_none(client: Client, session: Session) -> None:
    """MSG-12: unsupported methods get 405 with the supported ones."""
    for method in ("PUT", "TRACE", "NONSENSE"):
        answer = client.generic(method, f"/api/sessions/{session.pk}")
        assert (answer.status_code, answer["Allow"]) == (405, "DELETE, GET, HEAD, OPTIONS, PATCH")


def test_body_of_an_operation_without_one_is_refused(asker: Asker, session: Session) -> None:
    """MSG-12: fields that would be ignored are refused, so that a limit in the wrong place does not withdraw anything.

    An empty object or list is no field.
    """
    rows = fill(session, HI)
    retry = f"/api/sessions/{session.pk}/messages/{rows[0].pk}/retry"
    for body in ({"preview": True}, {"at_most": 0}, [1]):
        answer = asker.post(retry, body)
        assert (*code(answer), "query parameters: at_most, edited, preview" in answer.json()["detail"]) == (
            422,
            "malformed",
            True,
        )
    assert ChatMessage.objects.filter(removed_at__isnull=False).count() == 0
    here = f"/api/sessions/{session.pk}"
    assert code(asker.post(f"{here}/cancel", {"id": "m_1"})) == (422, "malformed")
    assert asker.post(f"{here}/cancel").status_code == 200
    assert asker.post(f"{here}/cancel", {}).status_code == 200
    assert asker.post(f"{here}/cancel", []).status_code == 200
    assert code(asker.put(f"{here}/agents/none", {"model": "one"})) == (422, "malformed")
