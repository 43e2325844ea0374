"""What people ask of a run: stop it, or try again."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat.models import ChatMessage, MessageRevision, MessageStatus, MessageType, RunState, Session, Speaker, User
from chat.running import lease
from chat.services.errors import Busy, NoSuchMessage, Refused
from chat.services.places import take_out
from chat.services.rows import OpenSession
from chat.services.turns import hold_queued, resume_turn

SAID = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)


@transaction.atomic
def cancel(*, session: Session, author: User) -> bool:
    """Stop the running turn (RUN-07) and hold what is queued behind it, whoever sent it (RUN-06).

    Repeating it does no harm. Returns False when nothing runs (any more): then nothing is held either.
    """
    # A stop must not wait for the session's lock, which a batch of rows may have, unless there is something to hold.
    opened = OpenSession.lock(session.pk) if ChatMessage.objects.deliverable(session.pk).exists() else None
    is_stopping = lease.ask_to_stop(session.pk, author.pk)
    if opened is not None and is_stopping:
        hold_queued(opened)
        opened.save()
    return is_stopping


@transaction.atomic
def retry(*, session: Session, author: User, message_id: str) -> None:
    """Withdraw the rows from a message on and go on from the last one kept (RUN-12).

    Raises Refused: the agent works, the session is archived, the message has gone, or nothing before it could be
    answered.
    """
    opened, row = _at_rest(session, message_id)
    _withdraw_from(opened, row, author)


@transaction.atomic
def retry_here(*, session: Session, author: User, message_id: str) -> None:
    """Retry as a person means it who points at a message: words that were said to the agent stay and are answered
    anew, and what the agent said is asked for anew as a whole, which is a response and not a part of it.

    Raises Refused as `retry`.
    """
    opened, row = _at_rest(session, message_id)
    first = _after_what_was_said(row) if _is_said(row) else _first_of_response(row)
    if first is None:
        raise _nothing()
    _withdraw_from(opened, first, author)


def can_go_on(last: ChatMessage) -> bool:
    """Whether a run can continue after this row: it must wait for an answer of the model."""
    if not last.run_id:
        return False
    if last.type == MessageType.TEXT:
        unanswered = last.role in (Speaker.USER, Speaker.SYSTEM)
        return unanswered or last.status == MessageStatus.INTERRUPTED
    return last.type in (MessageType.TOOL_GROUP, MessageType.REASONING)


def is_heard(last: ChatMessage) -> bool:
    """Whether the model is sent anything of a row's turn up to it; what is excluded waits for no answer (MSG-09)."""
    turn = _live(last.session_id).filter(run_id=last.run_id, sequence__lte=last.sequence or 0)
    return turn.filter(include_in_context=True, type__in=SAID).exists()


def _at_rest(session: Session, message_id: str) -> tuple[OpenSession, ChatMessage]:
    opened = OpenSession.lock(session.pk)
    opened.require_active()
    if opened.run.state != RunState.IDLE:
        raise Busy
    row = _live(session.pk).filter(pk=message_id).first()
    if row is None:
        raise NoSuchMessage
    return opened, row


def _withdraw_from(opened: OpenSession, row: ChatMessage, author: User) -> None:
    rows = _live(opened.session.pk)
    last = rows.filter(sequence__lt=row.sequence).order_by("-sequence").first()
    if last is None or not can_go_on(last):
        raise _nothing()
    if not is_heard(last):
        raise Refused("nothing_to_retry", _("The message to be answered is left out of the context. Include it first."))
    take_out(opened, list(rows.filter(sequence__gte=row.sequence)), author, MessageRevision.Kind.RETRY)
    resume_turn(opened, last.run_id)
    opened.save()


def _is_said(row: ChatMessage) -> bool:
    return row.type == MessageType.TEXT and row.role in (Speaker.USER, Speaker.SYSTEM)


def _after_what_was_said(row: ChatMessage) -> ChatMessage | None:
    """What follows a text and those that were delivered together with it."""
    following = _live(row.session_id).filter(sequence__gt=row.sequence)
    return following.exclude(type=MessageType.TEXT, role__in=(Speaker.USER, Speaker.SYSTEM)).first()


def _first_of_response(row: ChatMessage) -> ChatMessage | None:
    """The first row of the response that a row is of. An error is what became of one: what was said before stays."""
    if row.type == MessageType.ERROR or not row.response_id:
        return row
    return _live(row.session_id).filter(response_id=row.response_id).first()


def _live(session_id: str) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.live(session_id).order_by("sequence")


def _nothing() -> Refused:
    return Refused("nothing_to_retry", _("There is nothing to answer before this message."))
