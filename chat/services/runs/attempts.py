"""Attempts: the rows that a retry replaced stay stored, and can be restored together (RUN-12).

The rows of an attempt have its id and keep their order (`attempt`, `attempt_place`). The revision of the first row's
withdrawal names the `anchor`. This row is before all attempts of one position, including the current rows, and counts
them (`chat/services/runs/attempt_counts.py`).

A user's message may have been edited for the rows that replaced an attempt. Then the revision of the withdrawal names
the message as `edited_message`. When the attempt is restored, the message gets back its text from before that edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from django.db import transaction
from django.db.models import Count, F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat import ids
from chat.errors import ServiceError
from chat.models import TURN_MARKERS, ChatMessage, MessageRevision, MessageRole, MessageType, Session, User
from chat.projections.context import who
from chat.queries.attachments import fetch_attachments
from chat.services.messages.mentioning import mentions_after_edit
from chat.services.messages.ordering import fits, remove_rows, row_before
from chat.services.runs.attempt_counts import count, numbers
from chat.services.runs.turns import require_idle
from chat.services.transaction import SessionTransaction, record_of

Kind = MessageRevision.Kind
BATCH = 500
# The most rows with one event each. With more, viewers notice the missing revisions and sync.
MAX_EVENTS = 200


class NoSuchAttempt(ServiceError):
    CODE: ClassVar[str] = "no_such_attempt"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("This earlier version no longer exists."))


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The rows that a retry withdraws: their number, and the number of `people` who wrote some of them.

    `others` counts the people other than the author of the retry. `last_answer` is True if only the last answer is
    withdrawn, which needs no confirmation. `attempt` is the id of the new attempt, or "". `after` is the message before
    the rows; a fork at that message keeps both versions.
    """

    messages: int
    people: int
    others: int
    last_answer: bool
    attempt: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An earlier attempt: the messages that followed the message `after` until a retry replaced them.

    `number` is its number among the attempts at that position, or None if it is not counted.
    """

    id: str
    after: str
    number: int | None
    messages: int
    people: int
    user: User | None
    at: datetime


def measure(
    rows: Sequence[ChatMessage], author: User, *, own_response: str = "", whole_turn: bool = False
) -> Withdrawal:
    """Describe the withdrawal of the session's last rows.

    The last answer is at most one response besides `own_response` or, with `whole_turn`, all rows after a message. It
    never includes a message of a user.
    """
    people = {who(row) for row in rows if row.type == MessageType.TEXT and row.role == MessageRole.USER}
    responses = {row.response_id for row in rows if row.response_id} - {own_response}
    is_last_answer = not people and (whole_turn or len(responses) <= 1)
    return Withdrawal(
        messages=sum(row.type not in TURN_MARKERS for row in rows),
        people=len(people),
        others=len(people - {author.pk}),
        last_answer=is_last_answer,
    )


def withdraw(
    tx: SessionTransaction,
    rows: Sequence[ChatMessage],
    author: User,
    withdrawal: Withdrawal,
    at_most: int | None,
    *,
    edited: str = "",
    is_counted: bool = True,
) -> Withdrawal:
    """Withdraw the session's last rows as an attempt. If they are only markers, no attempt is stored.

    `edited` is the message whose text has just changed for the rows that will replace these. The row before them counts
    the attempts, unless the caller counts them later (`is_counted=False`).

    Raise ServiceError "confirm", with `messages`, `people`, `others` and `after`, if more than the last answer would
    be withdrawn and more than `at_most` messages, the number that the author has confirmed. None accepts any number.
    """
    if at_most is not None and not withdrawal.last_answer and withdrawal.messages > at_most:
        message = ngettext("This removes %(count)d message.", "This removes %(count)d messages.", withdrawal.messages)
        details = {name: getattr(withdrawal, name) for name in ("messages", "people", "others", "after")}
        raise ServiceError("confirm", message % {"count": withdrawal.messages}, **details)
    attempt = ids.attempt_id() if withdrawal.messages else ""
    before = tx.messages().filter(sequence=(rows[0].sequence or 0) - 1).first()
    remove_rows(tx, rows, author, Kind.RETRY, attempt=attempt, edited=edited)
    if before is not None and is_counted:
        count(tx, before)
    return replace(withdrawal, attempt=attempt)


@transaction.atomic
def switch_attempt(
    *,
    session: Session,
    author: User,
    message_id: str,
    number: int,
    at_most: int | None = None,
    preview: bool = False,
) -> Withdrawal:
    """Restore the attempt with this number among those that follow a message. No effect if it is the current one.

    Returns and raises as `restore_attempt` does.
    """
    tx = SessionTransaction.lock(session.pk)
    anchor = tx.message(message_id)
    if 0 < number == anchor.attempt_current:  # 0 stands for no attempts
        return Withdrawal(messages=0, people=0, others=0, last_answer=True, after=anchor.pk)
    found = {each: name for name, each in numbers(session.pk, [anchor]).items()}
    if number not in found:
        raise NoSuchAttempt
    return restore_attempt(session=session, author=author, attempt=found[number], at_most=at_most, preview=preview)


@transaction.atomic
def restore_attempt(
    *, session: Session, author: User, attempt: str, at_most: int | None = None, preview: bool = False
) -> Withdrawal:
    """Restore an earlier attempt. The rows that it replaces become an attempt, which is returned.

    A message that was edited for the rows after the attempt gets its earlier text back. With `preview`, nothing
    changes. Raise ServiceError if the agent is running, as `withdraw` does, and "replaced" if the message before the
    attempt is part of another earlier attempt.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    require_idle(tx.run)
    rows = list(
        ChatMessage.objects.filter(session=session.pk, attempt=attempt, removed_at__isnull=False).order_by(
            "attempt_place"
        )
    )
    if not attempt or not rows:
        raise NoSuchAttempt
    after = _anchor(tx, rows[0])
    following = tx.messages().filter(sequence__gt=after.sequence if after else 0)
    replaced = list(following.order_by("sequence"))
    withdrawal = replace(measure(replaced, author, whole_turn=True), after=after.pk if after else "")
    if preview:
        return withdrawal
    edited = _restore_text(tx, rows[0], author)
    done = withdrawal
    if replaced:
        done = withdraw(tx, replaced, author, withdrawal, at_most, edited=edited, is_counted=False)
    _put_back(tx, rows, after, author)
    if after is not None:
        count(tx, after)
    counted = tx.messages().filter(input_tokens__isnull=False).order_by("-sequence")
    tx.session.context_used = counted.values_list("input_tokens", flat=True).first()
    tx.usage_changed()
    tx.save("context_used")
    return done


def attempts_of(session: Session) -> list[Attempt]:
    """Return a session's earlier attempts, the newest first, in a constant number of queries."""
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
    numbered = numbers(session.pk, ChatMessage.objects.in_conversation(session.pk).filter(attempt_count__gt=0))
    return [
        Attempt(
            id=name,
            after=str(record.before.get("anchor", "")),
            number=numbered.get(name),
            messages=counts[name]["messages"],
            people=counts[name]["people"] + counts[name]["names"],
            user=record.user,
            at=record.created_at,
        )
        for name, record in sorted(firsts.items(), key=lambda each: -each[1].pk)
        if name in counts
    ]


def _anchor(tx: SessionTransaction, first: ChatMessage) -> ChatMessage | None:
    """Return the row of the session before an attempt, or None if the attempt begins the session."""
    record = _withdrawal_of(first)
    name = str(record.before.get("anchor", "")) if record else ""
    anchor = ChatMessage.objects.filter(session=tx.session.pk, pk=name).first() if name else None
    is_withdrawn = anchor is not None and bool(anchor.attempt)
    if anchor is not None and anchor.sequence is None and not is_withdrawn:
        anchor = row_before(tx, anchor)  # a user removed the anchor
    if is_withdrawn or not fits(first, anchor):
        raise ServiceError("replaced", _("A retry replaced the message before these. Restore that one first."))
    return anchor


def _withdrawal_of(first: ChatMessage) -> MessageRevision | None:
    """Return the record of the last withdrawal of an attempt's first row."""
    return MessageRevision.objects.filter(message=first, kind=Kind.RETRY).order_by("pk").last()


def _restore_text(tx: SessionTransaction, first: ChatMessage, author: User) -> str:
    """Restore the text of a message that was edited after an attempt. Return the message's id, or "" if there is none.

    The attempt answers the text from before the first edit for a retry. That retry withdrew this attempt, or a later
    one in the same position. Users who are mentioned are not notified again.
    """
    record = _withdrawal_of(first)
    if record is None:
        return ""
    here = MessageRevision.objects.filter(
        message__session=tx.session.pk, kind=Kind.RETRY, before__anchor=record.before.get("anchor", "")
    )
    changed = here.filter(pk__gte=record.pk, before__has_key="edited_message").order_by("pk").first()
    row = tx.messages().filter(pk=changed.before["edited_message"], type=MessageType.TEXT).first() if changed else None
    if changed is None or row is None:
        return ""
    edits = MessageRevision.objects.filter(message=row, kind=Kind.EDIT, pk__lt=changed.pk)
    edit = edits.order_by("pk").last()
    then = edit.before if edit else {}
    if then.get("text", row.text) == row.text:  # an erased text is not in the record
        return ""
    MessageRevision.objects.create(message=row, user=author, kind=Kind.EDIT, before=record_of(row, Kind.EDIT))
    fetch_attachments([row])
    editor = then.get("edited_by_id")
    columns = {"text": then["text"], "provider_data": then.get("provider_data")}
    marks = {
        "edited_at": timezone.now() if then.get("edited") else None,
        "edited_by": User.objects.filter(pk=editor).first() if editor else None,
        "edited_by_name": then.get("edited_by", ""),
        "suggested_by_name": then.get("suggested_by", ""),
    }
    tx.update("message_updated", row, {**columns, **marks, **mentions_after_edit(tx.session, row, then["text"])})
    return row.pk


def _put_back(tx: SessionTransaction, rows: Sequence[ChatMessage], after: ChatMessage | None, author: User) -> None:
    """Put an attempt's rows at the session's end, in one statement, because there may be thousands of rows."""
    for place, row in enumerate(rows):
        if row.attempt_place != place:  # some rows were erased
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
    if len(rows) > MAX_EVENTS:
        tx.session_changed()
        return
    restored = list(ChatMessage.objects.filter(pk__in=names).order_by("sequence"))
    fetch_attachments(restored)
    for row in restored:
        tx.record_event("message_updated", row)
