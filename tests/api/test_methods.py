"""HEAD and OPTIONS, which every address of the API supports."""

from __future__ import annotations

import pytest
from django.test import Client

from chat.models import JobLease, SecurityEvent, Session, User
from chat.origin import Interface
from chat.services.people.security_log import Kind
from tests.api.asking import token_of
from tests.support.filled import HI, fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(ana: User) -> Client:
    """A program with a token that may only read."""
    return Client(headers={"Authorization": f"Bearer {token_of(ana, 'read')}"})


def test_head_is_get_without_its_body(reader: Client, session: Session) -> None:
    """LIVE-03: HEAD has the headers of GET, also for streams, files and refusals."""
    fill(session, HI)
    here = f"/api/sessions/{session.pk}"
    for path in (
        here,
        f"{here}/messages",
        f"{here}/export",
        f"{here}/steps/stream",
        "/api/sessions/s_none",
        "/api/none",
    ):
        got, without_body = reader.get(path), reader.head(path)
        assert without_body.status_code == got.status_code
        assert b"".join(without_body) == b""
        lengths = {} if got.streaming else {"Content-Length": str(len(got.content))}
        counts = {"Content-Length": "", "RateLimit": ""}
        assert {**dict(without_body.headers), **counts} == {**dict(got.headers), **counts}
        assert without_body.headers.get("Content-Length") == lengths.get("Content-Length")
    tag = reader.head(here)["ETag"]
    assert reader.head(here, headers={"If-None-Match": tag}).status_code == 304
    assert Client().head(here).status_code == 401


def test_head_exports_nothing(reader: Client, session: Session, ana: User) -> None:
    """MSG-12: HEAD begins no export: another one may follow, and the log records none."""
    for path in ("/api/me/export", f"/api/sessions/{session.pk}/export"):
        assert b"".join(reader.head(path)) == b""
    assert not SecurityEvent.objects.filter(kind__in=(Kind.EXPORTED, Kind.PERSON_EXPORTED)).exists()
    assert not JobLease.objects.exists()
    exported = reader.get("/api/me/export")
    assert exported.getvalue().startswith(b"PK")
    [event] = SecurityEvent.objects.filter(kind=Kind.PERSON_EXPORTED)
    assert (event.actor_id, event.face, event.token_id is not None) == (ana.pk, Interface.API, True)


def test_options_lists_the_methods_without_revealing_whether_an_object_exists(session: Session) -> None:
    """MSG-12: OPTIONS lists the methods to every client, without revealing whether an object exists."""
    allowed = "DELETE, GET, HEAD, OPTIONS, PATCH"
    for session_id in (session.pk, "s_none"):
        answer = Client().options(f"/api/sessions/{session_id}")
        assert (answer.status_code, answer["Allow"], answer.content) == (204, allowed, b"")
    only_writing = Client().head(f"/api/sessions/{session.pk}/cancel")
    assert (only_writing.status_code, only_writing["Allow"]) == (405, "OPTIONS, POST")
    assert Client().options("/api/none").status_code == 404
