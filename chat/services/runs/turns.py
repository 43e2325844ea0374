"""How a turn begins: its marker and the user texts that it is to answer."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from chat import ids
from chat.bus.events import StatusChanged
from chat.limits.quotas import require_turn
from chat.models import ChatMessage, MessageStatus, MessageType, RunState, Session, User
from chat.queries.attachments import fetch_attachments
from chat.runs import lease
from chat.services.transaction import SessionTransaction


def open_turn(opened: SessionTransaction, started_by: int | None) -> str:
    """Begin a turn of a person with its marker and return its id; what it answers comes next."""
    turn_id, now = ids.turn_id(), timezone.now()
    opened.run.turn_id = turn_id
    opened.run.turn_started_at = now
    opened.run.state = RunState.RUNNING
    opened.run.stopped_by = None
    opened.run.started_by_id = started_by
    opened.run.save(update_fields=["turn_id", "turn_started_at", "state", "stopped_by", "started_by"])
    marker = ChatMessage(type=MessageType.TURN_START, run_id=turn_id, mode=opened.session.mode, timestamp=now)
    opened.insert("turn_start", marker)
    return turn_id


def deliver_queued(opened: SessionTransaction) -> bool:
    """Give the queued messages their places in a new turn (RUN-06). False: there were none, or nobody to answer to."""
    if opened.session.status == Session.Status.DELETED:
        return False
    queued = list(ChatMessage.objects.deliverable(opened.session.pk))
    if not queued:
        return False
    deliver(opened, queued)
    return True


def deliver(opened: SessionTransaction, queued: Sequence[ChatMessage]) -> None:
    """Give these queued messages their places in a new turn."""
    fetch_attachments(queued)
    turn_id = open_turn(opened, queued[0].user_id)
    for row in queued:
        place = {"status": MessageStatus.COMPLETE, "sequence": opened.next_sequence(), "run_id": turn_id, "held": False}
        opened.update("user_message", row, place, {"model": opened.session.model})
    opened.events.append(StatusChanged("thinking"))


def hold_queued(opened: SessionTransaction) -> None:
    """Let the queued messages wait until a person sends them (RUN-06)."""
    queued = list(ChatMessage.objects.deliverable(opened.session.pk))
    fetch_attachments(queued)
    for row in queued:
        opened.update("message_updated", row, {"held": True})


def resume_turn(opened: SessionTransaction, turn_id: str, author: User) -> None:
    """Open a turn again whose end was withdrawn (RUN-12), as one of the author's, and ask for a runner.

    Raises QuotaExceeded.
    """
    require_turn(author)
    opened.run.turn_id = turn_id
    opened.run.turn_started_at = timezone.now()
    opened.run.state = RunState.RUNNING
    opened.run.stopped_by = None
    opened.run.started_by_id = author.pk
    opened.run.save(update_fields=["turn_id", "turn_started_at", "state", "stopped_by", "started_by"])
    opened.events.append(StatusChanged("thinking"))
    lease.request(opened.session.pk)
