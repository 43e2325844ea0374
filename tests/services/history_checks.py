"""Invariants of a session, which are checked after each change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.test import TestCase
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition

from chat.bus.events import ChatEvent, Durable, MessageChanged, SessionChanged, decode
from chat.bus.publisher import Message, Publisher
from chat.errors import ServiceError
from chat.live.event_json import changes_frames, event_frame
from chat.models import (
    UNFINISHED,
    ChatMessage,
    MessageRevision,
    MessageStatus,
    MessageType,
    RunState,
    Session,
    SessionRun,
    User,
)
from chat.projections.context import CONTEXT_FIELDS, context, from_summary
from chat.queries import messages as reading
from chat.queries.context_rows import ContextCache, context_rows, request_facts
from chat.services.sessions.lifecycle import create_session
from tests.live.states import assert_shows
from tests.support.client import EventsClient
from tests.support.filled import live
from tests.support.player import Player
from tests.support.protocol import check_context
from tests.support.rest import check_rest

Said = tuple[str, str]
GROWING = (MessageStatus.WAITING, *UNFINISHED)


class RecordingPublisher(Publisher):
    """A publisher that keeps the messages instead of sending them."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []

    def put(self, group: str, messages: Sequence[Message], listed: Sequence[str] = ()) -> None:
        self.messages += messages


class CheckedSession(RuleBasedStateMachine):
    """A session with two users and one agent; `client` applies the published events."""

    published: RecordingPublisher
    people: list[User]

    def __init__(self) -> None:
        super().__init__()
        self.session = create_session(owner=self.people[0])
        self.contexts = ContextCache()
        self.player = Player(self.session)
        self.order: list[str] = []
        self.committed: dict[str, set[Said]] = defaultdict(set)
        self.client = EventsClient()
        self.left_out: list[int] = []
        self.published.messages.clear()
        self._catch_up()

    @invariant()
    def rows_are_whole(self) -> None:
        rows = live(self.session)
        self._check_order(rows)
        check_pairs(from_summary(rows))
        read = context_rows(self.session)
        assert [row.pk for row in read] == [row.pk for row in from_summary(rows)]
        assert context(read) == context(rows)

    @invariant()
    def kept_rows_are_the_stored_ones(self) -> None:
        """MSG-01: the context that a process keeps between requests never differs from the rows."""
        session = Session.objects.get(pk=self.session.pk)
        kept = self.contexts.rows(session, request_facts(session))
        names = (*CONTEXT_FIELDS, "revision")
        stored = ChatMessage.objects.in_conversation(self.session.pk).order_by("sequence").values_list(*names)
        assert [tuple(getattr(row, name) for name in names) for row in kept] == list(stored)

    def _check_order(self, rows: list[ChatMessage]) -> None:
        """MSG-03: check that places have no gaps, and that restored messages are at their old places."""
        assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
        present = [row.pk for row in rows]
        self._take_in(present)
        assert present == [pk for pk in self.order if pk in present]

    @invariant()
    def stream_equals_rows(self) -> None:
        """LIVE-01: each durable event has the next revision, and applied in order the events give the rows."""
        published = [message["events"] for message in self.published.messages if message["session"] == self.session.pk]
        for event in (decode(each) for events in published for each in events):
            if isinstance(event, Durable):
                assert event.revision == self.client.revision + 1
            self._fold(event)
        self.published.messages.clear()
        truth = reading.changes_since(self.session.pk, 0)
        assert truth is not None
        assert not self.client.wants_sync
        assert_shows(self.client, truth)

    @invariant()
    def nothing_is_lost(self) -> None:
        """MSG-11: every text and result that a message has had is in its row or in its revisions."""
        rows = list(ChatMessage.objects.filter(session=self.session))
        kept: dict[str, set[Said]] = {row.pk: {(row.text, row.result)} for row in rows}
        records = MessageRevision.objects.filter(message__session=self.session)
        for message_id, before in records.values_list("message_id", "before"):
            if "text" in before:  # the other revisions did not change the content
                kept[message_id].add((before["text"], before["tool"]["result"] if before["tool"] else ""))
        for row in rows:
            if row.status not in GROWING:
                self.committed[row.pk].add((row.text, row.result))
        for message_id, said in self.committed.items():
            assert said <= kept[message_id]

    @invariant()
    @precondition(lambda self: self.is_idle)
    def rest_is_whole(self) -> None:
        """MSG-07, RUN-08: at rest, every turn is closed and no row is unfinished."""
        if not self.player.begin():
            check_rest(self.session)

    # -- helpers ----------------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return SessionRun.objects.get(pk=self.session.pk).state == RunState.IDLE

    def do(self, service: Callable[..., Any], who: int = 0, **what: Any) -> Any:
        """Call a service for a user; return None if it refuses."""
        try:
            with committed():
                return service(session=self.session, author=self.people[who], **what)
        except ServiceError:
            return None

    def row(self, at: int) -> str:
        """Draw one of the existing rows."""
        rows = live(self.session)
        return rows[at % len(rows)].pk if rows else "m_none"

    def any_of(self, at: int, **what: Any) -> str:
        """Draw one of the rows that have these values."""
        rows = ChatMessage.objects.filter(session=self.session, **what).order_by("created_at", "pk")
        found = list(rows.values_list("pk", flat=True))
        return found[at % len(found)] if found else "m_none"

    def _take_in(self, present: list[str]) -> None:
        """Record the places of new rows: before the rows that follow them."""
        place = len(self.order)
        for message_id in reversed(present):
            if message_id in self.order:
                place = self.order.index(message_id)
            else:
                self.order.insert(place, message_id)

    def _fold(self, event: ChatEvent) -> None:
        """Give an event's frame to the client, and read the rows that were too large for the event."""
        row = session = None
        if isinstance(event, MessageChanged):
            row = event.message or reading.message_snapshot(event.id)
        if isinstance(event, SessionChanged):
            session = reading.session_by_id(self.session.pk)
        frame = event_frame(event, row, session)
        if frame is not None:
            self.client.receive(dict(frame))

    def _catch_up(self) -> None:
        asked = self.client.sync()
        changes = reading.changes_since(self.session.pk, asked["since"], asked["have"])
        assert changes is not None
        for frame in changes_frames(changes, asked["since"], asked["have"]):
            self.client.receive(dict(frame))


def check_pairs(rows: list[ChatMessage]) -> None:
    """CTX-03, MSG-09: check that a call and its result are in the context together, and that only included rows are in
    it."""
    messages = check_context(rows, may_wait=True)
    tools = [row for row in rows if row.type == MessageType.TOOL_GROUP and row.include_in_context]
    calls = [call.id for message in messages for call in message.tool_calls]
    results = {result.call_id for message in messages for result in message.tool_results}
    assert calls == [row.tool_call_id for row in tools]
    assert results >= {row.tool_call_id for row in tools if row.status != MessageStatus.PENDING}


@contextmanager
def committed() -> Iterator[None]:
    """Run the callbacks that wait for a commit, because these tests roll back."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        yield
