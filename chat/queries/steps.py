"""Steps for clients: page by page, and those that may have changed since a revision (CTX-04, LIVE-03)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Max, Min, Q

from chat.models import ChatMessage, MessageRole, MessageStatus, MessageType, Session
from chat.projections.context import Around, author_of, call_ids, labels, speaker
from chat.projections.segments import TurnSegments, segments
from chat.projections.step_changes import BY_AGENTS, BY_PEOPLE, affected_steps, gone_ids
from chat.projections.steps import AT_WORK, Sourced, Step, WrittenCall, growing, steps, written_calls
from chat.queries.attachments import fetch_attachments
from chat.queries.messages import with_full_text
from chat.queries.senders import senders_of, user_messages

MAX_STEPS = 200
UNFINISHED = (MessageStatus.STREAMING, *AT_WORK)


@dataclass(frozen=True, slots=True)
class StepPage:
    """Some steps in order. `next` is the `after` of the following page, or None at the session's end."""

    revision: int
    steps: list[Step]
    next: int | None


@dataclass(frozen=True, slots=True)
class SegmentPage:
    """Some turns in order. `next` is the `after` of the following page, or None at the session's end."""

    revision: int
    turns: list[TurnSegments]
    next: int | None


@dataclass(frozen=True, slots=True)
class StepChanges:
    """Steps that may have changed up to `revision`, and the ids of steps that may be `gone`.

    `growing` has, for each step whose content ends with a text that is still streaming, the id of that message and the
    text so far.
    """

    revision: int
    steps: list[Step] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    growing: dict[str, tuple[str, str]] = field(default_factory=dict)
    written: list[WrittenCall] = field(default_factory=list)


def page_of_steps(session: Session, after: int = 0, limit: int = MAX_STEPS) -> StepPage:
    """Read at most `limit` steps whose `sequence` is greater than `after`."""
    limit = max(1, min(limit, MAX_STEPS))
    place = after // 2  # the sequence number of the message at step number `after`; see `sequence_of`
    behind = user_messages(session.pk).filter(sequence__gt=place + limit).aggregate(first=Min("sequence"))["first"]
    start = _turn_before(session.pk, place + 1)
    found = steps(_rows(session.pk, start, behind), _around(session.pk, start))
    end = 2 * behind if behind else None
    shown = [each.step for each in found if after < each.step.sequence and (end is None or each.step.sequence < end)]
    if len(shown) > limit:
        return StepPage(session.revision, shown[:limit], shown[limit - 1].sequence)
    return StepPage(session.revision, shown, end - 1 if end else None)


def page_of_segments(session: Session, after: int = 0, limit: int = MAX_STEPS) -> SegmentPage:
    """Read what the agent did in the turns after a place: `limit` messages, and the rest of the last turn."""
    limit = max(1, min(limit, MAX_STEPS))
    live = ChatMessage.objects.in_conversation(session.pk).filter(sequence__gt=after)
    start = live.filter(type=MessageType.TURN_START, sequence__gt=after + limit).order_by("sequence").first()
    rows = live.filter(sequence__lt=start.sequence) if start else live
    found = segments(with_full_text(list(rows.order_by("sequence"))))
    return SegmentPage(session.revision, found, (start.sequence or 0) - 1 if start else None)


def steps_since(session_id: str, since: int) -> StepChanges | None:
    """Read the steps that may have changed after a revision, or all for 0. Return None if the session does not exist.

    Steps in progress are always included, because their progress raises no revision. The session is read first, so rows
    may be newer than its revision, but never older. It does no harm if a client gets a step twice.
    """
    session = Session.objects.filter(pk=session_id).only("revision").first()
    if session is None:
        return None
    if not since:
        rows = _rows(session_id)
        return _changes(session, steps(rows), rows)
    changed = _changed_rows(session_id, since)
    return _since(session, since, changed) if changed else StepChanges(session.revision)


def _changes(session: Session, found: list[Sourced], rows: list[ChatMessage], ended: Iterable[str] = ()) -> StepChanges:
    shown = [each.step for each in found]
    return StepChanges(session.revision, shown, list(ended), growing(found), list(written_calls(rows)))


def _changed_rows(session_id: str, since: int) -> list[ChatMessage]:
    """Read the changed rows. Queued messages are not steps yet."""
    rows = ChatMessage.objects.filter(session=session_id)
    news = rows.filter(revision__gt=since).exclude(sequence=None, removed_at=None)
    at_work = rows.filter(sequence__gte=_turn_before(session_id, None), status__in=UNFINISHED)
    return list({row.pk: row for row in (*news, *at_work)}.values())


def _since(session: Session, since: int, changed: list[ChatMessage]) -> StepChanges:
    lowest = min((row.sequence for row in changed if row.sequence is not None), default=None)
    renamed = _names_may_change(session.pk, since, changed)
    start = 0 if renamed else _turn_before(session.pk, lowest)
    rows = _rows(session.pk, start)
    found = steps(rows, _around(session.pk, start))
    by_people = _were_changed_by_people(session.pk, since)
    sent = found if renamed else affected_steps(found, rows, changed, BY_PEOPLE if by_people else BY_AGENTS)
    return _changes(session, sent, rows, gone_ids(found, rows, changed) if by_people else ())


def _names_may_change(session_id: str, since: int, changed: list[ChatMessage]) -> bool:
    """Return whether names of earlier users may change, because other users have sent messages (CTX-06)."""
    news = [row for row in changed if speaker(row) == MessageRole.USER]
    if not news:
        return False
    stayed = senders_of(user_messages(session_id).filter(revision__lte=since))
    everyone = stayed | frozenset(map(author_of, news))
    if len({person for person, _name in stayed}) < 2:
        return len({person for person, _name in everyone}) > 1 or any(row.user_id is None for row in news)
    before, now = labels(stayed), labels(everyone)
    return any(before[person] != now[person] for person in stayed)


def _were_changed_by_people(session_id: str, since: int) -> bool:
    """Return whether rows may have other neighbors since a revision. Agents only add rows at the end."""
    news = ChatMessage.objects.filter(session=session_id, revision__gt=since)
    return news.filter(Q(removed_at__isnull=False) | Q(revisions__isnull=False)).exists()


def _turn_before(session_id: str, sequence: int | None) -> int:
    """Return the sequence of the last user message before a place (None: the session's end), or 0.

    No message for the model combines rows from before and after one of them.
    """
    turns = user_messages(session_id) if sequence is None else user_messages(session_id).filter(sequence__lt=sequence)
    return turns.aggregate(last=Max("sequence"))["last"] or 0


def _rows(session_id: str, start: int = 0, end: int | None = None) -> list[ChatMessage]:
    """Read live rows in order, from sequence `start` to `end`."""
    rows = ChatMessage.objects.in_conversation(session_id).filter(sequence__gte=start).order_by("sequence")
    found = list(rows if end is None else rows.filter(sequence__lte=end))
    fetch_attachments(found, with_text=True)
    return [row for row in with_full_text(found) if row.sequence is not None]


def _around(session_id: str, start: int) -> Around:
    before = ChatMessage.objects.in_conversation(session_id).filter(sequence__lt=start, include_in_context=True)
    calls = before.filter(type=MessageType.TOOL_GROUP).order_by("sequence").values_list("pk", "tool_call_id")
    return Around(senders_of(user_messages(session_id)), call_ids(calls))
