"""What people ask of a run: stop it, or try again."""

from __future__ import annotations

from django.db import transaction

from chat.models import ChatMessage, MessageRevision, MessageStatus, MessageType, RunState, Session, Speaker, User
from chat.running import lease
from chat.services.errors import Busy, NoSuchMessage, Refused
from chat.services.rows import OpenSession
from chat.services.turns import resume_turn


@transaction.atomic
def cancel(*, session: Session, author: User) -> bool:
    """Stop the running turn (RUN-07). Repeating it does no harm; False: nothing runs (any more)."""
    return lease.ask_to_stop(session.pk)


@transaction.atomic
def retry(*, session: Session, author: User, message_id: str) -> None:
    """Withdraw the rows from a message on and go on from the last one kept (RUN-12).

    Raises Refused: the agent works, the session is archived, the message has gone, or nothing before it could be
    answered.
    """
    opened = OpenSession.lock(session.pk)
    opened.require_active()
    if opened.run.state != RunState.IDLE:
        raise Busy
    rows = ChatMessage.objects.filter(session_id=session.pk, sequence__isnull=False)
    row = rows.filter(pk=message_id).first()
    if row is None:
        raise NoSuchMessage
    last = rows.filter(sequence__lt=row.sequence).order_by("-sequence").first()
    if last is None or not _can_go_on(last):
        raise Refused("nothing_to_retry", "There is nothing to answer before this message.")
    for withdrawn in rows.filter(sequence__gte=row.sequence).order_by("sequence"):
        opened.remove(withdrawn, author, MessageRevision.Kind.REMOVE)
    resume_turn(opened, last.run_id)
    opened.save()


def _can_go_on(last: ChatMessage) -> bool:
    """Whether a run can continue after this row: it must wait for an answer of the model."""
    if not last.run_id:
        return False
    if last.type == MessageType.TEXT:
        unanswered = last.role in (Speaker.USER, Speaker.SYSTEM)
        return unanswered or last.status == MessageStatus.INTERRUPTED
    return last.type in (MessageType.TOOL_GROUP, MessageType.REASONING)
