"""Excluding many messages from the context and including them again, called through the service."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.bus.events import ChatEvent, ContextChanged, SessionChanged
from chat.errors import NoSuchMessage, ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.queries.messages import changes_since
from chat.services.messages import context_inclusion
from chat.services.messages.context_inclusion import Inclusion, include_before, last_exclusions
from chat.services.messages.editing import remove, set_included
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, ERROR, HI, START, TOOL, fill, live

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def left_out(session: Session) -> list[str]:
    return [row.pk for row in live(session) if not row.include_in_context]


def test_all_before_a_message_are_left_out_and_back(session: Session, ana: User) -> None:
    """MSG-09, MSG-11: messages that are never in the context are left alone.

    Including again restores only what was excluded together.
    """
    rows = fill(session, START, HI, ANSWER, TOOL, ERROR, DONE, START, HI, ANSWER)
    set_included(session=session, author=ana, message_id=rows[1].pk, included=False)
    what: dict[str, Any] = {"session": session, "author": ana, "message_id": rows[7].pk}
    done = include_before(included=False, **what)
    assert done == Inclusion(2, 10)
    assert left_out(session) == [rows[1].pk, rows[2].pk, rows[3].pk]
    assert {pk: record.user for pk, record in last_exclusions(left_out(session)).items()} == dict.fromkeys(
        left_out(session), ana
    )
    assert include_before(included=True, since=done.since, **what).count == 2
    assert left_out(session) == [rows[1].pk]
    assert include_before(included=True, **what).count == 1
    assert left_out(session) == []
    assert include_before(included=True, **what).count == 0
    kinds = MessageRevision.objects.filter(message=rows[2].pk).order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["exclude", "include"]


def test_including_restores_only_what_was_excluded_together(session: Session, ana: User) -> None:
    """MSG-09, MSG-11: messages that were already excluded and have moved, or were changed by a user since, are left
    alone."""
    rows = fill(session, HI, HI, HI, HI, HI, HI)
    who: dict[str, Any] = {"session": session, "author": ana}
    set_included(message_id=rows[2].pk, included=False, **who)
    done = include_before(message_id=rows[5].pk, included=False, **who)
    remove(message_id=rows[0].pk, **who)  # the later rows move up and get a new revision
    set_included(message_id=rows[3].pk, included=True, **who)
    set_included(message_id=rows[3].pk, included=False, **who)
    undone = include_before(message_id=rows[5].pk, included=True, since=done.since, **who)
    assert (undone.count, left_out(session)) == (2, [rows[2].pk, rows[3].pk])
    assert include_before(message_id=rows[5].pk, included=True, since=done.since, **who).count == 0


def test_viewers_sync_when_changes_are_too_scattered(
    session: Session, ana: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    """LIVE-02: if the changed places do not fit one event, a revision is left out, so that viewers request a sync."""
    published: list[ChatEvent] = []
    monkeypatch.setattr("chat.bus.publisher.publish", lambda session_id, events: published.extend(events))
    monkeypatch.setattr(context_inclusion, "MAX_PLACES", 1)
    rows = fill(session, HI, HI, HI, HI)
    what: dict[str, Any] = {"session": session, "author": ana, "message_id": rows[3].pk}
    with django_capture_on_commit_callbacks(execute=True):
        done = include_before(included=False, **what)
    assert published == [ContextChanged(done.since + 1, False, [(1, 3)])]
    set_included(session=session, author=ana, message_id=rows[1].pk, included=True)
    set_included(session=session, author=ana, message_id=rows[1].pk, included=False)
    published.clear()
    with django_capture_on_commit_callbacks(execute=True):
        undone = include_before(included=True, since=done.since, **what)
    assert published == [SessionChanged(undone.since + 2)]


def test_viewers_learn_of_all_of_it(session: Session, ana: User) -> None:
    """LIVE-01, LIVE-02: a client at the previous revision gets every changed row."""
    rows = fill(session, START, HI, ANSWER, DONE, START, HI)
    done = include_before(session=session, author=ana, message_id=rows[5].pk, included=False)
    changes = changes_since(session.pk, done.since)
    assert changes is not None
    assert [message.id for message in changes.messages] == [rows[1].pk, rows[2].pk]
    assert changes.revision == done.since + 1


def test_rows_that_the_agent_works_on_are_not_touched(session: Session, ana: User) -> None:
    """ADM-02: if the agent works on one of the rows, none of them changes."""
    rows = fill(session, START, HI, ANSWER, DONE)
    rows += fill(session, START, HI, ANSWER, turn_id="t_2")
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_2")
    with pytest.raises(ServiceError) as refused:
        include_before(session=session, author=ana, message_id=rows[6].pk, included=False)
    assert (refused.value.code, left_out(session)) == ("busy", [])
    assert include_before(session=session, author=ana, message_id=rows[4].pk, included=False).count == 2


def test_unknown_message_is_refused(session: Session, ana: User) -> None:
    """Excluding from an unknown message is refused (MSG-11)."""
    with pytest.raises(NoSuchMessage):
        include_before(session=session, author=ana, message_id="m_none", included=False)
    Session.objects.filter(pk=session.pk).update(status="archived")
    with pytest.raises(ServiceError, match="archived"):
        include_before(session=session, author=ana, message_id="m_none", included=False)


def test_many_take_as_many_queries_as_one(session: Session, ana: User) -> None:
    """ADM-01: the number of queries does not depend on the number of messages."""
    counts = []
    for number in (1, 30):
        rows = fill(session, *[HI] * number, ANSWER)
        with CaptureQueriesContext(connection) as queries:
            include_before(session=session, author=ana, message_id=rows[-1].pk, included=False)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert ChatMessage.objects.filter(include_in_context=False).count() == 32
