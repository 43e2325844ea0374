"""The state of a session for one user: pins, reads and drafts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from chat.errors import ServiceError
from chat.models import ChatMessage, RunState, Session, SessionRun, User, UserSessionState
from chat.queries import session_list
from chat.services.messages import editing
from chat.services.messages.sending import send_message
from chat.services.sessions import user_state
from chat.services.sessions.lifecycle import create_session
from tests.support.rows import say
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User, bo: User) -> Session:
    session = create_session(owner=ana, title="Plan")
    let_in(session, bo, "viewer")
    return session


def unread(user: User) -> list[str]:
    groups = session_list.listing(user, UTC).groups
    return [row.title for group in groups for row in group.rows if row.unread]


def test_messages_of_others_are_unread_until_they_are_read(session: Session, ana: User, bo: User) -> None:
    say(session, ana, "Hello")
    assert (unread(ana), unread(bo)) == ([], ["Plan"])
    say(session, None, "I am the agent")
    assert (unread(ana), unread(bo)) == (["Plan"], ["Plan"])
    assert user_state.mark_read(session=session, user=ana, revision=session.revision)
    assert (unread(ana), unread(bo)) == ([], ["Plan"])
    say(session, bo, "Another one")
    assert unread(ana) == ["Plan"]


@pytest.mark.parametrize("status", ["queued", "streaming"])
def test_unfinished_message_is_not_unread(session: Session, ana: User, bo: User, status: str) -> None:
    """A message counts as unread when it is finished. Until then, the list shows that the agent works."""
    say(session, ana, "Hm", status=status)
    assert unread(bo) == []


def test_removed_message_is_not_unread(session: Session, ana: User, bo: User) -> None:
    say(session, ana, "Never mind", removed=True)
    assert unread(bo) == []


def test_a_move_is_not_news(session: Session, ana: User, bo: User) -> None:
    """MSG-03: messages that move up after a removal stay read or unread for each user."""
    first, *_ = [say(session, ana, text) for text in ("One", "Two", "Three")]
    session.refresh_from_db()
    user_state.mark_read(session=session, user=bo, revision=session.revision)
    editing.remove(session=session, author=ana, message_id=first.pk)
    assert unread(bo) == []
    session.refresh_from_db()
    say(session, None, "Four")
    assert (unread(ana), unread(bo)) == (["Plan"], ["Plan"])
    editing.restore(session=session, author=ana, message_id=first.pk)
    assert (unread(ana), unread(bo)) == (["Plan"], ["Plan"])


def test_read_mark_never_decreases_nor_exceeds_the_last_message(session: Session, ana: User) -> None:
    say(session, None, "One")
    assert user_state.mark_read(session=session, user=ana, revision=10**9)
    assert user_state.state_of(ana, session).read_revision == session.revision
    assert not user_state.mark_read(session=session, user=ana, revision=0)
    assert user_state.state_of(ana, session).read_revision == session.revision


def test_pins_are_per_user_and_sort_first(session: Session, ana: User, bo: User) -> None:
    create_session(owner=ana, title="Newer")
    user_state.pin(session=session, user=ana)
    assert [(group.key, [row.title for row in group.rows]) for group in session_list.listing(ana, UTC).groups] == [
        ("pinned", ["Plan"]),
        ("today", ["Newer"]),
    ]
    assert [group.key for group in session_list.listing(bo, UTC).groups] == ["today"]
    user_state.unpin(session=session, user=ana)
    assert [group.key for group in session_list.listing(ana, UTC).groups] == ["today"]


@pytest.mark.both_databases
def test_sessions_that_wait_come_first_to_those_who_may_answer(session: Session, ana: User, bo: User) -> None:
    """UI-12: waiting sessions come first, before pinned ones, in a group with a count.

    For viewers they keep their places.
    """
    other = create_session(owner=ana, title="Shared")
    let_in(other, bo, "editor")
    user_state.pin(session=create_session(owner=ana, title="Pinned"), user=ana)
    waits = {"state": RunState.WAITING, "turn_id": "t_1", "turn_started_at": timezone.now()}
    SessionRun.objects.filter(session__in=[session, other]).update(**waits)
    question = {"type": "tool_group", "status": "waiting", "tool_name": "confirmation", "question": "confirmation"}
    for each in (session, other):
        ChatMessage.objects.create(session=each, sequence=1, revision=1, turn_id="t_1", tool_call_id="c", **question)
    titles = [(group.title, [row.title for row in group.rows]) for group in session_list.listing(ana, UTC).groups]
    assert titles == [("Waiting for you (2)", ["Shared", "Plan"]), ("Pinned", ["Pinned"])]
    (waiting, today) = session_list.listing(bo, UTC).groups
    assert (waiting.title, [row.title for row in today.rows]) == ("Waiting for you (1)", ["Plan"])
    assert not any(row.working for row in (*waiting.rows, *today.rows))
    assert [(row.listed.title, row.listed.waiting) for row in session_list.listed_before(bo).rows] == [
        ("Shared", True),
        ("Plan", False),
    ]


def test_a_draft_is_kept_as_it_is_and_cleared(session: Session, ana: User, bo: User) -> None:
    """MSG-12: a draft is stored exactly, and no other user can read it."""
    text = "  Línea \u202eone\n\n🙂 "
    user_state.save_draft(session=session, user=ana, text=text)
    assert user_state.state_of(ana, session).draft == text
    assert user_state.state_of(bo, session).draft == ""
    user_state.save_draft(session=session, user=ana, text="")
    mine = user_state.state_of(ana, session)
    assert (mine.draft, mine.draft_at) == ("", None)


@override_settings(MAX_MESSAGE_CHARS=10)
@pytest.mark.parametrize(
    ("text", "code"), [("x" * 11, "too_long"), ("a\0", "not_storable"), ("\ud800", "not_storable")]
)
def test_a_draft_has_a_message_s_limits(session: Session, ana: User, text: str, code: str) -> None:
    """A draft has the limits of a message (MSG-12)."""
    with pytest.raises(ServiceError) as refused:
        user_state.save_draft(session=session, user=ana, text=text)
    assert refused.value.code == code


@pytest.mark.django_db(transaction=True)
def test_the_first_marks_of_many_tabs_at_once_make_one_row(session: Session, ana: User) -> None:
    def act(number: int) -> None:
        try:
            user_state.save_draft(session=session, user=ana, text=f"{number}")
            user_state.mark_read(session=session, user=ana, revision=number)
            user_state.pin(session=session, user=ana)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(act, range(8)))
    assert UserSessionState.objects.filter(session=session, user=ana).count() == 1


def test_the_list_costs_the_same_for_one_session_and_for_thirty(
    ana: User, bo: User, django_assert_num_queries: Callable[..., object]
) -> None:
    for count in (1, 29):
        for number in range(count):
            session = create_session(owner=ana, title=f"{number}")
            let_in(session, bo, "viewer")
            say(session, ana, "Hello")
        with django_assert_num_queries(1):  # type: ignore[attr-defined]  # the fixture's own type is private
            session_list.listing(bo, UTC)


@pytest.mark.parametrize(("draft", "left"), [("He", ""), ("Hello", ""), ("Hello!", "Hello!"), ("Next", "Next")])
def test_message_takes_its_draft_with_it(session: Session, ana: User, bo: User, draft: str, left: str) -> None:
    """UI-09: sending a message clears a draft with its text or its beginning.

    Other drafts, also of other users, are kept.
    """
    for user in (ana, bo):
        user_state.save_draft(session=session, user=user, text=draft)
    send_message(session=session, author=ana, text="Hello")
    kept = user_state.state_of(ana, session)
    assert (kept.draft, kept.draft_at is None) == (left, not left)
    assert user_state.state_of(bo, session).draft == draft
