"""The queries of a sync and of the beacon: one item costs as many as thirty."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat import access
from chat.live import sync
from chat.live.event_json import changes_frames, dump
from chat.models import ChatMessage, MessageDelta, Session, SessionRun, User
from chat.queries import messages
from chat.services.sessions.lifecycle import create_session
from tests.support import filled
from tests.support.testing_node import let_in

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def fill(session: Session, count: int, *, status: str = "complete") -> dict[str, dict[str, int]]:
    """Add `count` messages and return what a client may have of them."""
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    rows = [
        ChatMessage(
            session=session,
            sequence=number,
            revision=number,
            role="assistant",
            provider="demo",
            text="ab",
            status=status,
        )
        for number in range(1, count + 1)
    ]
    ChatMessage.objects.bulk_create(rows)
    if status == "streaming":
        MessageDelta.objects.bulk_create([MessageDelta(message=row, offset=2, text="cd") for row in rows])
    session.revision = count
    session.save()
    return {row.pk: {"length": 1, "blocks": 0, "rev": 0} for row in rows}


def queries_of(protocol: str, user: User, session: Session, have: dict[str, dict[str, int]]) -> int:
    with CaptureQueriesContext(connection) as queries:
        sync.read("page" if protocol == "page" else "events", "en", user, session.pk, 0, have)
    return len(queries)


@pytest.mark.parametrize("protocol", ["events", "page"])
@pytest.mark.parametrize(("status", "most"), [("complete", 7), ("streaming", 9)])
def test_sync_costs_the_same_for_one_message_and_for_thirty(
    ana: User, bo: User, protocol: str, status: str, most: int
) -> None:
    """LIVE-02: a sync queries the gate, the session, its run, the agents and the messages, plus two queries for
    streaming text."""
    costs = []
    for count in (1, 30):
        session = create_session(owner=ana)
        let_in(session, bo, "viewer")
        have = fill(session, count, status=status)
        costs.append(queries_of(protocol, bo, session, have))
    assert costs[0] == costs[1] <= most


@pytest.mark.parametrize("field", ["text", "result", "arguments"])
def test_a_sync_is_sent_in_frames_of_a_bounded_size(ana: User, field: str) -> None:
    """LIVE-02: clients that accept frames of 1 MiB can read a session with many long messages.

    Otherwise they connect again and again, as each sync closes their socket. Long arguments count, as in a session in
    which an agent writes files.
    """
    session = create_session(owner=ana)
    long = {"content": "x" * 30_000} if field == "arguments" else "x" * 30_000
    filled.fill(session, *[{**filled.TOOL, field: long}] * 150)
    changes = messages.changes_since(session.pk, 0)
    assert changes is not None
    frames = changes_frames(changes, 0, {})
    assert [len(frame["messages"]) for frame in frames] == [6] * 25
    assert max(len(dump(frame)) for frame in frames) < 250_000


def test_beacon_costs_the_same_for_one_session_and_for_thirty(ana: User, bo: User) -> None:
    """LIVE-02, LIVE-06: the beacon needs one query for the heads and two for the users with access."""
    sessions = [create_session(owner=ana) for _ in range(30)]
    for session in sessions:
        let_in(session, bo, "viewer")
    for count in (1, 30):
        some = sessions[:count]
        pairs = {(user.pk, session.pk) for user in (ana, bo) for session in some}
        with CaptureQueriesContext(connection) as queries:
            assert set(messages.revisions([session.pk for session in some])) == {session.pk for session in some}
            assert access.roles(pairs).keys() == pairs
        assert len(queries) == 3
