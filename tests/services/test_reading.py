"""What viewers read: pages, states, and changes since a revision."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from chat.models import ChatMessage, MessageDelta, Session, SessionRun, User
from chat.queries.messages import (
    PAGE_CHARS,
    changes_since,
    message_snapshot,
    page_before,
    revisions,
    session_snapshot,
)
from chat.services.messages.sending import edit_queued, send_message, withdraw
from chat.services.runs.control import retry
from chat.services.sessions.lifecycle import create_session, rename

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def fill(session: Session, count: int, first: int = 1, **fields: object) -> None:
    ChatMessage.objects.bulk_create(
        ChatMessage(session=session, sequence=number, revision=number, text=f"{number}", **fields)
        for number in range(first, first + count)
    )


def texts(messages: list[object]) -> list[str]:
    return [message.text for message in messages]  # type: ignore[attr-defined]  # snapshots


def queries(work: Callable[[], object]) -> int:
    count = 0

    def note(execute: Callable[..., object], *args: object) -> object:
        nonlocal count
        count += 1
        return execute(*args)

    with connection.execute_wrapper(note):
        work()
    return count


def test_newest_page_comes_first(session: Session) -> None:
    """MSG-03: the newest page comes first, in order, and older pages follow up to the first message."""
    fill(session, 120)
    newest = page_before(session)
    assert texts([*newest.messages]) == [f"{number}" for number in range(71, 121)]
    older = page_before(session, sequence=71, limit=70)
    assert texts([*older.messages]) == [f"{number}" for number in range(1, 71)]
    assert (newest.has_older, older.has_older, older.queued) == (True, False, [])


@pytest.mark.parametrize(("limit", "given"), [(0, 1), (-5, 1), (1000, 200)])
def test_page_has_bounds(session: Session, limit: int, given: int) -> None:
    """MSG-03: a page has between 1 and 200 messages, whatever number is requested."""
    fill(session, 250)
    assert len(page_before(session, limit=limit).messages) == given


def test_long_messages_make_a_page_of_fewer(session: Session) -> None:
    """UI-01: the first page has fewer messages if they are long, so that it renders quickly.
    Older pages are limited only by the number of messages.
    """
    fill(session, 120)
    ChatMessage.objects.filter(sequence__in=[118, 115, 114]).update(text="x" * (PAGE_CHARS // 2))
    newest = page_before(session)
    assert [message.sequence for message in newest.messages] == list(range(115, 121))
    assert newest.has_older
    older = page_before(session, sequence=115)
    assert [message.sequence for message in older.messages] == list(range(65, 115))


def test_growing_text_is_read_whole(session: Session) -> None:
    """LIVE-01: the text of a streaming row and its deltas are joined by their offsets, with a fixed number of
    queries."""
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    fill(session, 1, status="streaming", role="assistant")
    row = ChatMessage.objects.get()
    for offset, text in ((6, "!"), (1, " two"), (5, "3")):
        MessageDelta.objects.create(message=row, offset=offset, text=text)
    assert page_before(session).messages[0].text == "1 two3!"
    snapshot = message_snapshot(row.pk)
    assert snapshot is not None
    assert snapshot.text == "1 two3!"
    one = queries(lambda: page_before(session))
    fill(session, 29, first=2, status="streaming", role="assistant")
    assert queries(lambda: page_before(session)) == one


def test_changes_list_new_changed_and_removed_messages(session: Session, ana: User) -> None:
    """LIVE-02: the changes have the rows and tombstones after a revision.

    From revision 0, they have all rows and no tombstones.
    """
    send_message(session=session, author=ana, text="one")
    sent = send_message(session=session, author=ana, text="two")
    before = revisions([session.pk])[session.pk]
    withdraw(session=session, author=ana, message_id=sent.id)
    rename(session=session, author=ana, title="Talk")
    changes = changes_since(session.pk, before)
    assert changes is not None
    assert (changes.messages, changes.removed, changes.session.title) == ([], [sent.id], "Talk")
    assert changes.revision == before + 2
    whole = changes_since(session.pk, 0)
    assert whole is not None
    assert ([message.text for message in whole.messages], whole.removed) == (["", "one"], [])
    assert changes_since("s_none", 0) is None


def test_queue_has_one_order_for_everyone(session: Session, ana: User) -> None:
    """RUN-06, LIVE-01: queued messages come last, in the order of sending, for pages that load and clients that
    sync."""
    sent = [send_message(session=session, author=ana, text=text) for text in ("now", "first", "second")]
    edit_queued(session=session, author=ana, message_id=sent[1].id, text="First")
    changes = changes_since(session.pk, 0)
    assert changes is not None
    assert [message.text for message in changes.messages] == ["", "now", "First", "second"]
    assert [message.text for message in page_before(session).queued] == ["First", "second"]


def test_changes_include_requested_messages(session: Session) -> None:
    """LIVE-02: the changes include the requested messages of this session, changed or not, because the client has their
    text in part."""
    fill(session, 3)
    row, other = ChatMessage.objects.order_by("sequence")[:2]
    elsewhere = create_session(owner=session.owner)
    fill(elsewhere, 1)
    foreign = ChatMessage.objects.get(session=elsewhere)
    changes = changes_since(session.pk, 3, also=[row.pk, foreign.pk, "m_none"])
    assert changes is not None
    assert [message.id for message in changes.messages] == [row.pk]
    assert other.pk not in changes.removed


def test_reading_costs_the_same_for_one_and_for_many(session: Session) -> None:
    """LIVE-02: the first page, a reconnect and the beacon need a fixed number of queries."""
    fill(session, 1)
    one = [queries(lambda: page_before(session)), queries(lambda: changes_since(session.pk, 0))]
    fill(session, 29, first=2)
    assert [queries(lambda: page_before(session)), queries(lambda: changes_since(session.pk, 0))] == one
    assert queries(lambda: revisions([session.pk, *(f"s_{n}" for n in range(30))])) == 1


def test_withdrawn_rows_are_in_no_page(session: Session, ana: User) -> None:
    """RUN-12, MSG-11: withdrawn rows are reported as removed and not shown on any page."""
    fill(session, 1, role="user", turn_id="t_1")
    fill(session, 1, first=2, role="assistant", turn_id="t_1")
    first, second = ChatMessage.objects.order_by("sequence")
    retry(session=session, author=ana, message_id=second.pk)
    assert [message.id for message in page_before(session).messages] == [first.pk]
    assert message_snapshot(second.pk) is None


@pytest.mark.parametrize(
    ("state", "tools", "expected"),
    [
        ("idle", [], ("idle", "")),
        ("running", [], ("thinking", "")),
        ("cancelling", [], ("thinking", "")),
        ("waiting", [], ("waiting", "")),
        ("running", ["first", "last"], ("tool_calling", "last")),
        ("running", [""], ("tool_calling", "unknown")),
    ],
)
def test_status_is_that_of_the_rows(session: Session, state: str, tools: list[str], expected: tuple[str, str]) -> None:
    """RUN-03, MSG-10: a page that loads gets the status from the rows."""
    SessionRun.objects.filter(pk=session.pk).update(state=state, turn_id="" if state == "idle" else "t_1")
    for number, name in enumerate(tools, start=1):
        ChatMessage.objects.create(
            session=session, sequence=number, type="tool_group", status="running", tool_name=name
        )
    snapshot = session_snapshot(session)
    assert (snapshot.agent_status, snapshot.tool_name) == expected
