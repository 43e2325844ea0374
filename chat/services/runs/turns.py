"""Begin turns: insert the marker, deliver queued messages, resume a turn."""

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


def open_turn(tx: SessionTransaction, started_by: int | None) -> str:
    """Begin a turn with its marker, and return its id. The caller adds the messages to answer."""
    turn_id, now = ids.turn_id(), timezone.now()
    tx.run.turn_id = turn_id
    tx.run.turn_started_at = now
    tx.run.state = RunState.RUNNING
    tx.run.stopped_by = None
    tx.run.started_by_id = started_by
    tx.run.save(update_fields=["turn_id", "turn_started_at", "state", "stopped_by", "started_by"])
    marker = ChatMessage(type=MessageType.TURN_START, turn_id=turn_id, mode=tx.session.mode, timestamp=now)
    tx.insert("turn_start", marker)
    return turn_id


def deliver_queued(tx: SessionTransaction) -> bool:
    """Deliver the queued messages (RUN-06): in a new turn, if the agent is to answer any. Return whether one began."""
    if tx.session.status == Session.Status.DELETED:
        return False
    queued = list(ChatMessage.objects.deliverable(tx.session.pk))
    if any(row.for_agent for row in queued):
        deliver(tx, queued)
        return True
    fetch_attachments(queued)
    for row in queued:
        tx.update("user_message", row, _delivered(tx, ""), {"model": tx.session.model})
    return False


def deliver(tx: SessionTransaction, queued: Sequence[ChatMessage]) -> None:
    """Deliver these queued messages in a new turn."""
    fetch_attachments(queued)
    turn_id = open_turn(tx, queued[0].user_id)
    for row in queued:
        tx.update("user_message", row, _delivered(tx, turn_id), {"model": tx.session.model})
    tx.events.append(StatusChanged("thinking"))


def _delivered(tx: SessionTransaction, turn_id: str) -> dict[str, object]:
    return {"status": MessageStatus.COMPLETE, "sequence": tx.next_sequence(), "turn_id": turn_id, "held": False}


def resume_waiting(tx: SessionTransaction) -> None:
    """Let a turn go on that waits for people (UI-12). The caller requests the run."""
    if tx.run.state == RunState.WAITING:
        tx.run.state = RunState.RUNNING
        tx.run.save(update_fields=["state"])
        tx.events.append(StatusChanged("thinking"))


def hold_queued(tx: SessionTransaction) -> None:
    """Hold the queued messages that the agent would answer, until a user sends them (RUN-06)."""
    queued = list(ChatMessage.objects.to_answer(tx.session.pk))
    fetch_attachments(queued)
    for row in queued:
        tx.update("message_updated", row, {"held": True})


def resume_turn(tx: SessionTransaction, turn_id: str, author: User) -> None:
    """Reopen a turn whose end was withdrawn (RUN-12), in the name of the author, and request a run.

    Raises QuotaExceeded.
    """
    require_turn(author)
    tx.run.turn_id = turn_id
    tx.run.turn_started_at = timezone.now()
    tx.run.state = RunState.RUNNING
    tx.run.stopped_by = None
    tx.run.started_by_id = author.pk
    tx.run.save(update_fields=["turn_id", "turn_started_at", "state", "stopped_by", "started_by"])
    tx.events.append(StatusChanged("thinking"))
    lease.request(tx.session.pk)
