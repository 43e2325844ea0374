"""Record events for webhooks in the transaction in which they happen, so that no crash can lose or invent one.

The statement that locks a session also reads whether its workspace has webhooks. So a workspace without webhooks needs
no further statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from chat import ids
from chat.bus.events import MessageEventName
from chat.models import (
    ChatMessage,
    MessageRole,
    MessageStatus,
    MessageType,
    Session,
    WebhookDelivery,
    WebhookEvent,
)
from chat.queries.cast import others
from chat.queries.webhooks import live_webhooks
from chat.services.transaction import SessionTransaction

# Functions of this process that start deliveries. They are called on commit, from any thread.
_listeners: list[Callable[[], None]] = []


def listen(listener: Callable[[], None]) -> None:
    """Call a function whenever deliveries may be due. It must return immediately and raise nothing."""
    _listeners.append(listener)


def unlisten(listener: Callable[[], None]) -> None:
    _listeners.remove(listener)


def wake_on_commit() -> None:
    """Let this process deliver on commit. Otherwise the deliveries would wait for the next check of a process."""
    transaction.on_commit(_wake)


def _wake() -> None:
    for listener in list(_listeners):
        listener()


def session_created(session: Session) -> None:
    """Record that a user or an API client has created a session, as a new one or as a copy."""
    _record(session, WebhookEvent.SESSION_CREATED, {"status": "active"})


def message_sent(tx: SessionTransaction, row: ChatMessage) -> None:
    """Record that a user has sent a message, directly or to the queue."""
    if tx.has_webhooks:
        status = "queued" if row.status == MessageStatus.QUEUED else "sent"
        _record(tx.session, WebhookEvent.MESSAGE_SENT, _facts(tx.session, row, status))


def row_added(tx: SessionTransaction, name: MessageEventName, row: ChatMessage) -> None:
    """Record the end of a turn if the row is its marker. Turns in which an agent works for another one are left out."""
    if name != "turn_done" or not tx.has_webhooks or tx.session.caller_message_id:
        return
    is_failed = row.status == MessageStatus.FAILED
    answers = Q(type=MessageType.ERROR) if is_failed else Q(type=MessageType.TEXT, role=MessageRole.ASSISTANT)
    last = tx.messages().filter(answers, turn_id=row.turn_id).order_by("-sequence").first()
    event = WebhookEvent.TURN_FAILED if is_failed else WebhookEvent.TURN_FINISHED
    facts = _facts(tx.session, last, row.end_reason or row.status)
    if last is None:
        facts |= _agent_of_turn(tx, row.turn_id)
    _record(tx.session, event, {**facts, "turn_id": row.turn_id})


def waiting(tx: SessionTransaction, row: ChatMessage | None = None) -> None:
    """Record that people are asked something, by a running call (`row`) or by calls for which the turn waits."""
    if not tx.has_webhooks or tx.run.delegating:
        return
    asking = tx.messages().filter(status=MessageStatus.WAITING, subsession__isnull=True)
    row = row or asking.order_by("sequence").first()
    _record(tx.session, WebhookEvent.AGENT_WAITING, _facts(tx.session, row, "waiting"))


def _agent_of_turn(tx: SessionTransaction, turn_id: str) -> dict[str, str]:
    """Return the agent of a turn and its model. The marker of the turn names the agent if it is another one."""
    markers = tx.messages().filter(type=MessageType.TURN_START, turn_id=turn_id)
    name = markers.values_list("agent_id", flat=True).first() or tx.session.agent
    model = next((each.model for each in others(tx.session) if each.name == name), tx.session.model)
    return {"agent": name, "model": model}


def _facts(session: Session, row: ChatMessage | None, status: str) -> dict[str, Any]:
    if row is None:
        return {"status": status}
    facts = {"status": status, "message_id": row.pk, "turn_id": row.turn_id}
    return {**facts, "agent": row.agent_id or session.agent, "model": row.model or session.model}


def _record(session: Session, event: WebhookEvent, facts: dict[str, Any]) -> None:
    """Add a delivery for each webhook of the session's workspace that has chosen the event.

    Deliveries are sent in the order of their ids, which contain the time of the database, because the events of a
    session come from several processes, whose clocks may differ.
    """
    present = live_webhooks().filter(workspace=session.workspace_id).annotate(happened_at=Now())
    chosen: list[Any] = [each for each in present if event in each.events]
    if not chosen:
        return
    facts = {"agent": session.agent, "model": session.model, **facts}
    common = {"event": event, "session": session, "facts": facts, "next_at": timezone.now()}
    rows = [
        WebhookDelivery(id=ids.delivery_id(each.happened_at), webhook=each, happened_at=each.happened_at, **common)
        for each in chosen
    ]
    WebhookDelivery.objects.bulk_create(rows)
    wake_on_commit()
