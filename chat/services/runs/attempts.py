"""Attempts: what a retry replaced stays in rows, as one part, that can be made the current one again (RUN-12).

The rows of an attempt share its id and keep their order (`attempt`, `attempt_place`). The record of the first one's
withdrawal names its `anchor`: the row after which all attempts of one place stand, the current one included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from django.db import transaction
from django.db.models import Count, F, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat import ids
from chat.bus.events import UsageChanged
from chat.errors import Busy, ServiceError
from chat.models import TURN_MARKERS, ChatMessage, MessageRevision, MessageRole, MessageType, RunState, Session, User
from chat.projections.context import who
from chat.queries.attachments import fetch_attachments
from chat.services.messages.ordering import fits, stands_after, take_out
from chat.services.transaction import SessionTransaction

Kind = MessageRevision.Kind
BATCH = 500
# More rows than this are not told one by one: viewers see that a revision is missing, and ask for what changed.
MOST_TOLD = 200


class NoSuchAttempt(ServiceError):
    CODE: ClassVar[str] = "no_such_attempt"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("This earlier attempt no longer exists."))


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What a retry withdraws: so many messages, of so many people among others; `attempt` names them, "" if none.

    `others` are the people besides who asks. `last_answer`: nothing goes but the last answer, which may be replaced
    without asking. `after` is the message that they follow: a fork there keeps both.
    """

    messages: int
    people: int
    others: int
    last_answer: bool
    attempt: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An earlier attempt: what followed the message `after` until a retry replaced it."""

    id: str
    after: str
    messages: int
    people: int
    user: User | None
    at: datetime


def measure(
    rows: Sequence[ChatMessage], author: User, *, own_response: str = "", whole_turn: bool = False
) -> Withdrawal:
    """Say what withdrawing these neighbours, which end the session, would take away.

    The last answer is at most one response besides `own_response`, or with `whole_turn` all that followed a message;
    never anything that a person wrote.
    """
    people = {who(row) for row in rows if row.type == MessageType.TEXT and row.role == MessageRole.USER}
    responses = {row.response_id for row in rows if row.response_id} - {own_response}
    is_last_answer = not people and (whole_turn or len(responses) <= 1)
    messages = sum(row.type not in TURN_MARKERS for row in rows)
    return Withdrawal(messages, len(people), len(people - {author.pk}), is_last_answer)


def withdraw(
    tx: SessionTransaction, rows: Sequence[ChatMessage], author: User, found: Withdrawal, at_most: int | None
) -> Withdrawal:
    """Take the session's last rows out as an attempt; rows that say nothing, such as markers alone, are none.

    ServiceError as "confirm", with `messages`, `people`, `others` and `after`, when that is more than the last answer
    and than `at_most` messages, which the author has agreed to; None: whatever it is.
    """
    if at_most is not None and not found.last_answer and found.messages > at_most:
        words = ngettext("This removes %(count)d message.", "This removes %(count)d messages.", found.messages)
        details = {name: getattr(found, name) for name in ("messages", "people", "others", "after")}
        raise ServiceError("confirm", words % {"count": found.messages}, **details)
    attempt = ids.attempt_id() if found.messages else ""
    take_out(tx, rows, author, Kind.RETRY, attempt=attempt)
    return replace(found, attempt=attempt)


@transaction.atomic
def restore_attempt(
    *, session: Session, author: User, attempt: str, at_most: int | None = None, preview: bool = False
) -> Withdrawal:
    """Restore an earlier attempt. What it replaces becomes an attempt, which is returned.

    `preview` only says what would be withdrawn. Raises ServiceError: the agent works, as `withdraw` does, or "replaced"
    when the message after which it stood is part of another earlier attempt.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    if tx.run.state != RunState.IDLE:
        raise Busy
    rows = list(
        ChatMessage.objects.filter(session=session.pk, attempt=attempt, removed_at__isnull=False).order_by(
            "attempt_place"
        )
    )
    if not attempt or not rows:
        raise NoSuchAttempt
    after = _anchor(tx, rows[0])
    following = tx.messages().filter(sequence__gt=after.sequence if after else 0)
    displaced = list(following.order_by("sequence"))
    found = replace(measure(displaced, author, whole_turn=True), after=after.pk if after else "")
    if preview:
        return found
    done = withdraw(tx, displaced, author, found, at_most) if displaced else found
    _put_back(tx, rows, after, author)
    _recount_context(tx)
    tx.save("context_used")
    return done


def attempts_of(session: Session) -> list[Attempt]:
    """List a session's earlier attempts, the last withdrawn first; in two queries."""
    rows = ChatMessage.objects.filter(session=session.pk, removed_at__isnull=False).exclude(attempt="")
    said_by_people = Q(type=MessageType.TEXT, role=MessageRole.USER)
    counted = (
        rows.order_by()
        .values("attempt")
        .annotate(
            messages=Count("pk", filter=~Q(type__in=TURN_MARKERS)),
            people=Count("user", filter=said_by_people, distinct=True),
            names=Count("sender", filter=said_by_people & Q(user__isnull=True), distinct=True),
        )
    )
    counts = {each["attempt"]: each for each in counted}
    records = MessageRevision.objects.filter(message__in=rows.filter(attempt_place=0), kind=Kind.RETRY)
    firsts = {record.message.attempt: record for record in records.select_related("user", "message").order_by("pk")}
    return [
        Attempt(
            name,
            str(record.before.get("anchor", "")),
            counts[name]["messages"],
            counts[name]["people"] + counts[name]["names"],
            record.user,
            record.created_at,
        )
        for name, record in sorted(firsts.items(), key=lambda each: -each[1].pk)
        if name in counts
    ]


def _anchor(tx: SessionTransaction, first: ChatMessage) -> ChatMessage | None:
    """Find the live row after which an attempt stands; None: it begins the session."""
    record = MessageRevision.objects.filter(message=first, kind=Kind.RETRY).order_by("pk").last()
    name = str(record.before.get("anchor", "")) if record else ""
    anchor = ChatMessage.objects.filter(session=tx.session.pk, pk=name).first() if name else None
    is_withdrawn = anchor is not None and bool(anchor.attempt)
    if anchor is not None and anchor.sequence is None and not is_withdrawn:
        anchor = stands_after(tx, anchor)  # it was removed by itself: the row before it takes its part
    if is_withdrawn or not fits(first, anchor):
        raise ServiceError("replaced", _("A retry replaced the message before these. Restore that one first."))
    return anchor


def _put_back(tx: SessionTransaction, rows: Sequence[ChatMessage], after: ChatMessage | None, author: User) -> None:
    """Give an attempt's rows the places at the session's end, in one statement: they may be thousands."""
    for place, row in enumerate(rows):
        if row.attempt_place != place:  # some of them have been erased
            ChatMessage.objects.filter(pk=row.pk).update(attempt_place=place)
    start, base = (after.sequence or 0) + 1 if after else 1, tx.session.revision + 1
    names = [row.pk for row in rows]
    ChatMessage.objects.filter(session=tx.session.pk, attempt=rows[0].attempt).update(
        sequence=F("attempt_place") + start,
        revision=F("attempt_place") + base,
        removed_at=None,
        attempt="",
        attempt_place=None,
    )
    tx.reset_sequence()
    tx.session.revision += len(rows)
    records = [MessageRevision(message_id=pk, user=author, kind=Kind.RESTORE, before={}) for pk in names]
    MessageRevision.objects.bulk_create(records, batch_size=BATCH)
    if len(rows) > MOST_TOLD:
        tx.session_changed()
        return
    restored = list(ChatMessage.objects.filter(pk__in=names).order_by("sequence"))
    fetch_attachments(restored)
    for row in restored:
        tx.record_event("message_updated", row)


def _recount_context(tx: SessionTransaction) -> None:
    """Set the size of the context to that of the last response that is in the session now (RUN-04)."""
    session = tx.session
    counted = tx.messages().filter(input_tokens__isnull=False).order_by("-sequence")
    session.context_used = counted.values_list("input_tokens", flat=True).first()
    used = session.context_used, session.context_window, session.total_tokens
    tx.events.append(UsageChanged(*used, session.model))
