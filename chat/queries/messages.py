"""Queries for viewers: pages of messages, a session's state, and changes since a revision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial

from django.db.models import F, Q, QuerySet

from agents.elicitation import CANCELLED
from agents.messages import Json
from chat.models import ASKING, ChatMessage, MessageDelta, MessageStatus, MessageType, Session, SessionRun
from chat.overrides.composed_queries import Composed
from chat.projections.subsessions import shown_call, shown_subsession
from chat.queries import cast, presets, reasoning
from chat.queries.attachments import fetch_attachments
from chat.runs.elicitations import records_of
from chat.session_snapshot import SessionSnapshot, agent_state
from chat.snapshots import MessageSnapshot, json_chars

# Messages on a page by default and at most, and the messages before and after one that is shown.
PAGE_MESSAGES = 50
MAX_PAGE_MESSAGES = 200
NEIGHBORS = 25
# Several screens of text, which is usually what limits a page. Earlier messages are loaded when the user scrolls up.
PAGE_CHARS = 12_000
# Larger than any sequence number.
NO_END = 2**63 - 1
# The most characters of arguments and results of tools on a page. There may be more of them than of texts, because they
# are folded and cost less.
PAGE_RESULT_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in order, and the `queued` messages after them. Neither has removed ones."""

    messages: list[MessageSnapshot]
    queued: list[MessageSnapshot]
    has_older: bool
    has_newer: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes in a session since a revision, queued messages last. `removed` are ids of removed messages.

    `is_known` is False if the revision is not one of this history, or messages removed after it have been purged. The
    client then has to discard its messages.
    """

    session: SessionSnapshot
    messages: list[MessageSnapshot]
    removed: list[str]
    is_known: bool = True

    @property
    def revision(self) -> int:
        return self.session.revision


def page_before(
    session: Session,
    sequence: int | None = None,
    limit: int = PAGE_MESSAGES,
    chars: int = PAGE_CHARS,
    turn_id: str | None = None,
) -> Page:
    """Read the last messages before a sequence number, or of the session; fewer if they exceed `chars` characters.

    `limit` is at most `MAX_PAGE_MESSAGES`. `turn_id` restricts the page to one turn, which has no queued messages.
    """
    limit = max(1, min(limit, MAX_PAGE_MESSAGES))
    before = NO_END if sequence is None else sequence
    turn = () if turn_id is None else (turn_id,)
    found = _newest(limit + 1).read(session.pk, before, *turn)
    shown, has_older = _fill_page(found, limit, chars)
    queued = _QUEUED.read(session.pk) if sequence is None and turn_id is None else []
    return Page(snapshots(shown[::-1]), snapshots(queued), has_older)


def page_after(
    session: Session,
    after_sequence: int,
    limit: int = PAGE_MESSAGES,
    chars: int = PAGE_CHARS,
    turn_id: str | None = None,
) -> Page:
    """Read the oldest messages after a sequence number; fewer if their texts exceed `chars` characters."""
    rows = _rows(session.pk, turn_id).filter(sequence__gt=after_sequence).order_by("sequence")
    shown, has_newer = _fill_page(list(rows[: limit + 1]), limit, chars)
    return Page(snapshots(shown), [], has_older=True, has_newer=has_newer)


def page_around(session: Session, message_id: str) -> Page | None:
    """Read a message with its neighbors. Return None if it does not exist or was removed."""
    sequence = sequence_of(session, message_id)
    if sequence is None:
        return None
    before = page_before(session, sequence + 1, limit=NEIGHBORS)
    after = page_after(session, sequence, limit=NEIGHBORS)
    return Page([*before.messages, *after.messages], [], before.has_older, after.has_newer)


def sequence_of(session: Session, message_id: str) -> int | None:
    """Return the sequence number of a message, or None if it does not exist, is queued or was removed."""
    found = ChatMessage.objects.in_conversation(session.pk).filter(pk=message_id)
    return found.values_list("sequence", flat=True).first()


def last_summary(session: Session) -> tuple[str, int] | None:
    """Return the id and the sequence number of the last summary in the context (CTX-07), or None."""
    summaries = ChatMessage.objects.in_conversation(session.pk).filter(
        type=MessageType.TEXT, summarises__isnull=False, include_in_context=True
    )
    last = summaries.order_by("-sequence").only("sequence").first()
    return None if last is None else (last.pk, last.sequence or 0)


def page_since(session: Session, moment: datetime) -> Page | None:
    """Read the first message at or after a moment with its neighbors. Return None if there is none."""
    rows = ChatMessage.objects.in_conversation(session.pk).filter(timestamp__gte=moment)
    first = rows.order_by("sequence").values_list("pk", flat=True).first()
    return None if first is None else page_around(session, first)


def _rows(session_id: str, turn_id: str | None) -> QuerySet[ChatMessage]:
    rows = ChatMessage.objects.in_conversation(session_id)
    return rows if turn_id is None else rows.filter(turn_id=turn_id)


@cache
def _newest(count: int) -> Composed[ChatMessage]:
    """Compose the query for the last `count` messages of a session before a sequence number, of one turn if given."""

    def build(session_id: str, before: int, turn_id: str | None = None) -> QuerySet[ChatMessage]:
        return _rows(session_id, turn_id).filter(sequence__lt=before).order_by("-sequence")[:count]

    return Composed(build)


_QUEUED = Composed(ChatMessage.objects.queued)


def _fill_page(found: list[ChatMessage], limit: int, chars: int) -> tuple[list[ChatMessage], bool]:
    """Return the rows that fit on a page, and whether there are more."""
    shown = found[: min(limit, _filling(found, chars))]
    return shown, len(found) > len(shown)


def _filling(rows: Sequence[ChatMessage], room: int) -> int:
    """Return how many of the rows fill a page with room for `room` characters. The last row may exceed it."""
    result_room = PAGE_RESULT_CHARS
    for count, row in enumerate(rows, 1):
        room -= len(row.text)
        result_room -= len(row.result) + json_chars(row.arguments)
        if room <= 0 or result_room <= 0:
            return count
    return len(rows)


def answer_to(message_id: str, number: int) -> Json | None:
    """Return the answer to a question of a running call, or None if there is none. `number` counts from 1.

    A question that was skipped is cancelled.
    """
    asked = ChatMessage.objects.filter(pk=message_id).values_list("asked", flat=True).first()
    records = records_of(asked)
    record = records[number - 1] if len(records) >= number else {}
    return record.get("answer") or (CANCELLED if record.get("withdrawn") else None)


def session_snapshot(session: Session) -> SessionSnapshot:
    """Return a session's present state, including its agent's status (RUN-03)."""
    (run,) = _RUN.read(session.pk)
    delegated = Q(status=MessageStatus.WAITING, subsession__isnull=False)
    running = ChatMessage.objects.filter(Q(status=MessageStatus.RUNNING) | ASKING | delegated, session=session)
    columns = ("tool_name", "status", "asked", "subsession")
    rows = list(running.order_by("sequence").only(*columns)) if run.state != "idle" else []
    is_asking = any(row.is_asking for row in rows)
    call = shown_call(rows)
    tool_name, waits_for = (call.tool_name or "unknown", shown_subsession(call, rows)) if call else ("", None)
    return SessionSnapshot.from_row(
        session,
        agent_state(run, tool_name, waits_for, is_asking=is_asking),
        reasoning.applied(session),
        tuple(member.to_json() for member in cast.members(session)),
        agent_title=presets.shown_title(session),
        agent_icon=presets.icon_of(session.config_values),
    )


_RUN = Composed(lambda session_id: SessionRun.objects.filter(pk=session_id))
_SESSION = Composed(lambda session_id: Session.objects.filter(pk=session_id))


def session_by_id(session_id: str) -> SessionSnapshot | None:
    session = _SESSION.first(session_id)
    return session_snapshot(session) if session else None


def changes_since(
    session_id: str, since: int, also: Iterable[str] = (), *, all_streaming: bool = False
) -> Changes | None:
    """Read the changes after a revision, and the messages in `also`. Return None if the session does not exist.

    `all_streaming` adds the messages whose text is growing, because growing text has no revision. The session is read
    first, so rows may be newer than its revision, but never older. It does no harm if a client gets a change twice.
    """
    session = _SESSION.first(session_id)
    if session is None:
        return None
    which = {"is_new": since == 0, "all_streaming": all_streaming}
    ids = tuple(also)  # any number of ids, so the query is composed each time
    if ids:
        rows = list(_changed_rows(session_id, since, ids, **which))
    else:
        rows = _composed_change(**which).read(session_id, since)
    live = [row for row in rows if row.removed_at is None]
    removed = [row.pk for row in rows if row.removed_at is not None]
    return Changes(session_snapshot(session), snapshots(live), removed, has_history_since(session, since))


def _changed_rows(
    session_id: str, since: int, also: tuple[str, ...] = (), *, is_new: bool, all_streaming: bool
) -> QuerySet[ChatMessage]:
    """Return the rows that changed after a revision. Removed rows are left out if the client has nothing (`is_new`)."""
    wanted = Q(revision__gt=since, removed_at__isnull=True) if is_new else Q(revision__gt=since)
    if also:
        wanted |= Q(pk__in=also)
    if all_streaming:
        wanted |= Q(status=MessageStatus.STREAMING)
    places = (F("sequence").asc(nulls_last=True), "created_at", "pk")
    return ChatMessage.objects.filter(wanted, session=session_id).order_by(*places)


@cache
def _composed_change(is_new: bool, all_streaming: bool) -> Composed[ChatMessage]:
    return Composed(partial(_changed_rows, is_new=is_new, all_streaming=all_streaming))


def has_history_since(session: Session, since: int) -> bool:
    """Return whether a client at a revision can get the difference; 0 is a client that has nothing.

    A revision above the session's is of another history, because the rows come from an older backup.
    """
    return not since or (session.purged_revision or 0) <= since <= session.revision


def message_snapshot(message_id: str) -> MessageSnapshot | None:
    """Return one message, or None if it does not exist or was removed."""
    rows = ChatMessage.objects.filter(pk=message_id, removed_at__isnull=True)
    return next(iter(snapshots(list(rows))), None)


def revisions(session_ids: Iterable[str]) -> dict[str, int]:
    """Return the current revisions of many sessions by id, in one query."""
    return dict(Session.objects.filter(pk__in=list(session_ids)).values_list("pk", "revision"))


def snapshots(rows: Sequence[ChatMessage]) -> list[MessageSnapshot]:
    """Return rows as viewers see them, with the text of delta rows in streaming messages."""
    fetch_attachments(rows)
    return [MessageSnapshot.from_row(row) for row in with_full_text(rows)]


def with_full_text(rows: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Complete the text of streaming rows with their delta rows. The returned rows must not be saved.

    The deltas are read before the streaming rows are read again. If deltas are merged into a row in between, its new
    text has them, so that no text is missing.
    """
    streaming = [row.pk for row in rows if row.status == MessageStatus.STREAMING]
    if not streaming:
        return list(rows)
    texts: dict[str, list[str]] = defaultdict(list)
    deltas = MessageDelta.objects.filter(message__in=streaming).order_by("offset")
    for message_id, text in deltas.values_list("message_id", "text"):
        texts[message_id].append(text)
    again = ChatMessage.objects.in_bulk(streaming)
    found = [again.get(row.pk, row) for row in rows]
    for row in found:
        if row.status == MessageStatus.STREAMING:
            row.text = "".join([row.text, *texts.get(row.pk, [])])
    return found
