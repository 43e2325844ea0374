"""Plain turns begin in few statements, and the result equals that of the services for other turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.bus import publisher
from chat.bus.events import ChatEvent, MessageChanged
from chat.models import (
    ChatMessage,
    DailyUsage,
    RunState,
    Session,
    SessionRun,
    User,
    UserSessionState,
    Worker,
    Workspace,
)
from chat.runner.resume import TurnSnapshot, open_claim
from chat.runs import lease, local_runner
from chat.runs.local_runner import BegunTurn
from chat.services.messages.sending import send_message
from chat.services.messages.starting import begin_turn
from chat.services.sessions.lifecycle import create_session
from tests.support.effort import cases
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Desk:
    """A runner that keeps the turns that it is given; without `has_room` it takes none."""

    worker_id: str
    has_room: bool = True
    reserved: int = 0
    taken: list[BegunTurn] = field(default_factory=list)

    def reserve(self) -> str:
        self.reserved += self.has_room
        return self.worker_id if self.has_room else ""

    def take(self, turn: BegunTurn) -> None:
        self.reserved -= 1
        self.taken.append(turn)

    def release(self) -> None:
        self.reserved -= 1


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(lease.register_worker())
    unregister = local_runner.register(desk)
    yield desk
    unregister()


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[ChatEvent]]]:
    seen: list[tuple[str, list[ChatEvent]]] = []
    monkeypatch.setattr(publisher, "publish", lambda session_id, events: seen.append((session_id, list(events))))
    return seen


@dataclass(frozen=True)
class Start:
    """The state of a session before a message, and the message."""

    text: str = "Hi"
    key: str | None = None
    key_was_used: bool = False
    title: str = "Plan"
    status: str = "active"
    mode: str = "agent"
    replies: str = "all"
    replies_auto: bool = False
    agents: tuple[str, ...] = ()
    rows: int = 0
    draft: str | None = None
    is_shared: bool = False
    is_owner: bool = True
    is_active: bool = True
    state: str = "idle"
    is_due: bool = False
    tokens: int = 0
    has_room: bool = True
    is_lease_over: bool = False


PLAIN = st.builds(
    Start,
    text=st.sampled_from(["Hi", "  spaced \n out ", "@agent hi", "@other hi", "长" * 300, "x" * 12_001]),
    key=st.sampled_from([None, "", "k-1"]),
    mode=st.sampled_from(["chat", "agent", "run"]),
    replies_auto=st.booleans(),
    rows=st.integers(0, 3),
    draft=st.sampled_from([None, "", "H", "Hi", "Something else"]),
    tokens=st.sampled_from([0, 5]),
    has_room=st.booleans(),
    is_lease_over=st.sampled_from([False, False, False, True]),
)
# States and messages that are not a plain start.
UNUSUAL: list[dict[str, Any]] = [
    {"text": " "},
    {"text": "a\0b"},
    {"text": "\ud800"},
    {"text": "x" * 20_001},
    {"key": "k\0"},
    {"key": "k-1", "key_was_used": True, "rows": 1},
    {"title": ""},
    {"status": "archived"},
    {"status": "deleted"},
    {"replies": "mentions"},
    {"agents": ("other",)},
    {"is_shared": True},
    {"is_owner": False},
    {"is_owner": False, "is_shared": True},
    {"is_active": False},
    {"state": "running"},
    {"state": "waiting"},
    {"state": "cancelling"},
    {"is_due": True},
    {"tokens": 10**12},
]


def made(start: Start, owner: User, other: User) -> Session:
    """Return a session in this state."""
    session = create_session(owner=owner, title="Plan")
    config = {**session.config, **({"agents": [{"name": name} for name in start.agents]} if start.agents else {})}
    for number in range(1, start.rows + 1):
        key = start.key if number == 1 and start.key_was_used else None
        ChatMessage.objects.create(
            session=session, sequence=number, revision=number, text=f"{number}", idempotency_key=key
        )
    Session.objects.filter(pk=session.pk).update(
        title=start.title,
        status=start.status,
        mode=start.mode,
        replies=start.replies,
        replies_auto=start.replies_auto,
        config=config,
        revision=start.rows,
    )
    turn = {} if start.state == RunState.IDLE else {"turn_id": "t_open", "turn_started_at": timezone.now()}
    SessionRun.objects.filter(pk=session.pk).update(state=start.state, wanted=3 + start.is_due, done=3, epoch=7, **turn)
    if start.draft is not None:
        UserSessionState.objects.create(session=session, user=owner, draft=start.draft, draft_at=timezone.now())
    if start.is_shared:
        let_in(session, other, "editor")
    return session


def columns(row: Any, *left_out: str) -> dict[str, Any]:
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname not in left_out and field.get_internal_type() != "DateTimeField"
    }


def stored(session: Session, turn_id: str) -> list[Any]:
    """Return everything that a start may change, without ids and times."""
    rows = ChatMessage.objects.filter(session=session).order_by("sequence", "created_at")
    run = SessionRun.objects.get(pk=session.pk)
    assert run.turn_id == turn_id
    kept = UserSessionState.objects.filter(session=session).values_list("user_id", "draft")
    return [
        columns(Session.objects.get(pk=session.pk), "id"),
        {**columns(run, "session_id", "turn_id"), "begun": run.turn_started_at is not None},
        [{**columns(row, "id", "session_id", "turn_id"), "is_of_turn": row.turn_id == turn_id} for row in rows],
        list(kept),
    ]


def comparable(events: list[ChatEvent]) -> list[ChatEvent]:
    return [
        replace(
            event,
            id="",
            message=event.message and replace(event.message, id="", session_id="", turn_id="", timestamp=""),
        )
        if isinstance(event, MessageChanged)
        else event
        for event in events
    ]


def snapshot(turn: TurnSnapshot | None) -> TurnSnapshot | None:
    if turn is None:
        return None
    return replace(turn, state=replace(turn.state, turn_id="", began=0.0, elapsed_before=0.0))


def by_the_services(
    session: Session, author: User, start: Start, worker_id: str, *, claims: bool
) -> TurnSnapshot | None:
    """Begin the turn through the services, then claim and open it like a runner."""
    send_message(session=session, author=author, text=start.text, key=start.key)
    if not claims:
        return None
    (claim,) = [each for each in lease.claim(worker_id, 1000) if each.session_id == session.pk]
    return open_claim(claim, 0.0)


@settings(max_examples=cases(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=PLAIN)
def test_both_ways_leave_the_same(
    start: Start, workspace: Workspace, desk: Desk, published: list[tuple[str, list[ChatEvent]]]
) -> None:
    """RUN-01, MSG-01, MSG-02, RUN-15, RUN-17: rows, events and the opened turn of a plain start equal those of the
    services."""
    owner, other = people(workspace, start, desk)
    first, second = made(start, owner, other), made(start, owner, other)
    published.clear()
    begun = begin_turn(author=owner, session_id=first.pk, text=start.text, key=start.key)
    assert begun is not None
    assert desk.reserved == 0
    assert bool(desk.taken) == (start.has_room and not start.is_lease_over)
    opened = TurnSnapshot(desk.taken[0].state) if desk.taken else None
    events, left = [event for _, sent in published for event in sent], stored(first, begun.turn_id)
    SessionRun.objects.filter(pk=first.pk).update(state="idle", turn_id="")  # quotas count the turns of the owner
    published.clear()
    expected = by_the_services(second, owner, start, desk.worker_id, claims=bool(desk.taken))
    assert left == stored(second, SessionRun.objects.get(pk=second.pk).turn_id)
    assert comparable(events) == comparable([event for _, sent in published for event in sent])
    assert snapshot(opened) == snapshot(expected)
    message = ChatMessage.objects.get(pk=begun.id)
    assert (message.sequence, message.turn_id) == (begun.sequence, begun.turn_id)


@settings(max_examples=cases(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=PLAIN, unusual=st.sampled_from(UNUSUAL))
def test_what_is_not_plain_is_left_to_the_services(
    start: Start, unusual: dict[str, Any], workspace: Workspace, desk: Desk, published: list[Any]
) -> None:
    """MSG-02, MSG-12, RUN-06, RUN-17, LIVE-06: a start that is not plain writes, publishes and claims nothing, and is
    left to the services."""
    start = replace(start, **unusual)
    owner, other = people(workspace, start, desk)
    session = made(start, owner, other)
    before = everything(session)
    published.clear()
    author = owner if start.is_owner else other
    assert begin_turn(author=author, session_id=session.pk, text=start.text, key=start.key) is None
    assert everything(session) == before
    assert (published, desk.reserved, desk.taken) == ([], 0, [])


def everything(session: Session) -> list[Any]:
    tables = (Session.objects.filter(pk=session.pk), SessionRun.objects.filter(pk=session.pk), session.chat_messages)
    return [list(table.order_by("pk").values()) for table in tables]


def people(workspace: Workspace, start: Start, desk: Desk) -> tuple[User, User]:
    """Return the owner of a new session and another member. No other turn is open, and the runner is as in `start`."""
    desk.has_room, desk.taken = start.has_room, []
    SessionRun.objects.update(owner=None, state="idle", turn_id="", done=9, wanted=9)
    lease_until = timezone.now() + timedelta(hours=-1 if start.is_lease_over else 1)
    Worker.objects.filter(pk=desk.worker_id).update(lease_until=lease_until)
    number = User.objects.count()
    owner, other = person(f"Ana{number}", workspace), person(f"Bo{number}", workspace)
    User.objects.filter(pk=owner.pk).update(is_active=start.is_active)
    if start.tokens:
        DailyUsage.objects.create(user=owner, day=timezone.now().date(), tokens=start.tokens)
    return owner, other


def test_one_statement_looks_and_three_write(ana: User, desk: Desk) -> None:
    """RUN-01: a start has one reading and three writing statements, because each one counts at a hundred starts per
    second."""
    session = create_session(owner=ana, title="Plan")
    with CaptureQueriesContext(connection) as queries:
        assert begin_turn(author=ana, session_id=session.pk, text="Hi", key="k") is not None
    words = [query["sql"].split()[0] for query in queries]
    assert [word for word in words if word not in ("BEGIN", "COMMIT")] == ["SELECT", "INSERT", "UPDATE", "UPDATE"]
