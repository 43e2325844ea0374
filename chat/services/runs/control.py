"""What people ask of a run: stop it, answer again, or run tools again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import Busy, NoSuchMessage, ServiceError
from chat.models import ChatMessage, MessageRole, MessageStatus, MessageType, RunState, Session, User
from chat.runs import lease
from chat.services.messages.editing import same_response
from chat.services.runs.attempts import Withdrawal, measure, withdraw
from chat.services.runs.turns import hold_queued, resume_turn
from chat.services.transaction import SessionTransaction

SAID = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)


@transaction.atomic
def cancel(*, session: Session, author: User) -> bool:
    """Stop the running turn (RUN-07) and hold all queued messages (RUN-06).

    Repeating it does no harm. Returns False when nothing runs (any more): then nothing is held either.
    """
    # A stop must not wait for the session's lock, which a batch of rows may have, unless there is something to hold.
    tx = SessionTransaction.lock(session.pk) if ChatMessage.objects.deliverable(session.pk).exists() else None
    is_stopping = lease.ask_to_stop(session.pk, author.pk)
    if tx is not None and is_stopping:
        hold_queued(tx)
        tx.save()
    return is_stopping


@transaction.atomic
def retry(
    *, session: Session, author: User, message_id: str, at_most: int | None = None, preview: bool = False
) -> Withdrawal:
    """Withdraw the rows from a message on and go on from the last one kept (RUN-12).

    Returns what was withdrawn; `preview` only says what would be. Raises ServiceError: the agent works, the session is
    archived, the message has gone, nothing before it could be answered, or more would go than `at_most` messages.
    """
    tx, row = _at_rest(session, message_id)
    rows = list(_live(session.pk).filter(sequence__gte=row.sequence))
    return _answer_again(tx, rows, author, measure(rows, author), at_most, preview=preview)


@transaction.atomic
def retry_here(
    *, session: Session, author: User, message_id: str, at_most: int | None = None, preview: bool = False
) -> Withdrawal:
    """Retry as a person means it who points at a message: a text that was said to the agent stays and is answered
    again; of what the agent said, the whole response is withdrawn, from its first row on.

    Returns and raises as `retry` does.
    """
    tx, row = _at_rest(session, message_id)
    is_said = _is_said(row)
    first = _after_what_was_said(row) if is_said else _first_of_response(row)
    if first is None:
        raise _nothing()
    rows = list(_live(session.pk).filter(sequence__gte=first.sequence))
    return _answer_again(tx, rows, author, measure(rows, author, whole_turn=is_said), at_most, preview=preview)


@transaction.atomic
def run_tools(
    *, session: Session, author: User, message_id: str, at_most: int | None = None, preview: bool = False
) -> Withdrawal:
    """Run the tools of a message's response again, and go on from their results (RUN-12).

    The response's rows from its first tool call on, and what follows, are withdrawn as an attempt; the calls come
    again without results. Calls that are excluded from the context are copied with theirs. Returns and raises as
    `retry` does; ServiceError as "no_tools" when the response has no tool call that the model is sent.
    """
    tx, row = _at_rest(session, message_id)
    response = _response_of(row)
    calls = [each for each in response if each.type == MessageType.TOOL_GROUP]
    if not row.run_id or not any(call.include_in_context for call in calls):
        raise ServiceError("no_tools", _("This response has no tool calls to run again."))
    again = [each for each in response if (each.sequence or 0) >= (calls[0].sequence or 0)]
    rows = list(_live(session.pk).filter(sequence__gte=calls[0].sequence))
    found = measure(rows, author, own_response=row.response_id)
    if preview:
        return found
    done = withdraw(tx, rows, author, found, at_most)
    resume_turn(tx, row.run_id, author)
    for each in again:
        tx.insert("message_updated", _called_again(each))
    tx.save()
    return done


def can_go_on(last: ChatMessage) -> bool:
    """Whether a run can continue after this row: it must wait for an answer of the model."""
    if not last.run_id:
        return False
    if last.type == MessageType.TEXT:
        unanswered = last.role in (MessageRole.USER, MessageRole.SYSTEM)
        return unanswered or last.status == MessageStatus.INTERRUPTED
    return last.type in (MessageType.TOOL_GROUP, MessageType.REASONING)


def is_heard(last: ChatMessage) -> bool:
    """Whether the model is sent anything of a row's turn up to it; what is excluded waits for no answer (MSG-09)."""
    turn = _live(last.session_id).filter(run_id=last.run_id, sequence__lte=last.sequence or 0)
    return turn.filter(include_in_context=True, type__in=SAID).exists()


def _at_rest(session: Session, message_id: str) -> tuple[SessionTransaction, ChatMessage]:
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    if tx.run.state != RunState.IDLE:
        raise Busy
    row = _live(session.pk).filter(pk=message_id).first()
    if row is None:
        raise NoSuchMessage
    return tx, row


def _answer_again(
    tx: SessionTransaction,
    rows: Sequence[ChatMessage],
    author: User,
    found: Withdrawal,
    at_most: int | None,
    *,
    preview: bool,
) -> Withdrawal:
    """Withdraw the session's last rows and resume the turn of the row before them."""
    last = _live(tx.session.pk).filter(sequence__lt=rows[0].sequence).last()
    if last is None or not can_go_on(last):
        raise _nothing()
    if not is_heard(last):
        raise ServiceError("nothing_to_retry", _("The message to answer is excluded from context. Include it first."))
    found = replace(found, after=last.pk)
    if preview:
        return found
    done = withdraw(tx, rows, author, found, at_most)
    resume_turn(tx, last.run_id, author)
    tx.save()
    return done


def _response_of(row: ChatMessage) -> list[ChatMessage]:
    """The live rows of a row's response, in order; hand-written calls belong to the text before them."""
    turn = list(_live(row.session_id).filter(run_id=row.run_id))
    start = end = turn.index(row)
    while start > 0 and same_response(turn[start - 1], turn[start]):
        start -= 1
    while end + 1 < len(turn) and same_response(turn[end], turn[end + 1]):
        end += 1
    return turn[start : end + 1]


def _called_again(row: ChatMessage) -> ChatMessage:
    """Copy a row of a response; a call that the model is sent has not begun yet."""
    made = copy.copy(row)
    made._state.adding = True
    made.pk, made.sequence, made.timestamp = ids.message_id(), None, timezone.now()
    if row.type == MessageType.TOOL_GROUP and row.include_in_context:
        made.status, made.result, made.is_error = MessageStatus.PENDING, "", False
        made.ended_at = made.duration_ms = None
    return made


def _is_said(row: ChatMessage) -> bool:
    return row.type == MessageType.TEXT and row.role in (MessageRole.USER, MessageRole.SYSTEM)


def _after_what_was_said(row: ChatMessage) -> ChatMessage | None:
    """What follows a text and those that were delivered together with it."""
    following = _live(row.session_id).filter(sequence__gt=row.sequence)
    return following.exclude(type=MessageType.TEXT, role__in=(MessageRole.USER, MessageRole.SYSTEM)).first()


def _first_of_response(row: ChatMessage) -> ChatMessage | None:
    """The first row of the response that a row is of. An error is what became of one: what was said before stays."""
    if row.type == MessageType.ERROR or not row.response_id:
        return row
    return _live(row.session_id).filter(response_id=row.response_id).first()


def _live(session_id: str) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.live(session_id).order_by("sequence")


def _nothing() -> ServiceError:
    return ServiceError("nothing_to_retry", _("There is nothing to answer before this message."))
