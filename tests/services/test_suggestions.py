"""Suggested edits: who may make and decide them, and how they change the message."""

from __future__ import annotations

from typing import Any

import pytest

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, Suggestion, User
from chat.queries.history import history_of
from chat.services.messages.editing import edit
from chat.services.messages.suggestions import accept, dismiss, open_suggestions, suggest
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User, bo: User) -> Session:
    session = create_session(owner=ana)
    let_in(session, bo, "editor")
    return session


@pytest.fixture
def row(session: Session, ana: User) -> ChatMessage:
    return fill(session, START, {**HI, "user": ana}, ANSWER, DONE)[1]


def refused(call: Any, **about: Any) -> str:
    with pytest.raises(ServiceError) as refusal:
        call(**about)
    return refusal.value.code


def test_suggestion_waits_at_the_message(session: Session, row: ChatMessage, bo: User) -> None:
    """MSG-11: a suggestion does not change the text, and a user's second suggestion replaces the first."""
    first = suggest(session=session, author=bo, message_id=row.pk, text="Hello", seen=2)
    second = suggest(session=session, author=bo, message_id=row.pk, text="Hello!")
    row.refresh_from_db()
    assert (row.text, row.open_suggestions, row.edited_at) == ("Hi", 1, None)
    assert [(each.pk, each.text, each.user_name) for each in open_suggestions(row)] == [(first.pk, "Hello!", "Bo")]
    assert second.pk == first.pk
    assert row.revision == Session.objects.get().revision == 6


def test_accepted_suggestion_is_an_edit_by_the_user_who_accepts(session: Session, row: ChatMessage, ana: User) -> None:
    """MSG-11: the author's edit names the user who suggested it, also in the history."""
    cy = person("Cy", session.workspace)
    let_in(session, cy, "editor")
    made = suggest(session=session, author=cy, message_id=row.pk, text="Hello")
    revision = accept(session=session, author=ana, suggestion_id=made.pk, seen=row.revision)
    row.refresh_from_db()
    assert (row.text, row.edited_by_name, row.suggested_by_name, row.open_suggestions) == ("Hello", "", "Cy", 0)
    assert revision == row.revision
    made.refresh_from_db()
    assert (made.status, made.decided_by) == ("accepted", ana)
    change = history_of(row).changes[0]
    assert (change.user, change.suggested_by, change.before["text"]) == (ana, "Cy", "Hi")
    edit(session=session, author=ana, message_id=row.pk, text="Hey")
    row.refresh_from_db()
    assert row.suggested_by_name == ""


def test_owner_decides_on_suggestions_for_others(session: Session, ana: User, bo: User) -> None:
    """MSG-11: the owner accepts as "edited by the owner, suggested by" a user.

    Two suggestions are decided separately.
    """
    cy = person("Cy", session.workspace)
    row = fill(session, START, {**HI, "user": bo, "sender": "Bo"}, DONE)[1]
    mine = suggest(session=session, author=cy, message_id=row.pk, text="Hello")
    staffs = suggest(session=session, author=person("Di", session.workspace), message_id=row.pk, text="Howdy")
    accept(session=session, author=ana, suggestion_id=mine.pk)
    row.refresh_from_db()
    assert (row.edited_by_name, row.suggested_by_name, row.open_suggestions) == ("Ana", "Cy", 1)
    dismiss(session=session, author=bo, suggestion_id=staffs.pk)
    row.refresh_from_db()
    assert (row.text, row.open_suggestions, open_suggestions(row)) == ("Hello", 0, [])


def test_suggestions_are_refused_where_they_make_no_sense(
    session: Session, row: ChatMessage, ana: User, bo: User
) -> None:
    """MSG-11: suggestions for the user's own or the agent's message, without a change, or for an outdated text are
    refused."""
    answer = ChatMessage.objects.get(role="assistant")
    assert refused(suggest, session=session, author=ana, message_id=row.pk, text="x") == "may_edit"
    assert refused(suggest, session=session, author=bo, message_id=answer.pk, text="x") == "may_edit"
    assert refused(suggest, session=session, author=bo, message_id=row.pk, text="Hi") == "unchanged"
    assert refused(suggest, session=session, author=bo, message_id=row.pk, text=" ") == "empty"
    edit(session=session, author=ana, message_id=row.pk, text="Ho")
    assert refused(suggest, session=session, author=bo, message_id=row.pk, text="x", seen=2) == "stale"
    assert not Suggestion.objects.exists()


def test_only_some_decide(session: Session, row: ChatMessage, ana: User, bo: User) -> None:
    """MSG-11: the user who suggested an edit can only withdraw it, and a third user can neither accept nor dismiss it.

    Each suggestion is decided once, and only for the text that the user has seen.
    """
    made = suggest(session=session, author=bo, message_id=row.pk, text="Hello")
    about: dict[str, Any] = {"session": session, "author": bo, "suggestion_id": made.pk}
    assert refused(accept, **about) == "not_yours"
    assert refused(dismiss, **{**about, "author": person("Cy", session.workspace)}) == "not_yours"
    assert refused(accept, **{**about, "session": create_session(owner=ana), "author": ana}) == "no_such_suggestion"
    edit(session=session, author=ana, message_id=row.pk, text="Ho")
    assert refused(accept, **{**about, "author": ana}, seen=2) == "stale"
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id=row.turn_id)
    assert refused(accept, **{**about, "author": ana}) == "busy"
    dismiss(**about)
    assert refused(dismiss, **about) == "no_such_suggestion"
    row.refresh_from_db()
    assert (row.text, row.open_suggestions) == ("Ho", 0)
    assert MessageRevision.objects.count() == 1
