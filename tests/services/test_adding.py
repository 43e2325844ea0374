"""Adding messages between others, called through the services."""

from __future__ import annotations

from typing import Any

import pytest

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.projections.context import context
from chat.services.messages.editing import add, remove, restore
from chat.services.runs.control import retry
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, THOUGHT, TOOL, fill, live, places
from tests.support.protocol import check_context

pytestmark = pytest.mark.django_db
WHOLE = [START, HI, ANSWER, DONE]
ROLES = ["user", "assistant", "system"]


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, provider="scripted", model="one")


def added(session: Session, author: User, after: str | None, role: str = "user", text: str = "More") -> ChatMessage:
    return add(session=session, author=author, after_id=after, role=role, text=text)[0]


def refusal(session: Session, author: User, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        added(session, author, *args, **kwargs)
    return refused.value.code


def types(session: Session) -> list[str]:
    return [row.type if row.type != "text" else row.text for row in live(session)]


@pytest.mark.parametrize("role", ROLES)
def test_added_message_is_at_its_place(session: Session, ana: User, bo: User, role: str) -> None:
    """ADM-01, MSG-03, MSG-11: an added message belongs to the turn around it, leaves no gap, and the record names the
    user who added it."""
    rows = fill(session, *WHOLE)
    row = added(session, bo, rows[1].pk, role)
    assert places(session) == list(enumerate([rows[0].pk, rows[1].pk, row.pk, rows[2].pk, rows[3].pk], 1))
    row.refresh_from_db()
    assert (row.role, row.text, row.turn_id, row.timestamp) == (role, "More", "t_1", rows[1].timestamp)
    assert (row.user, row.sender) == ((bo, "Bo") if role == "user" else (None, ""))
    assert (row.provider, row.model) == (("scripted", "one") if role == "assistant" else ("", ""))
    record = MessageRevision.objects.get()
    assert (record.message_id, record.kind, record.user, record.before) == (row.pk, "add", bo, {})


@pytest.mark.parametrize("role", ROLES)
def test_between_turns_it_is_a_turn_of_its_own(session: Session, ana: User, role: str) -> None:
    """ADM-01: a message added between turns gets its own markers, which are removed and restored together with it."""
    first, second = fill(session, *WHOLE), fill(session, *WHOLE, turn_id="t_2")
    row = added(session, ana, first[3].pk, role)
    whole = places(session)
    assert types(session)[3:8] == ["turn_done", "turn_start", "More", "turn_done", "turn_start"]
    remove(session=session, author=ana, message_id=row.pk)
    assert [pk for _, pk in places(session)] == [each.pk for each in (*first, *second)]
    restore(session=session, author=ana, message_id=row.pk)
    assert places(session) == whole


@pytest.mark.parametrize("after", [None, "last", "in an empty session"])
def test_it_can_be_first_or_last(session: Session, ana: User, after: str | None) -> None:
    """A message can be added as the first or the last one (ADM-01)."""
    rows = [] if after == "in an empty session" else fill(session, *WHOLE)
    added(session, ana, rows[-1].pk if after == "last" else None)
    mine, theirs = ["turn_start", "More", "turn_done"], ["turn_start", "Hi", "So", "turn_done"]
    assert types(session) == {None: mine + theirs, "last": theirs + mine, "in an empty session": mine}[after]


def test_model_gets_added_messages(session: Session, ana: User) -> None:
    """ADM-02, CTX-03, CTX-04: the model gets an added message in its place.

    A system text before all others becomes the prompt.
    """
    rows = fill(session, START, HI, {**TOOL, "response_id": "r_1"}, {**ANSWER, "response_id": "r_2"}, DONE)
    for place, row in enumerate((None, *rows)):
        for role in ROLES:
            added(session, ana, row.pk if row else None, role, f"{role} {place}")
            check_context(live(session))
    said = "\n".join(message.text for message in context(live(session)))
    assert [said.count(f"{role} 1") for role in ROLES] == [1, 1, 1]


def test_added_message_can_be_answered(session: Session, ana: User) -> None:
    """ADM-03, RUN-12: a retry from an added message requests an answer from the model."""
    rows = fill(session, *WHOLE)
    row = added(session, ana, rows[3].pk)
    retry(session=session, author=ana, message_id=row.pk)
    assert types(session)[-2:] == ["turn_start", "More"]
    assert SessionRun.objects.get().turn_id == ChatMessage.objects.get(pk=row.pk).turn_id


def test_response_is_not_torn_apart(session: Session, ana: User) -> None:
    """MSG-08, CTX-03: messages can be added before and after the rows of one response, but not between them."""
    parts = [{**row, "response_id": "r_1"} for row in (THOUGHT, ANSWER, TOOL, {**TOOL, "tool_call_id": "c2"})]
    rows = fill(session, START, HI, *parts, ANSWER, DONE)
    for row in rows[2:5]:
        assert refusal(session, ana, row.pk) == "inside_response"
    for row in (rows[1], rows[5]):
        added(session, ana, row.pk)
    check_context(live(session))


def test_hand_written_call_stays_with_its_text(session: Session, ana: User) -> None:
    """A hand-written tool call stays with its response (MSG-10, CTX-03)."""
    rows = fill(session, START, HI, ANSWER, TOOL, DONE)
    assert refusal(session, ana, rows[2].pk) == "inside_response"


@pytest.mark.parametrize(
    ("role", "text", "code"),
    [
        ("tool", "x", "no_such_role"),
        ("", "x", "no_such_role"),
        ("user", " \n", "empty"),
        ("user", "a\0", "not_storable"),
        ("system", "\ud800", "not_storable"),
    ],
)
def test_text_that_cannot_be_stored_is_refused(session: Session, ana: User, role: str, text: str, code: str) -> None:
    """MSG-12: text that cannot be stored is refused, and nothing is stored."""
    rows = fill(session, *WHOLE)
    assert refusal(session, ana, rows[1].pk, role, text) == code
    assert ChatMessage.objects.count() == 4


@pytest.mark.parametrize("after", ["m_none", "", "\0", "of another session", "removed"])
def test_unknown_place_is_refused(session: Session, ana: User, after: str) -> None:
    """ADM-01: a place that is unknown, or has been removed, is refused."""
    rows = fill(session, *WHOLE)
    if after == "removed":
        remove(session=session, author=ana, message_id=rows[2].pk)
    known = {"of another session": fill(create_session(owner=ana), *WHOLE)[1].pk, "removed": rows[2].pk}
    assert refusal(session, ana, known.get(after, after)) == "no_such_message"


def test_not_while_the_agent_works_or_in_the_archive(session: Session, ana: User) -> None:
    """ADM-02: adding is refused while the agent works, because all later rows would move, and in archived sessions."""
    rows = fill(session, *WHOLE)
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_9")
    assert refusal(session, ana, rows[1].pk) == "busy"
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="")
    Session.objects.filter(pk=session.pk).update(status="archived")
    assert refusal(session, ana, rows[1].pk) == "archived"


def test_adding_costs_the_same_in_a_long_session(
    session: Session, ana: User, django_assert_max_num_queries: Any
) -> None:
    """MSG-03: all later rows move in one statement, however long the session is."""
    row = fill(session, START, HI, *[ANSWER] * 60, DONE)[1]
    with django_assert_max_num_queries(16):
        added(session, ana, row.pk)
