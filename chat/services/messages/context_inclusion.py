"""Many messages left out of the context at once, and taken in again (MSG-09)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from chat.bus.events import ContextChanged
from chat.errors import Busy, NoSuchMessage
from chat.models import ChatMessage, MessageRevision, RunState, Session, User
from chat.services.messages.editing import SAID
from chat.services.sessions.user_state import carry_readers
from chat.services.transaction import SessionTransaction, record_of

Kind = MessageRevision.Kind
BATCH = 500
# What is scattered over more places is not told one by one: viewers see that a revision is missing, and ask for it.
MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many messages were changed, and the session's revision before that, by which it can be undone."""

    count: int
    since: int


@transaction.atomic
def include_before(
    *, session: Session, author: User, message_id: str, included: bool, since: int | None = None
) -> LeftOut:
    """Say of all that stands before a message whether the model is sent it; with `since`, the revision before another
    such change, only of what that one left out and nobody has decided on since.

    Raises NoSuchMessage, and ServiceError if the agent is using some of it or the session is archived.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    before = tx.session.revision
    anchor = tx.messages().filter(pk=message_id).first()
    if anchor is None:
        raise NoSuchMessage
    candidates = tx.messages().filter(sequence__lt=anchor.sequence, type__in=SAID, include_in_context=not included)
    rows = candidates if since is None else candidates.filter(_left_out_after(since))
    _require_rest(tx, rows)
    known = list(rows.only("sequence", "revision", "include_in_context"))
    if not known:
        return LeftOut(0, before)
    places = _places(candidates, known)
    revision = tx.next_revision()
    carry_readers(session.pk, revision)  # nothing has been said
    rows.update(include_in_context=included, revision=revision)
    _remember(known, author, Kind.INCLUDE if included else Kind.EXCLUDE, revision)
    _tell(tx, ContextChanged(revision, included, places))
    tx.save()
    return LeftOut(len(known), before)


def left_out_by(message_ids: Iterable[str]) -> dict[str, MessageRevision]:
    """The last record of each message's being left out, with who did it. One query."""
    records = MessageRevision.objects.filter(message__in=list(message_ids), kind=Kind.EXCLUDE)
    return {record.message_id: record for record in records.select_related("user").defer("before").order_by("pk")}


def _require_rest(tx: SessionTransaction, rows: QuerySet[ChatMessage]) -> None:
    if tx.run.state != RunState.IDLE and rows.filter(run_id=tx.run.turn_id).exists():
        raise Busy(_("The agent is using this message. Stop it, or wait until it finishes."))


def _left_out_after(revision: int) -> Exists:
    """Whether a message's last record of this kind is by the change that was made to the session as it was then."""
    decided = MessageRevision.objects.filter(kind__in=(Kind.EXCLUDE, Kind.INCLUDE))
    later = decided.filter(message=OuterRef("message"), pk__gt=OuterRef("pk"))
    by_it = decided.filter(message=OuterRef("pk"), kind=Kind.EXCLUDE, before__together=revision + 1)
    return Exists(by_it.filter(~Exists(later)))


def _remember(known: list[ChatMessage], author: User, kind: MessageRevision.Kind, revision: int) -> None:
    """Save a revision of each row; `together` is the session's revision that all of them share."""
    before = [(row, record_of(row, kind, together=revision)) for row in known]
    records = [MessageRevision(message=row, user=author, kind=kind, before=was) for row, was in before]
    MessageRevision.objects.bulk_create(records, batch_size=BATCH)


def _places(candidates: QuerySet[ChatMessage], changed: Iterable[ChatMessage]) -> list[tuple[int, int]]:
    """Where they stand, from a first to a last one each: between those is nothing that could have changed with them."""
    theirs = {row.sequence for row in changed}
    standing = candidates.order_by("sequence").values_list("sequence", flat=True)
    runs = [list(run) for is_theirs, run in groupby(standing, theirs.__contains__) if is_theirs]
    return [(run[0] or 0, run[-1] or 0) for run in runs]


def _tell(tx: SessionTransaction, event: ContextChanged) -> None:
    if len(event.places) <= MOST_PLACES:
        tx.events.append(event)
    else:
        tx.session_changed()
