"""Stop a run, retry an answer, continue it, or run its tools again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import ServiceError
from chat.models import (
    CONTENT_TYPES,
    ChatMessage,
    MessageRevision,
    MessageRole,
    MessageStatus,
    MessageType,
    Session,
    User,
)
from chat.overrides.composed_queries import Composed
from chat.queries import presets
from chat.queries.cast import agents_from, others
from chat.runs import lease
from chat.runs.turn_rows import continue_note
from chat.services.messages.editing import same_response, with_own_markers
from chat.services.messages.ordering import remove_rows
from chat.services.messages.senders import sender_in
from chat.services.runs import delegation
from chat.services.runs.attempts import Withdrawal, measure, withdraw
from chat.services.runs.turns import (
    address_again,
    answer_unaddressed,
    answer_with,
    hold_queued,
    is_unaddressed,
    require_idle,
    resume_turn,
)
from chat.services.transaction import SessionTransaction

# Types of rows that can follow the last message of a turn that was cut off.
ENDS = (MessageType.TURN_DONE, MessageType.ERROR)
_TO_ANSWER = Composed(lambda session_id: ChatMessage.objects.to_answer(session_id).values_list("pk")[:1])


@transaction.atomic
def cancel(*, session: Session, author: User) -> bool:
    """Stop the running turn (RUN-07) and hold all queued messages (RUN-06).

    Can be repeated. Return False if no turn is running; no message is held then.
    """
    # Without messages to hold, a stop does not wait for the session's lock, which a batch of the writer may hold.
    tx = SessionTransaction.lock(session.pk) if _TO_ANSWER.read(session.pk) else None
    is_stopping = lease.ask_to_stop(session.pk, author.pk)
    if is_stopping:
        delegation.stop(session.pk, author.pk)
    if tx is not None and is_stopping:
        hold_queued(tx)
        tx.save()
    return is_stopping


@transaction.atomic
def retry(
    *,
    session: Session,
    author: User,
    message_id: str,
    edited: bool = False,
    at_most: int | None = None,
    preview: bool = False,
) -> Withdrawal:
    """Retry at a message (RUN-12): answer a user's text again, or replace the response that the message belongs to.

    A text that was for no agent gets its first answer (RUN-17). An agent that failed before others answered the same
    message answers alone, after them.

    `edited` is True if the text was changed for this retry, so that the withdrawn rows belong to the earlier text.
    Return what was withdrawn; with `preview`, nothing changes. Raise ServiceError if the agent is running, the session
    is archived, the message does not exist, there is nothing to answer before it, or more than `at_most` messages would
    be withdrawn.
    """
    tx, row = _lock_idle(session, message_id)
    is_input = row.type == MessageType.TEXT and row.role in (MessageRole.USER, MessageRole.SYSTEM)
    if row.summarises is not None:
        raise _nothing_to_retry_error()
    if _is_one_of_several(tx, row):
        return _answer_alone(tx, row, author, preview=preview)
    first = _first_after_texts(row) if is_input else _first_of_response(row)
    if first is None and not is_unaddressed(row):
        raise _nothing_to_retry_error()
    rows = list(_live(session.pk).filter(sequence__gte=first.sequence)) if first else []
    withdrawal = measure(rows, author, whole_turn=is_input)
    changed = row.pk if edited and is_input and rows and _has_edited(author, row, rows[0]) else ""
    if is_unaddressed(row):
        return _retry_unaddressed(tx, row, rows, author, withdrawal, at_most, preview=preview, edited=changed)
    return _withdraw_and_resume(tx, rows, author, withdrawal, at_most, preview=preview, edited=changed)


@transaction.atomic
def run_tools(
    *, session: Session, author: User, message_id: str, at_most: int | None = None, preview: bool = False
) -> Withdrawal:
    """Run the tools of a message's response again, and continue from their results (RUN-12).

    The rows from the response's first tool call on are withdrawn as an attempt, and the calls are inserted again
    without results. Calls that are excluded from the context keep their results. Returns and raises as `retry` does,
    and raises ServiceError "no_tools" if the response has no tool call in the context.
    """
    tx, row = _lock_idle(session, message_id)
    response = _response_of(row)
    calls = [each for each in response if each.type == MessageType.TOOL_GROUP]
    if not row.turn_id or not any(call.include_in_context for call in calls):
        raise ServiceError("no_tools", _("This response has no tool calls to run again."))
    rerun = [each for each in response if (each.sequence or 0) >= (calls[0].sequence or 0)]
    rows = list(_live(session.pk).filter(sequence__gte=calls[0].sequence))
    withdrawal = measure(rows, author, own_response=row.response_id)
    if preview:
        return withdrawal
    done = withdraw(tx, rows, author, withdrawal, at_most)
    resume_turn(tx, row.turn_id, author)
    for each in rerun:
        tx.insert("message_updated", _copy_for_rerun(each))
    tx.save()
    return done


@transaction.atomic
def continue_answer(*, session: Session, author: User) -> str:
    """Let the agent continue where a stop, an error, a restart or the output limit cut off the last turn (RUN-12).

    Only the end of the turn and its errors are withdrawn. After a text that was cut off, a note for the model is added.
    Return the id of the turn. Raise ServiceError if the agent is running, the session is archived, or there is nothing
    to continue, because the answer is complete or users have written since.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    require_idle(tx.run)
    ending = list(takewhile(lambda row: row.type in ENDS, _live(session.pk).reverse().iterator()))[::-1]
    before = _live(session.pk).filter(sequence__lt=ending[0].sequence) if ending else _live(session.pk)
    last = before.last()
    if last is None or not can_continue(last) or not has_context(last):
        raise ServiceError("nothing_to_continue", _("There is no unfinished answer to continue."))
    if ending:
        withdraw(tx, ending, author, measure(ending, author), None)
    resume_turn(tx, last.turn_id, author)
    if last.type == MessageType.TEXT and last.role == MessageRole.ASSISTANT:
        note = continue_note(sender_in(tx.session, author))
        tx.insert("message_updated", ChatMessage(turn_id=last.turn_id, mode=tx.session.mode, **note))
    tx.save()
    return last.turn_id


def can_continue(last: ChatMessage) -> bool:
    """Return whether a run can continue after this row, because the model has not answered it."""
    if not last.turn_id or last.summarises is not None:
        return False
    if last.type == MessageType.TURN_START:
        return bool(agents_from(last))
    if last.type == MessageType.TEXT:
        unanswered = last.role in (MessageRole.USER, MessageRole.SYSTEM)
        return unanswered or last.status == MessageStatus.INTERRUPTED
    return last.type in (MessageType.TOOL_GROUP, MessageType.REASONING)


def has_context(last: ChatMessage) -> bool:
    """Return whether the context includes rows of this turn up to this row. Excluded rows need no answer (MSG-09)."""
    turn = _live(last.session_id).filter(sequence__lte=last.sequence or 0)
    if last.type != MessageType.TURN_START:  # a turn that follows another agent's turn has no messages yet
        turn = turn.filter(turn_id=last.turn_id)
    return turn.filter(include_in_context=True, type__in=CONTENT_TYPES).exists()


def _lock_idle(session: Session, message_id: str) -> tuple[SessionTransaction, ChatMessage]:
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    require_idle(tx.run)
    return tx, tx.message(message_id)


def _withdraw_and_resume(
    tx: SessionTransaction,
    rows: Sequence[ChatMessage],
    author: User,
    withdrawal: Withdrawal,
    at_most: int | None,
    *,
    preview: bool,
    edited: str = "",
) -> Withdrawal:
    """Withdraw the session's last rows and resume the turn of the row before them."""
    last = _live(tx.session.pk).filter(sequence__lt=rows[0].sequence).last()
    if last is None or not can_continue(last):
        raise _nothing_to_retry_error()
    if not has_context(last):
        raise _excluded_error()
    withdrawal = replace(withdrawal, after=last.pk)
    if preview:
        return withdrawal
    done = withdraw(tx, rows, author, withdrawal, at_most, edited=edited)
    if last.type == MessageType.TEXT and last.role == MessageRole.USER:
        address_again(tx, last.turn_id)
    resume_turn(tx, last.turn_id, author)
    tx.save()
    return done


def _retry_unaddressed(
    tx: SessionTransaction,
    row: ChatMessage,
    rows: Sequence[ChatMessage],
    author: User,
    withdrawal: Withdrawal,
    at_most: int | None,
    *,
    preview: bool,
    edited: str,
) -> Withdrawal:
    """Withdraw the rows after a text that was for no agent. The agents that it mentions answer, or the session's."""
    if not row.include_in_context:
        raise _excluded_error()
    withdrawal = replace(withdrawal, after=row.pk)
    if preview:
        return withdrawal
    if rows:
        withdrawal = withdraw(tx, rows, author, withdrawal, at_most, edited=edited)
    answer_unaddressed(tx, row.text, author)
    tx.save()
    return withdrawal


def _is_one_of_several(tx: SessionTransaction, row: ChatMessage) -> bool:
    """Return whether an error ends the turn of one agent, and other agents have answered the same message since."""
    if row.type != MessageType.ERROR or not presets.copies_of_others(tx.session):
        return False
    if row.agent_id not in {tx.session.agent, *(member.name for member in others(tx.session))}:
        return False
    following = list(_live(tx.session.pk).filter(sequence__gt=row.sequence))
    rest = list(dropwhile(lambda each: each.turn_id == row.turn_id, following))
    is_last = all(each.type == MessageType.TURN_DONE for each in following[: len(following) - len(rest)])
    has_further_message = any(each.type == MessageType.TEXT and each.role != MessageRole.ASSISTANT for each in rest)
    return is_last and not has_further_message and any(each.type in CONTENT_TYPES for each in rest)


def _answer_alone(tx: SessionTransaction, row: ChatMessage, author: User, *, preview: bool) -> Withdrawal:
    """Remove the error of one agent and start its new answer after those of the others, which stay.

    The error does not become an attempt, because restoring it would replace these answers. It is a removed message.
    """
    before = _live(tx.session.pk).filter(sequence__lt=row.sequence)
    if not before.filter(include_in_context=True, type__in=CONTENT_TYPES).exists():
        raise _excluded_error()
    after = before.values_list("pk", flat=True).last()
    withdrawal = replace(measure([row], author), after=after or "")
    if not preview:
        remove_rows(tx, with_own_markers(row), author, MessageRevision.Kind.REMOVE)
        answer_with(tx, [row.agent_id], author, repeats=row.turn_id)
        tx.save()
    return withdrawal


def _has_edited(author: User, row: ChatMessage, answer: ChatMessage) -> bool:
    """Return whether this user was the last to edit a text, and did so after the answer."""
    edits = MessageRevision.objects.filter(message=row, kind=MessageRevision.Kind.EDIT)
    last = edits.order_by("pk").last()
    return last is not None and last.user_id == author.pk and last.created_at > answer.created_at


def _response_of(row: ChatMessage) -> list[ChatMessage]:
    """Return the rows of a row's response, in order. Calls that a user added belong to the text before them."""
    turn = list(_live(row.session_id).filter(turn_id=row.turn_id))
    start = end = turn.index(row)
    while start > 0 and same_response(turn[start - 1], turn[start]):
        start -= 1
    while end + 1 < len(turn) and same_response(turn[end], turn[end + 1]):
        end += 1
    return turn[start : end + 1]


def _copy_for_rerun(row: ChatMessage) -> ChatMessage:
    """Copy a row of a response. A call in the context is pending again."""
    rerun_row = copy.copy(row)
    rerun_row._state.adding = True
    rerun_row.pk, rerun_row.sequence, rerun_row.timestamp = ids.message_id(), None, timezone.now()
    if row.type == MessageType.TOOL_GROUP and row.include_in_context:
        rerun_row.status, rerun_row.result, rerun_row.is_error = MessageStatus.PENDING, "", False
        rerun_row.ended_at = rerun_row.duration_ms = None
        rerun_row.subsession = None
        rerun_row.question, rerun_row.answered_by_name, rerun_row.origin, rerun_row.sources = "", "", "", None
        rerun_row.files = rerun_row.asked = None
        rerun_row.answer = rerun_row.answered_by = rerun_row.answered_at = rerun_row.approval = None
    return rerun_row


def _first_after_texts(row: ChatMessage) -> ChatMessage | None:
    """Return the first row after a text and the texts that were delivered with it, or None."""
    following = _live(row.session_id).filter(sequence__gt=row.sequence)
    return following.exclude(type=MessageType.TEXT, role__in=(MessageRole.USER, MessageRole.SYSTEM)).first()


def _first_of_response(row: ChatMessage) -> ChatMessage | None:
    """Return the first row of a row's response. An error is replaced on its own, and the texts before it stay."""
    if row.type == MessageType.ERROR or not row.response_id:
        return row
    return _live(row.session_id).filter(response_id=row.response_id).first()


def _live(session_id: str) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.in_conversation(session_id).order_by("sequence")


def _nothing_to_retry_error() -> ServiceError:
    return ServiceError("nothing_to_retry", _("There is no message to answer before this one."))


def _excluded_error() -> ServiceError:
    return ServiceError("nothing_to_retry", _("The message to answer is excluded from context. Include it first."))
