"""What a browser gets while the database is unavailable. tests/postgres has the same with a real database."""

from __future__ import annotations

import pytest
from django.db import DataError, InterfaceError, InternalError, OperationalError
from django.test import Client
from django.urls import reverse

from chat.models import User
from chat.security.session_store import SessionStore

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(ana: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(ana)
    return client


def with_state(state: str) -> Exception:
    """Return a database error with this SQLSTATE, wrapped like Django's."""
    error, cause = InternalError("ended"), Exception()
    cause.sqlstate = state  # type: ignore[attr-defined]  # psycopg's errors have it
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (OperationalError("gone"), 503, "2"),
        (InterfaceError("closed"), 503, "2"),
        (with_state("25006"), 503, "2"),  # a primary that has become a standby
        (with_state("25P03"), 503, "2"),  # the server has ended an idle transaction
        (with_state("25P02"), 500, None),
        (DataError("wrong"), 500, None),
    ],
    ids=["gone", "closed", "standby", "idle", "aborted", "wrong"],
)
def test_database_that_is_away_is_a_matter_of_time(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, retry_after: str | None
) -> None:
    """RUN-10: pages and scripts get a Retry-After, also if the session cannot be loaded; other errors stay errors."""

    def load(store: SessionStore) -> None:
        raise error

    monkeypatch.setattr(SessionStore, "load", load)
    page = client.get("/")
    script = client.post(reverse("preferences"), headers={"Accept": "application/json"})
    for answer in (page, script):
        assert (answer.status_code, answer.headers.get("Retry-After")) == (status, retry_after)
    if status == 503:
        assert script.json()["message"]
