"""Precomposed statements read and write the same as Django's own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.models import Model
from django.db.transaction import TransactionManagementError

from chat.models import ChatMessage, ModelRequest, Session, SessionRun, User
from chat.row_statements import insert_rows, lock_rows, new_row, read_rows, row_of, update_row
from chat.services.sessions.lifecycle import create_session

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 2, 12, 30, 15, 123456, tzinfo=UTC)
# A value for every kind of column.
VALUES: dict[str, Any] = {
    "type": "tool_group",
    "status": "running",
    "text": "Hé 长 😀 %s %%",
    "arguments": {"a": [1, None, "x"], "ü": True},
    "answer": "text",
    "sources": [],
    "include_in_context": False,
    "duration_seconds": 1.5,
    "timestamp": NOON,
    "ended_at": None,
    "open_suggestions": 2,
}


def columns(row: Model, *left_out: str) -> dict[str, Any]:
    names = (field.attname for field in row._meta.concrete_fields)
    return {name: getattr(row, name) for name in names if name not in left_out}


@pytest.fixture
def session(ana: User) -> Session:
    session = create_session(owner=ana, title="Plan")
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    return session


def test_inserted_rows_are_those_that_django_inserts(session: Session, ana: User) -> None:
    """MSG-01: all kinds of values, defaults and the time of creation are equal."""
    values = {"session": session, "workspace_id": session.workspace_id, "user": ana, **VALUES}
    rows = [ChatMessage(sequence=number, **values) for number in (1, 2)]
    insert_rows(rows)
    ChatMessage.objects.create(sequence=3, **values)
    first, second, third = ChatMessage.objects.order_by("sequence")
    assert columns(first) == columns(rows[0])
    for each in (first, second):
        assert columns(each, "id", "sequence", "created_at") == columns(third, "id", "sequence", "created_at")
    assert third.created_at.date() == first.created_at.date()
    assert not rows[0]._state.adding


def test_other_models_can_be_inserted(session: Session) -> None:
    """MSG-06: rows of other models, with lists, can be inserted."""
    insert_rows([ModelRequest(response_id="r_1", session=session, revision=3, tools=("a",), rows=(("m_1", 2),))])
    made_request = ModelRequest.objects.get()
    assert (made_request.tools, made_request.rows) == (["a"], [["m_1", 2]])


def test_only_the_named_columns_are_updated(session: Session) -> None:
    """MSG-11: other columns keep the values of other writers, and `updated_at` is set."""
    row = lock_rows_of(session)
    Session.objects.filter(pk=session.pk).update(title="Other", updated_at=NOON)
    row.title, row.config, row.revision = "Mine", {"a": 1}, 7
    update_row(row, ["revision", "config", "updated_at"])
    stored = Session.objects.get(pk=session.pk)
    assert (stored.title, stored.config, stored.revision) == ("Other", {"a": 1}, 7)
    assert stored.updated_at == row.updated_at > NOON


def lock_rows_of(session: Session) -> Session:
    with transaction.atomic():
        return lock_rows(Session, [session.pk])[0]


def test_row_that_is_gone_cannot_be_updated(session: Session) -> None:
    """MSG-01: an update of a missing row fails instead of passing as written."""
    row = ChatMessage(session=session, sequence=1)
    with pytest.raises(DatabaseError, match="no row"):
        update_row(row, ["text"])


def test_locked_rows_are_those_that_django_reads(session: Session, ana: User) -> None:
    """RUN-15: whole rows are returned in the order of their keys, without missing ones."""
    others = [create_session(owner=ana) for _ in range(3)]
    names = [session.pk, *(each.pk for each in others)]
    with transaction.atomic():
        rows = lock_rows(Session, [*reversed(names), "s_none"])
        runs = lock_rows(SessionRun, names)
        assert lock_rows(Session, []) == []
    assert [columns(row) for row in rows] == [columns(row) for row in Session.objects.order_by("pk")]
    assert [columns(run) for run in runs] == [columns(run) for run in SessionRun.objects.order_by("pk")]


@pytest.mark.django_db(transaction=True)
def test_rows_are_locked_in_transactions_only() -> None:
    """RUN-15: locking outside of a transaction is refused, because the lock would end with its statement."""
    with pytest.raises(TransactionManagementError):
        lock_rows(Session, ["s_1"])


def test_some_columns_of_rows_are_read(session: Session) -> None:
    """CTX-01: the rows have the order of the condition, and the other columns are loaded on access."""
    insert_rows([ChatMessage(session=session, sequence=number, **VALUES) for number in (1, 2)])
    condition = "session_id = %s ORDER BY sequence DESC"
    rows = read_rows(ChatMessage, ("id", "arguments", "sequence", "timestamp"), condition, [session.pk])
    assert [(row.sequence, row.arguments, row.timestamp) for row in rows] == [
        (number, VALUES["arguments"], NOON) for number in (2, 1)
    ]
    assert "text" in rows[0].get_deferred_fields()
    assert rows[0].text == VALUES["text"]


def test_new_row_has_the_values_and_defaults_of_the_model(session: Session) -> None:
    values: dict[str, Any] = {
        **VALUES,
        "id": "m_1",
        "model": "m",
        "session_id": session.pk,
        "user_id": session.owner_id,
    }
    assert columns(new_row(ChatMessage, **values)) == columns(ChatMessage(**values))
    first, second = new_row(ChatMessage), new_row(ChatMessage)
    assert first.pk != second.pk
    assert first._state.adding


def test_new_row_refuses_unknown_columns() -> None:
    with pytest.raises(TypeError, match="ChatMessage has no columns sender_name, user"):
        new_row(ChatMessage, user=None, sender_name="Ana")


def test_rows_are_made_only_of_all_values(session: Session) -> None:
    with pytest.raises(ValueError, match="values are needed, not 1"):
        row_of(Session, [session.pk])
