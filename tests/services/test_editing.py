"""Editing, excluding, removing and restoring messages, called through the services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.projections.context import context
from chat.services.messages.editing import edit, remove, restore, set_included
from chat.services.messages.sending import send_message
from chat.services.runs.control import retry
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, ERROR, HI, START, THOUGHT, TOOL, Fields, fill, live, places
from tests.support.protocol import check_context

pytestmark = pytest.mark.django_db
WHOLE = [START, HI, {**THOUGHT, "response_id": "r_1"}, {**ANSWER, "response_id": "r_1"}, DONE]
Change = Callable[[Session, User, str], None]


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def edit_to_x(session: Session, author: User, message_id: str) -> None:
    edit(session=session, author=author, message_id=message_id, text="x")


def exclude(session: Session, author: User, message_id: str) -> None:
    set_included(session=session, author=author, message_id=message_id, included=False)


def take_away(session: Session, author: User, message_id: str) -> None:
    remove(session=session, author=author, message_id=message_id)


def bring_back(session: Session, author: User, message_id: str) -> None:
    restore(session=session, author=author, message_id=message_id)


CHANGES: list[Change] = [edit_to_x, exclude, take_away]
each_change = pytest.mark.parametrize("change", CHANGES)


def refusal(call: Callable[..., object], *args: Any, **kwargs: Any) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        call(*args, **kwargs)
    return refused.value


def test_edit_records_the_old_text_and_keeps_the_author(session: Session, ana: User, bo: User) -> None:
    """MSG-11: an edit changes only the text. The revision keeps the old text and the user who edited."""
    row = fill(session, *WHOLE)[3]
    edit(session=session, author=bo, message_id=row.pk, text="  Hello\n\u202eworld 😀 ")
    row.refresh_from_db()
    assert (row.text, row.model, row.sequence) == ("  Hello\n\u202eworld 😀 ", "one", 4)
    assert (row.edited_by, row.edited_by_name) == (bo, "Bo")
    assert row.edited_at is not None
    assert row.revision == Session.objects.get().revision == 6
    record = MessageRevision.objects.get()
    assert (record.kind, record.user, record.before["text"], record.before["revision"]) == ("edit", bo, "So", 4)


def test_edited_reasoning_loses_its_signature(session: Session, ana: User) -> None:
    """MSG-08, MSG-11: edited reasoning loses its signature, because the vendor checks it against the text.

    The revision keeps it.
    """
    row = fill(session, *WHOLE)[2]
    edit(session=session, author=ana, message_id=row.pk, text="Hm!")
    thinking = context(live(session))[1].parts[0]
    assert (thinking.text, thinking.data) == ("Hm!", {})  # type: ignore[union-attr]  # it is the reasoning
    assert MessageRevision.objects.get().before["provider_data"] == {"signature": "abc="}


def test_model_gets_the_edited_text(session: Session, ana: User) -> None:
    """ADM-02: the context contains the edited text."""
    rows = fill(session, *WHOLE)
    edit(session=session, author=ana, message_id=rows[1].pk, text="Ho")
    edit(session=session, author=ana, message_id=rows[3].pk, text="Well")
    said = context(live(session))
    assert [message.text for message in said] == ["Ho", "Well"]


def test_edit_without_a_change_makes_no_revision(session: Session, ana: User) -> None:
    """An edit without a change makes no revision (MSG-11)."""
    row = fill(session, *WHOLE)[1]
    edit(session=session, author=ana, message_id=row.pk, text="Hi")
    row.refresh_from_db()
    assert row.edited_at is None
    assert not MessageRevision.objects.exists()
    assert Session.objects.get().revision == 5


def test_second_editor_gets_a_conflict(session: Session, ana: User, bo: User) -> None:
    """MSG-11: an edit of an outdated text is refused, and the error contains the present text."""
    row = fill(session, *WHOLE)[3]
    edit(session=session, author=ana, message_id=row.pk, text="Ana's", seen=4)
    refused = refusal(edit, session=session, author=bo, message_id=row.pk, text="Bo's", seen=4)
    assert (refused.code, refused.details) == ("stale", {"current": "Ana's", "revision": 6, "by": "Ana"})
    assert ChatMessage.objects.get(pk=row.pk).text == "Ana's"
    edit(session=session, author=bo, message_id=row.pk, text="Bo's", seen=6)
    assert ChatMessage.objects.get(pk=row.pk).text == "Bo's"


def test_only_a_changed_text_makes_an_edit_stale(session: Session, ana: User, bo: User) -> None:
    """MSG-11: excluding or moving a message does not make an open edit outdated."""
    rows = fill(session, *WHOLE)
    exclude(session, bo, rows[3].pk)
    remove(session=session, author=bo, message_id=rows[2].pk)
    edit(session=session, author=ana, message_id=rows[3].pk, text="Then", seen=4)
    assert ChatMessage.objects.get(pk=rows[3].pk).text == "Then"


def test_persons_message_is_edited_by_them_and_the_owner(session: Session, ana: User, bo: User) -> None:
    """MSG-11: only the author, the session's owner and staff edit or remove a user's message.
    The row names an editor who is not the author.
    """
    session_of_bo = create_session(owner=bo)
    row = fill(session, START, {**HI, "user": bo, "sender": "Bo"}, DONE)[1]
    marks = []
    for author, text in ((bo, "One"), (ana, "Two"), (bo, "Three")):
        edit(session=session, author=author, message_id=row.pk, text=text)
        row.refresh_from_db()
        marks.append((row.edited_by, row.edited_by_name))
    assert marks == [(None, ""), (ana, "Ana"), (None, "")]
    theirs = fill(session_of_bo, START, {**HI, "user": bo}, {**HI, "user": None}, DONE)
    for each in theirs[1:3]:
        about: dict[str, Any] = {"session": session_of_bo, "author": ana, "message_id": each.pk}
        assert refusal(edit, **about, text="Mine").code == "not_yours"
        assert refusal(remove, **about).code == "not_yours"
        edit(**about, text="By staff", as_staff=True)
        remove(**about, as_staff=True)
        assert refusal(restore, **about).code == "not_yours"
        restore(session=session_of_bo, author=bo, message_id=each.pk)
        each.refresh_from_db()
        assert (each.text, each.edited_by_name) == ("By staff", "Ana")


@pytest.mark.parametrize(
    ("text", "code"), [("", "empty"), (" \n", "empty"), ("a\0", "not_storable"), ("\ud800", "not_storable")]
)
def test_edit_accepts_any_text_that_can_be_stored(session: Session, ana: User, text: str, code: str) -> None:
    """An edit accepts any text that can be stored (MSG-12)."""
    row = fill(session, *WHOLE)[1]
    assert refusal(edit, session=session, author=ana, message_id=row.pk, text=text).code == code
    assert ChatMessage.objects.get(pk=row.pk).text == "Hi"


def test_edit_has_the_limit_of_a_message(session: Session, ana: User, settings: Settings) -> None:
    """An edit has the length limit of a message (MSG-12)."""
    settings.MAX_MESSAGE_CHARS = 5
    row = fill(session, *WHOLE)[1]
    assert refusal(edit, session=session, author=ana, message_id=row.pk, text="123456").code == "too_long"
    edit(session=session, author=ana, message_id=row.pk, text="12345")


@pytest.mark.parametrize(
    ("change", "row", "code"),
    [
        (edit_to_x, START, "not_editable"),
        (edit_to_x, TOOL, "not_editable"),
        (edit_to_x, ERROR, "not_editable"),
        (exclude, ERROR, "never_sent"),
        (exclude, DONE, "never_sent"),
        (take_away, START, "not_removable"),
        (take_away, DONE, "not_removable"),
    ],
)
def test_edits_of_fixed_rows_are_refused(session: Session, ana: User, change: Change, row: Fields, code: str) -> None:
    """Edits of markers and other fixed rows are refused (MSG-09, MSG-11)."""
    made = fill(session, START, HI, row)[2]
    assert refusal(change, session, ana, made.pk).code == code
    assert not MessageRevision.objects.exists()


@pytest.mark.parametrize("at", [0, 2])
def test_removed_marker_is_not_restored_alone(session: Session, ana: User, at: int) -> None:
    """MSG-03, MSG-11: a marker is removed and restored with the last message of its turn only."""
    rows = fill(session, START, HI, DONE)
    take_away(session, ana, rows[1].pk)
    assert refusal(bring_back, session, ana, rows[at].pk).code == "not_removable"
    bring_back(session, ana, rows[1].pk)
    present = ChatMessage.objects.filter(removed_at=None).order_by("sequence").values_list("pk", "sequence")
    assert list(present) == [(row.pk, place) for place, row in enumerate(rows, 1)]


@each_change
@pytest.mark.parametrize("message_id", ["m_none", "", "of another session"])
def test_unknown_message_is_refused(session: Session, ana: User, change: Change, message_id: str) -> None:
    """MSG-11: an unknown message, or one of another session, is refused."""
    other = fill(create_session(owner=ana), *WHOLE)[1].pk
    assert refusal(change, session, ana, other if " " in message_id else message_id).code == "no_such_message"


@pytest.mark.parametrize("change", [*CHANGES, bring_back])
def test_archived_session_cannot_be_edited(session: Session, ana: User, change: Change) -> None:
    """An archived session can't be edited (MSG-11)."""
    row = fill(session, *WHOLE)[1]
    Session.objects.filter(pk=session.pk).update(status="archived")
    assert refusal(change, session, ana, row.pk).code == "archived"


@pytest.mark.parametrize(
    ("change", "in_its_turn", "elsewhere"),
    [(edit_to_x, "busy", "done"), (exclude, "busy", "done"), (take_away, "busy", "busy"), (bring_back, "busy", "busy")],
)
def test_running_turn_is_left_alone(
    session: Session, ana: User, change: Change, in_its_turn: str, elsewhere: str
) -> None:
    """ADM-02: nothing changes in a running turn.
    Other messages can be edited and excluded in the meantime, but not removed or restored.
    """
    before = fill(session, *WHOLE)[1]
    now = fill(session, START, HI, turn_id="t_2")[1]
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_2")
    for row, expected in ((now, in_its_turn), (before, elsewhere)):
        if expected == "busy":
            assert refusal(change, session, ana, row.pk).code == "busy"
        else:
            change(session, ana, row.pk)


def test_queued_message_is_its_senders(session: Session, ana: User, bo: User) -> None:
    """RUN-06: a queued message can be edited by its sender only."""
    send_message(session=session, author=ana, text="Go")
    queued = send_message(session=session, author=bo, text="Wait")
    assert refusal(edit, session=session, author=ana, message_id=queued.id, text="x").code == "not_yours"
    edit(session=session, author=bo, message_id=queued.id, text="Wait!")
    assert ChatMessage.objects.get(pk=queued.id).text == "Wait!"
    assert refusal(exclude, session, bo, queued.id).code == "queued"


def test_excluded_message_is_not_sent(session: Session, ana: User) -> None:
    """MSG-09, CTX-03: a call is excluded with its result, other rows of a response one by one, and all of them can be
    included again."""
    rows = fill(session, START, HI, *({**row, "response_id": "r_1"} for row in (ANSWER, TOOL)), ANSWER, DONE)
    before = check_context(live(session))
    for row in rows[1:5]:
        exclude(session, ana, row.pk)
        check_context(live(session))
        exclude(session, ana, row.pk)
    assert context(live(session)) == []
    for row in rows[1:5]:
        set_included(session=session, author=ana, message_id=row.pk, included=True)
    assert check_context(live(session)) == before
    kinds = list(MessageRevision.objects.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["exclude"] * 4 + ["include"] * 4


def test_removed_message_leaves_no_gap(session: Session, ana: User) -> None:
    """MSG-03, MSG-11: after a removal, later rows move up, and the record names the user who removed the message."""
    rows = fill(session, *WHOLE)
    remove(session=session, author=ana, message_id=rows[2].pk)
    kept = [row for row in rows if row is not rows[2]]
    assert places(session) == list(enumerate((row.pk for row in kept), 1))
    record = MessageRevision.objects.get()
    assert (record.kind, record.user, record.before) == (
        "remove",
        ana,
        {"revision": 3, "include_in_context": True, "after": rows[1].pk},
    )


def test_last_of_a_turn_takes_its_markers_along(session: Session, ana: User) -> None:
    """MSG-11: removing the last message of a turn removes its markers too; restoring the message restores them."""
    before, rows = fill(session, *WHOLE), fill(session, START, HI, DONE, turn_id="t_2")
    after = fill(session, START, HI, DONE, turn_id="t_3")
    whole = places(session)
    remove(session=session, author=ana, message_id=rows[1].pk)
    assert [pk for _, pk in places(session)] == [row.pk for row in (*before, *after)]
    restore(session=session, author=ana, message_id=rows[1].pk)
    assert places(session) == whole


@pytest.mark.parametrize("order", [(2, 3), (3, 2), (1, 3, 2), (3, 1, 2), (2, 1, 3)])
@pytest.mark.parametrize("back", [1, -1])
def test_restored_messages_find_their_places(session: Session, ana: User, order: tuple[int, ...], back: int) -> None:
    """MSG-11, MSG-03: removed neighbors return to their places in any order of removals and restorations."""
    rows = fill(session, *WHOLE)
    whole = places(session)
    for number in order:
        remove(session=session, author=ana, message_id=rows[number].pk)
    for number in order[::back]:
        restore(session=session, author=ana, message_id=rows[number].pk)
        restore(session=session, author=ana, message_id=rows[number].pk)
    assert places(session) == whole


def test_messages_that_a_retry_withdrew_cannot_be_restored_alone(session: Session, ana: User) -> None:
    """RUN-12, MSG-11: a message that a retry withdrew cannot be restored alone, because another answer has
    replaced it."""
    rows = fill(session, *WHOLE)
    retry(session=session, author=ana, message_id=rows[3].pk)
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="")
    assert refusal(bring_back, session, ana, rows[3].pk).code == "replaced"


def test_message_of_a_turn_that_was_retried_away_has_no_place(session: Session, ana: User) -> None:
    """RUN-12, MSG-11: a removed message whose turn a retry withdrew has no place, because it would be inside another
    turn."""
    first, second = fill(session, *WHOLE), fill(session, START, HI, ANSWER, DONE, turn_id="t_2")
    remove(session=session, author=ana, message_id=second[2].pk)
    retry(session=session, author=ana, message_id=first[3].pk)
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="")
    assert refusal(bring_back, session, ana, second[2].pk).code == "replaced"


def test_removing_costs_the_same_in_a_long_session(
    session: Session, ana: User, django_assert_max_num_queries: Any
) -> None:
    """MSG-03: all later rows move in one statement, however long the session is."""
    row = fill(session, START, HI, *[ANSWER] * 60, DONE)[1]
    with django_assert_max_num_queries(16):
        remove(session=session, author=ana, message_id=row.pk)
