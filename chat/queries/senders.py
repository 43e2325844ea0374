"""The senders of a session's messages. The model gets their names if there are several (CTX-06)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from chat.models import ChatMessage, MessageRole, MessageStatus, MessageType, ModelRequest
from chat.projections.context import NOTHING_AROUND, Around, Named, author_of, is_summary

# The most sessions whose senders are cached.
MAX_KNOWN = 1_000


def user_messages(session_id: str) -> QuerySet[ChatMessage]:
    """Return the users' messages that the context is made from, including those that a summary replaces."""
    live = ChatMessage.objects.in_conversation(session_id)
    return live.filter(type=MessageType.TEXT, role=MessageRole.USER, include_in_context=True)


def senders_of(messages: QuerySet[ChatMessage]) -> frozenset[Named]:
    """Read each name of each sender of users' messages, in one query."""
    people = messages.order_by().values_list("user_id", "sender").distinct()
    return frozenset(author_of(ChatMessage(user_id=user_id, sender=sender)) for user_id, sender in people)


def around_request(session_id: str, rows: Sequence[ChatMessage]) -> Around:
    """Return who sent the messages that a summary replaces. `rows` are those of the next request, in order.

    Without a summary, the rows are the whole conversation, so nothing is read.
    """
    summary = _summary_in(rows)
    if summary is None:
        return NOTHING_AROUND
    return Around(senders_of(user_messages(session_id).filter(sequence__lt=summary.sequence)))


@dataclass(frozen=True, slots=True)
class KnownSenders:
    """Who sent the messages before a summary, by its sequence number, as of a session's newest change."""

    around: Around
    place: int
    newest: tuple[str, int]


class SenderCache:
    """The senders of the messages that summaries replace, for recently used sessions.

    Without it, each response after a compaction would read all messages before the summary. `request_facts` reads
    whether an entry is still true.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownSenders] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, session_id: str) -> KnownSenders | None:
        """Return the entry of a session, which may be out of date."""
        with self._lock:
            return self._known.get(session_id)

    def around_request(
        self, session_id: str, rows: Sequence[ChatMessage], known: KnownSenders | None, newest: tuple[str, int]
    ) -> Around:
        """Return what `around_request` does, from the entry `known` if it is of the same summary.

        `newest` is the id and revision of the message that was changed last, read before.
        """
        summary = _summary_in(rows)
        if summary is None:
            return NOTHING_AROUND
        place = summary.sequence or 0
        if known is not None and known.place == place:
            return known.around
        around = around_request(session_id, rows)
        with self._lock:
            self._known[session_id] = KnownSenders(around, place, newest)
            self._known.move_to_end(session_id)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return around


def around_past_request(made: ModelRequest, rows: Sequence[ChatMessage]) -> Around:
    """Return the same for the rows of a past request. Messages that were removed later count, too.

    The place of the summary may have changed since, but it has the time of the last message that it replaces.
    """
    summary = _summary_in(rows)
    if summary is None:
        return NOTHING_AROUND
    messages = ChatMessage.objects.filter(
        Q(removed_at=None) | Q(removed_at__gt=made.created_at),
        session=made.session_id,
        type=MessageType.TEXT,
        role=MessageRole.USER,
        include_in_context=True,
        timestamp__lte=summary.timestamp,
    )
    return Around(senders_of(messages.exclude(status=MessageStatus.QUEUED)))


def _summary_in(rows: Sequence[ChatMessage]) -> ChatMessage | None:
    """Return the summary with which the rows of a request begin. Only the system prompt may be before it."""
    return next(filter(is_summary, rows[:2]), None)


sender_cache = SenderCache()
