"""Sending messages and changing queued ones, called through the services."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection, connections
from pytest_django.fixtures import Settings

from chat.errors import NoSuchMessage, NoSuchSession, ServiceError
from chat.limits.quotas import record_tokens
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.queries.messages import page_before
from chat.services.messages.sending import edit_queued, send_message, send_now, withdraw
from chat.services.runs.turns import deliver_queued
from chat.services.sessions import schedules
from chat.services.sessions.lifecycle import configure, create_session
from chat.services.transaction import SessionTransaction
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


def working(session: Session, author: User) -> None:
    """Start a turn in the session by its first message; no worker runs the turn."""
    send_message(session=session, author=author, text="Work!")


def queued(session: Session) -> list[str]:
    return [message.text for message in page_before(session).queued]


def test_first_message_opens_a_turn(session: Session, ana: User) -> None:
    """RUN-01, MSG-03, MSG-04: the first message adds turn_start and the text with its author, and requests a run."""
    sent = send_message(session=session, author=ana, text="Hi")
    start, text = ChatMessage.objects.filter(session=session).order_by("sequence")
    run = SessionRun.objects.get(pk=session.pk)
    assert (start.type, start.sequence, start.turn_id) == ("turn_start", 1, run.turn_id)
    assert (text.pk, text.sequence, text.turn_id, text.role) == (sent.id, 2, run.turn_id, "user")
    assert (text.sender, text.user, text.model, text.duration_ms) == ("Ana", ana, "", None)
    assert (run.state, run.wanted, run.done) == ("running", 1, 0)
    assert start.timestamp.tzinfo is not None


LONG = "How do we move the whole of the house to the other side of the river?"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello\n  there ", "Hello there"),
        (LONG, "How do we move the whole of the house to the other side of…"),
        ("长" * 100, "长" * 59 + "…"),
    ],
)
def test_first_message_names_a_session(ana: User, bo: User, text: str, title: str) -> None:
    """UI-08: the title is one line of whole words from the first message.

    Viewers are notified, and later messages do not change it.
    """
    session = create_session(owner=ana)
    revision = send_message(session=session, author=ana, text=text) and Session.objects.get(pk=session.pk).revision
    send_message(session=session, author=bo, text="And then?")
    assert Session.objects.get(pk=session.pk).title == title
    assert revision == 3
    Session.objects.update(title="")
    send_message(session=session, author=ana, text="Without a name, as a user wanted it")
    assert Session.objects.get(pk=session.pk).title == ""


def test_first_message_does_not_replace_a_chosen_title(session: Session, ana: User) -> None:
    """UI-08: the first message does not replace a title that a user has chosen."""
    send_message(session=session, author=ana, text="Hi")
    assert Session.objects.get(pk=session.pk).title == "Plan"


def test_ids_are_the_servers_and_opaque(session: Session, ana: User) -> None:
    """MSG-02: the server makes ids of the form m_ and at least 24 hex digits."""
    sent = send_message(session=session, author=ana, text="Hi")
    assert sent.id[:2] == "m_"
    assert len(bytes.fromhex(sent.id[2:])) >= 12


def test_message_while_the_agent_works_is_queued(session: Session, ana: User, bo: User) -> None:
    """RUN-06: the message is committed without a place, and the run is requested again."""
    working(session, ana)
    assert send_message(session=session, author=bo, text="And this").queued
    row = ChatMessage.objects.get(text="And this")
    assert (row.status, row.sequence, row.turn_id) == ("queued", None, "")
    assert SessionRun.objects.get(pk=session.pk).wanted == 2


def test_queue_keeps_its_order_when_one_is_edited(session: Session, ana: User, bo: User) -> None:
    """RUN-06: an edited message keeps its place in the queue."""
    working(session, ana)
    first = send_message(session=session, author=ana, text="frist")
    send_message(session=session, author=bo, text="second")
    edit_queued(session=session, author=ana, message_id=first.id, text="first")
    assert queued(session) == ["first", "second"]
    assert deliver_queued(SessionTransaction.lock(session.pk))
    delivered = ChatMessage.objects.filter(session=session, type="text").order_by("sequence")
    assert [row.text for row in delivered] == ["Work!", "first", "second"]


@pytest.mark.parametrize("by_schedule", [False, True])
def test_turn_belongs_to_the_user_who_waits_for_its_answer(
    session: Session, ana: User, bo: User, by_schedule: bool
) -> None:
    """RUN-06, RUN-17: the tokens of the turn count for this user, also if talk or a scheduled message was queued
    before."""
    configure(session=session, author=ana, replies="mentions")
    let_in(session, bo, "editor")
    send_message(session=session, author=ana, text="@agent, work!")
    if by_schedule:
        row = schedules.add(author=ana, session_id=session.pk, text="Report", cron="0 9 * * *", zone="UTC")
        send_message(session=session, author=ana, text=row.text, schedule=row)
    else:
        send_message(session=session, author=ana, text="Let me look.")
    send_message(session=session, author=bo, text="@agent, go on")
    tx = SessionTransaction.lock(session.pk)
    assert deliver_queued(tx)
    assert SessionRun.objects.get(pk=session.pk).started_by == bo


@pytest.mark.parametrize("state", ["running", "waiting"])
def test_queued_message_is_for_the_agents_that_its_edited_text_mentions(
    session: Session, ana: User, bo: User, state: str
) -> None:
    """RUN-17, UI-12: an edit that adds a mention is like a new message for the agent, also if it waits for answers."""
    configure(session=session, author=ana, replies="mentions")
    send_message(session=session, author=ana, text="@agent, work!")
    SessionRun.objects.filter(pk=session.pk).update(state=state)
    talk = send_message(session=session, author=bo, text="Check the logs")
    before = SessionRun.objects.get(pk=session.pk)
    edit_queued(session=session, author=bo, message_id=talk.id, text="@agent, check the logs")
    run = SessionRun.objects.get(pk=session.pk)
    assert (before.state, run.state, run.wanted) == (state, "running", before.wanted + 1)
    assert deliver_queued(SessionTransaction.lock(session.pk))
    assert ChatMessage.objects.get(pk=talk.id).turn_id == SessionRun.objects.get(pk=session.pk).turn_id


def test_queued_message_begins_no_turn_after_its_mention_was_removed(session: Session, ana: User, bo: User) -> None:
    """RUN-17: it is delivered as a message for the other users, also by Send now."""
    configure(session=session, author=ana, replies="mentions")
    send_message(session=session, author=ana, text="@agent, work!")
    first, second = [send_message(session=session, author=bo, text="@agent, check the logs") for _ in range(2)]
    ChatMessage.objects.filter(pk=second.id).update(held=True)
    for each in (first, second):
        edit_queued(session=session, author=bo, message_id=each.id, text="Never mind, Ana")
    assert not deliver_queued(SessionTransaction.lock(session.pk))
    SessionRun.objects.update(state="idle", turn_id="")
    assert send_now(session=session, author=bo) == 1
    assert SessionRun.objects.get(pk=session.pk).state == "idle"
    rows = ChatMessage.objects.filter(pk__in=[first.id, second.id])
    assert [(row.status, row.turn_id, row.for_agent) for row in rows] == [("complete", "", False)] * 2


def test_edited_mention_counts_like_a_new_message(session: Session, ana: User, bo: User, settings: Settings) -> None:
    """RUN-06: a user whose quota is used up cannot request a turn by an edit either."""
    configure(session=session, author=ana, replies="mentions")
    send_message(session=session, author=ana, text="@agent, work!")
    talk = send_message(session=session, author=bo, text="Check the logs")
    settings.QUOTAS = "tokens_per_day=100"
    record_tokens([(bo.pk, 100)])
    edit = partial(edit_queued, session=session, author=bo, message_id=talk.id)
    assert code_of(partial(edit, text="@agent, check the logs")) == "quota_exceeded"
    edit(text="Check the new logs")
    assert queued(session) == ["Check the new logs"]


def test_only_the_sender_changes_a_queued_message(session: Session, ana: User, bo: User) -> None:
    """RUN-06: only the sender edits a queued message. The owner may remove it, but does not get its files."""
    working(session, ana)
    sent = send_message(session=session, author=bo, text="Mine")
    cy = person("Cy", session.workspace)
    for change in (
        lambda: edit_queued(session=session, author=ana, message_id=sent.id, text="Yours"),
        lambda: edit_queued(session=session, author=cy, message_id=sent.id, text="Yours"),
        lambda: withdraw(session=session, author=cy, message_id=sent.id),
    ):
        assert code_of(change) == "not_yours"
    assert withdraw(session=session, author=ana, message_id=sent.id) == []
    withdraw(session=session, author=bo, message_id=send_message(session=session, author=bo, text="Mine").id)
    assert queued(session) == []


def test_users_with_the_same_name_are_distinguished(session: Session, ana: User) -> None:
    """CTX-06: if two users of the session have the same display name, the model gets their user names too."""
    other = person("Ana2", session.workspace)
    User.objects.filter(pk=other.pk).update(display_name="АNA\u200b")
    other.refresh_from_db()
    let_in(session, other, "editor")
    senders = [
        ChatMessage.objects.get(pk=send_message(session=session, author=user, text="Hi").id).sender
        for user in (ana, other)
    ]
    assert senders == ["Ana (ana)", "АNA\u200b (ana2)"]


def test_queued_message_is_not_written_over_from_elsewhere(session: Session, ana: User) -> None:
    """MSG-11, RUN-06: an edit is refused if the same user has changed the queued message on another device in the
    meantime."""
    working(session, ana)
    sent = send_message(session=session, author=ana, text="one")
    seen = ChatMessage.objects.get(pk=sent.id).revision
    edit_queued(session=session, author=ana, message_id=sent.id, text="two", seen=seen)
    assert code_of(lambda: edit_queued(session=session, author=ana, message_id=sent.id, text="3", seen=seen)) == "stale"
    assert queued(session) == ["two"]


def test_delivered_message_cannot_be_changed(session: Session, ana: User) -> None:
    """RUN-06: a message can be changed as a queued one only until it is delivered."""
    working(session, ana)
    sent = send_message(session=session, author=ana, text="Too late")
    deliver_queued(SessionTransaction.lock(session.pk))
    assert code_of(lambda: edit_queued(session=session, author=ana, message_id=sent.id, text="x")) == (
        "already_delivered"
    )
    assert code_of(lambda: withdraw(session=session, author=ana, message_id=sent.id)) == "already_delivered"


def test_changes_of_queued_messages_are_on_record(session: Session, ana: User) -> None:
    """MSG-11: the record has the user, the time and the earlier text. A withdrawn message stays as a hidden row."""
    working(session, ana)
    sent = send_message(session=session, author=ana, text="one")
    edit_queued(session=session, author=ana, message_id=sent.id, text="two")
    withdraw(session=session, author=ana, message_id=sent.id)
    history = MessageRevision.objects.filter(message=sent.id)
    assert [(one.kind, one.user, one.before["text"]) for one in history] == [
        ("edit", ana, "one"),
        ("withdraw", ana, "two"),
    ]
    row = ChatMessage.objects.get(pk=sent.id)
    assert (row.removed_at is not None, row.sequence, row.edited_at is not None) == (True, None, True)
    assert code_of(lambda: withdraw(session=session, author=ana, message_id=sent.id)) == "no_such_message"


def test_messages_of_other_sessions_are_out_of_reach(session: Session, ana: User) -> None:
    """RUN-06: a message's id is looked up only in its own session."""
    other = create_session(owner=ana)
    working(other, ana)
    sent = send_message(session=other, author=ana, text="Elsewhere")
    with pytest.raises(NoSuchMessage):
        withdraw(session=session, author=ana, message_id=sent.id)


def test_repeated_send_adds_nothing(session: Session, ana: User, bo: User) -> None:
    """MSG-02: a repeated send returns the first message, even if it has been delivered, changed or withdrawn in the
    meantime."""
    first = send_message(session=session, author=ana, text="Hi", key="k")
    again = send_message(session=session, author=ana, text="Hi", key="k")
    assert (again.id, again.repeated, again.queued) == (first.id, True, False)
    waiting = send_message(session=session, author=ana, text="More", key="l")
    assert send_message(session=session, author=ana, text="More", key="l").queued
    withdraw(session=session, author=ana, message_id=waiting.id)
    gone = send_message(session=session, author=ana, text="More", key="l")
    assert (gone.id, gone.repeated, gone.queued) == (waiting.id, True, False)
    assert SessionRun.objects.get(pk=session.pk).wanted == 2
    assert code_of(lambda: send_message(session=session, author=bo, text="Hi", key="k")) == "key_taken"


def code_of(change: Callable[[], object]) -> str:
    with pytest.raises(ServiceError) as refused:
        change()
    assert refused.value.message
    return refused.value.code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("a\0b", "not_storable"),
        ("half \ud83d an emoji", "not_storable"),
        ("x" * 2_000_001, "too_long"),
    ],
)
def test_text_that_cannot_be_stored_is_refused(session: Session, ana: User, text: str, code: str) -> None:
    """MSG-12: text that cannot be stored is refused with a clear error, when sent and when edited, and nothing is
    written."""
    working(session, ana)
    sent = send_message(session=session, author=ana, text="Fine")
    assert code_of(lambda: send_message(session=session, author=ana, text=text)) == code
    assert code_of(lambda: edit_queued(session=session, author=ana, message_id=sent.id, text=text)) == code
    assert queued(session) == ["Fine"]


@pytest.mark.parametrize("key", ["a\0b", "\udfff"])
def test_key_that_cannot_be_kept_is_refused(session: Session, ana: User, key: str) -> None:
    """MSG-02, MSG-12: a client's key is checked like any other external text."""
    assert code_of(lambda: send_message(session=session, author=ana, text="Hi", key=key)) == "not_storable"


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "שלום, مرحبا\u202e reversed \u202c",
        "👩‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿 \U0001f9d1\u200d\U0001f33e",
        "e\u0301 is not \u00e9; \ufeff\u200b\u00a0\u2028 stay",
        "\r\n  leading, trailing \t\r\n",
        "\x01\x1b[31mred\x7f",
        "'; DROP TABLE chat_chatmessage; --",
    ],
)
def test_text_is_stored_exactly(session: Session, ana: User, text: str) -> None:
    """MSG-12: the stored text equals the sent text, character by character."""
    sent = send_message(session=session, author=ana, text=text)
    assert ChatMessage.objects.get(pk=sent.id).text == text


def test_archived_session_takes_no_messages(session: Session, ana: User) -> None:
    """RUN-01: an archived session is read-only."""
    Session.objects.filter(pk=session.pk).update(status=Session.Status.ARCHIVED)
    assert code_of(lambda: send_message(session=session, author=ana, text="Hi")) == "archived"


def test_session_that_has_gone_is_refused(session: Session, ana: User) -> None:
    """RUN-01: a user with an open page of a deleted session gets an error."""
    Session.objects.filter(pk=session.pk).delete()
    with pytest.raises(NoSuchSession):
        send_message(session=session, author=ana, text="Hi")


def together(*work: Callable[[], object]) -> list[object]:
    """Run functions in parallel, each in its own thread."""
    results: list[object] = []
    start = threading.Barrier(len(work))

    def do(one: Callable[[], object]) -> None:
        start.wait(10)
        try:
            results.append(one())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=do, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


@pytest.mark.django_db(transaction=True)
def test_same_key_at_once_makes_one_message(ana: User) -> None:
    """MSG-02: a client that repeats a send before the first answer adds one message."""
    session = create_session(owner=ana)
    sent = together(*[lambda: send_message(session=session, author=ana, text="Hi", key="k")] * 4)
    assert len({one.id for one in sent if hasattr(one, "id")}) == 1
    assert sorted(one.repeated for one in sent if hasattr(one, "repeated")) == [False, True, True, True]
    assert ChatMessage.objects.filter(session=session).count() == 2


@pytest.mark.django_db(transaction=True)
def test_messages_at_once_all_find_their_place(ana: User, bo: User) -> None:
    """MSG-03, RUN-06: one message opens the turn, the others are queued, and revisions and sequences have no gaps."""
    session = create_session(owner=ana, title="Plan")
    together(
        *[lambda: send_message(session=session, author=ana, text="A")] * 3,
        *[lambda: send_message(session=session, author=bo, text="B")] * 3,
    )
    rows = ChatMessage.objects.filter(session=session)
    assert rows.filter(status="queued").count() == 5
    assert sorted(rows.values_list("revision", flat=True)) == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(row.sequence for row in rows if row.sequence is not None) == [1, 2]
    assert Session.objects.get(pk=session.pk).revision == 7


def test_sending_costs_the_same_in_a_long_session(session: Session, ana: User) -> None:
    """RUN-01: the number of queries does not depend on the length of the session."""
    few = _queries(lambda: send_message(session=session, author=ana, text="Hi"))
    ChatMessage.objects.bulk_create(
        ChatMessage(session=session, sequence=number, role="user", text="x") for number in range(10, 200)
    )
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="")
    assert _queries(lambda: send_message(session=session, author=ana, text="Hi")) == few


def _queries(work: Callable[[], object]) -> int:
    count = 0

    def counted(execute: Callable[..., object], *args: object) -> object:
        nonlocal count
        count += 1
        return execute(*args)

    with connection.execute_wrapper(counted):
        work()
    return count
