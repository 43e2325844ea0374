"""Constraints of the database, which hold whatever code writes."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import Error, IntegrityError, connection, transaction
from django.utils import timezone

from chat.models import ChatMessage, MessageDelta, MessageStatus, RunState, Session, SessionRun, User
from chat.services.sessions.lifecycle import create_session
from tests.support.agreement import agree

pytestmark = pytest.mark.django_db
TRIGGERS = {
    *("message_in_flight_insert", "message_in_flight_update", "run_at_rest"),
    *("message_search_insert", "message_search_update", "message_search_delete"),
    *("knowledge_search_insert", "knowledge_search_delete"),
}


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def add(session: Session, sequence: int | None = 1, **fields: Any) -> ChatMessage:
    return ChatMessage.objects.create(session=session, sequence=sequence, **fields)


def run(session: Session, state: str = "running", turn_id: str = "t_1") -> None:
    SessionRun.objects.filter(pk=session.pk).update(state=state, turn_id=turn_id)


def refused(**fields: Any) -> Any:
    return pytest.raises(Error, **fields)


@pytest.mark.sqlite  # PostgreSQL does not copy tables
def test_triggers_are_there() -> None:
    """The triggers exist after all migrations, because SQLite silently drops those of a table that a migration
    copies."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        found = [name for (name,) in cursor.fetchall()]
    agree(
        found,
        TRIGGERS,
        missing='The trigger {} is lost: create it again in the migration (CONTRIBUTING.md, "Add a migration").',
        extra="Add the trigger {} to TRIGGERS in this file.",
    )


def test_one_sequence_number_belongs_to_one_live_row(session: Session) -> None:
    """MSG-03: sequence numbers are unique in a session."""
    add(session, 1, role="user")
    with refused(), transaction.atomic():
        add(session, 1, role="user")
    add(create_session(owner=session.owner), 1, role="user")


@pytest.mark.parametrize(
    "fields",
    [
        {"sequence": None},
        {"sequence": 1, "status": "queued", "role": "user"},
        {"sequence": 1, "removed_at": timezone.now()},
    ],
)
def test_row_has_a_place_exactly_while_it_is_live(session: Session, fields: dict[str, Any]) -> None:
    """MSG-03: a live row has a sequence number, a queued or removed one has none."""
    with refused(), transaction.atomic():
        add(session, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "shout"},
        {"status": "lost"},
        {"sequence": None, "type": "error", "status": "queued"},
        {"sequence": None, "role": "assistant", "status": "queued"},
        {"type": "text", "status": "waiting"},
    ],
)
def test_unknown_or_senseless_states_are_refused(session: Session, fields: dict[str, Any]) -> None:
    """MSG-07: only user texts can be queued and only tools can wait, and other types and states are refused."""
    with refused(), transaction.atomic():
        add(session, **fields)


def test_key_belongs_to_one_message(session: Session) -> None:
    """MSG-02: messages without a key are not restricted, and another session can use the same key."""
    add(session, 1, idempotency_key="k")
    add(session, 2)
    add(session, 3)
    with refused(), transaction.atomic():
        add(session, 4, idempotency_key="k")
    add(create_session(owner=session.owner), 1, idempotency_key="k")


UNFINISHED = [
    {"type": "text", "status": MessageStatus.STREAMING},
    {"type": "reasoning", "status": MessageStatus.STREAMING},
    {"type": "tool_group", "status": MessageStatus.RUNNING},
    {"type": "tool_group", "status": MessageStatus.PENDING},
    {"type": "tool_group", "status": MessageStatus.WAITING},
]


@pytest.mark.parametrize("fields", UNFINISHED)
def test_idle_session_takes_no_unfinished_row(session: Session, fields: dict[str, Any]) -> None:
    """MSG-07: unfinished rows are refused as new rows and as updates in an idle session, and allowed while it runs."""
    with refused(match="may only be unfinished"), transaction.atomic():
        add(session, 1, **fields)
    row = add(session, 1, type=fields["type"])
    with refused(match="may only be unfinished"), transaction.atomic():
        ChatMessage.objects.filter(pk=row.pk).update(status=fields["status"])
    run(session)
    ChatMessage.objects.filter(pk=row.pk).update(status=fields["status"])
    add(session, 2, **fields)


@pytest.mark.parametrize("fields", UNFINISHED)
@pytest.mark.parametrize("state", ["running", "cancelling", "waiting"])
def test_run_cannot_end_before_its_rows(session: Session, state: str, fields: dict[str, Any]) -> None:
    """MSG-07: a session becomes idle only when no row is unfinished."""
    run(session, state)
    row = add(session, 1, **fields)
    with refused(match="may not end"), transaction.atomic():
        run(session, "idle", "")
    ChatMessage.objects.filter(pk=row.pk).update(status="interrupted")
    run(session, "idle", "")


def test_removed_row_cannot_come_back_unfinished(session: Session) -> None:
    """MSG-07: a removed row may keep its unfinished state, but cannot become live with it."""
    run(session)
    row = add(session, 1, type="tool_group", status="running")
    ChatMessage.objects.filter(pk=row.pk).update(removed_at=timezone.now(), sequence=None)
    run(session, "idle", "")
    with refused(match="may only be unfinished"), transaction.atomic():
        ChatMessage.objects.filter(pk=row.pk).update(removed_at=None, sequence=1)


@pytest.mark.parametrize(("state", "turn_id"), [("running", ""), ("cancelling", ""), ("idle", "t_1")])
def test_turn_is_open_exactly_while_the_session_works(session: Session, state: str, turn_id: str) -> None:
    """RUN-01: a session that runs or is being cancelled must have a turn, and an idle session must not."""
    with refused(), transaction.atomic():
        run(session, state, turn_id)


def test_text_of_one_place_is_kept_once(session: Session) -> None:
    """LIVE-02: a delta cannot be stored twice."""
    run(session)
    row = add(session, 1, status="streaming")
    MessageDelta.objects.create(message=row, offset=0, text="a")
    with pytest.raises(IntegrityError), transaction.atomic():
        MessageDelta.objects.create(message=row, offset=0, text="a")


def test_states_of_the_run_are_those_that_the_guard_knows() -> None:
    """MSG-07: the triggers know every state, so a new state must be added to them."""
    assert set(RunState) == {"idle", "running", "cancelling", "waiting"}
    assert {str(status) for status in MessageStatus} == {
        "queued",
        "streaming",
        "pending",
        "running",
        "waiting",
        "complete",
        "interrupted",
        "failed",
    }


def guards() -> set[str]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        else:
            cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.django_db(transaction=True)
def test_guards_can_be_taken_back_and_put_in_place_again() -> None:
    """MSG-07: the migrations can be reversed and applied again."""
    before = guards()
    assert before
    call_command("migrate", "chat", "0001", verbosity=0)
    assert guards() == set()
    call_command("migrate", "chat", verbosity=0)
    assert guards() == before
