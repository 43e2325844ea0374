"""Exclude many messages from the context in one request, and include them again (MSG-09)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from chat.bus.events import ContextChanged
from chat.models import CONTENT_TYPES, ChatMessage, MessageRevision, RunState, Session, User
from chat.services.messages.editing import in_use_error
from chat.services.sessions.user_state import keep_read
from chat.services.transaction import SessionTransaction, record_of

Kind = MessageRevision.Kind
BATCH = 500
# The most ranges of positions in one event. With more, viewers notice a missing revision instead, and sync.
MAX_PLACES = 200


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The number of changed messages, and the session's revision before: the `since` with which to undo it."""

    count: int
    since: int


@transaction.atomic
def include_before(
    *, session: Session, author: User, message_id: str, included: bool, since: int | None = None
) -> Inclusion:
    """Include or exclude all messages before a message.

    `since` is the revision before an earlier exclusion. With it, only messages that this exclusion excluded are
    changed, unless a user has included or excluded them later. Raise NoSuchMessage, and ServiceError if the agent is
    using one of the messages or the session is archived.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    before = tx.session.revision
    anchor = tx.message(message_id)
    candidates = tx.messages().filter(
        sequence__lt=anchor.sequence, type__in=CONTENT_TYPES, include_in_context=not included
    )
    rows = candidates if since is None else candidates.filter(_excluded_at(since + 1))
    _require_unused(tx, rows)
    changed = list(rows.only("sequence", "revision", "include_in_context"))
    if not changed:
        return Inclusion(0, before)
    places = _places(candidates, changed)
    revision = tx.next_revision()
    keep_read(session.pk, revision)  # there is no new message to read
    rows.update(include_in_context=included, revision=revision)
    _save_revisions(changed, author, Kind.INCLUDE if included else Kind.EXCLUDE, revision)
    _record_event(tx, ContextChanged(revision, included, places))
    tx.save()
    return Inclusion(len(changed), before)


def last_exclusions(message_ids: Iterable[str]) -> dict[str, MessageRevision]:
    """Return the last exclusion record of each message, with its user, in one query."""
    records = MessageRevision.objects.filter(message__in=list(message_ids), kind=Kind.EXCLUDE)
    return {record.message_id: record for record in records.select_related("user").defer("before").order_by("pk")}


def _require_unused(tx: SessionTransaction, rows: QuerySet[ChatMessage]) -> None:
    if tx.run.state != RunState.IDLE and rows.filter(turn_id=tx.run.turn_id).exists():
        raise in_use_error()


def _excluded_at(revision: int) -> Exists:
    """Return a condition for messages whose last change of inclusion is the exclusion that made this revision."""
    decided = MessageRevision.objects.filter(kind__in=(Kind.EXCLUDE, Kind.INCLUDE))
    later = decided.filter(message=OuterRef("message"), pk__gt=OuterRef("pk"))
    by_it = decided.filter(message=OuterRef("pk"), kind=Kind.EXCLUDE, before__together=revision)
    return Exists(by_it.filter(~Exists(later)))


def _save_revisions(changed: list[ChatMessage], author: User, kind: MessageRevision.Kind, revision: int) -> None:
    """Save a revision of each row. All have the session's new revision as `together`."""
    before = [(row, record_of(row, kind, together=revision)) for row in changed]
    records = [MessageRevision(message=row, user=author, kind=kind, before=was) for row, was in before]
    MessageRevision.objects.bulk_create(records, batch_size=BATCH)


def _places(candidates: QuerySet[ChatMessage], changed: Iterable[ChatMessage]) -> list[tuple[int, int]]:
    """Return the positions of the changed rows as (first, last) ranges that contain no other candidates."""
    sequences = {row.sequence for row in changed}
    all_sequences = candidates.order_by("sequence").values_list("sequence", flat=True)
    runs = [list(run) for is_changed, run in groupby(all_sequences, sequences.__contains__) if is_changed]
    return [(run[0] or 0, run[-1] or 0) for run in runs]


def _record_event(tx: SessionTransaction, event: ContextChanged) -> None:
    if len(event.places) <= MAX_PLACES:
        tx.events.append(event)
    else:
        tx.session_changed()
