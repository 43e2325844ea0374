"""Record what webhooks learn, in the transaction in which it happens: no crash can lose it or make it up.

A transaction on a session knows from the statement that locks it whether its workspace has webhooks, so that all of
this costs no statement where there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

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
from chat.queries.webhooks import live_webhooks
from chat.services.transaction import SessionTransaction

# Those who deliver in this process. They are called on commit, from any thread.
_listeners: list[Callable[[], None]] = []


def listen(listener: Callable[[], None]) -> None:
    """Call a function whenever deliveries may be due. It must return at once and raise nothing."""
    _listeners.append(listener)


def unlisten(listener: Callable[[], None]) -> None:
    _listeners.remove(listener)


def wake_on_commit() -> None:
    """Let this process deliver on commit. Without it, a process finds what is due at its next look."""
    transaction.on_commit(_wake)


def _wake() -> None:
    for listener in list(_listeners):
        listener()


def session_created(session: Session) -> None:
    """Record that a person or a program has created a session, from nothing or as a copy."""
    _record(session, WebhookEvent.SESSION_CREATED, {"status": "active"})


def message_sent(tx: SessionTransaction, row: ChatMessage) -> None:
    """Record that a person has sent a message, at once or to the queue."""
    if tx.has_webhooks:
        status = "queued" if row.status == MessageStatus.QUEUED else "sent"
        _record(tx.session, WebhookEvent.MESSAGE_SENT, _facts(tx.session, row, status))


def row_added(tx: SessionTransaction, name: MessageEventName, row: ChatMessage) -> None:
    """Record the end of a turn, if a run has added its marker. Sub-agents report to those who asked them."""
    if name != "turn_done" or not tx.has_webhooks or tx.session.caller_message_id:
        return
    is_failed = row.status == MessageStatus.FAILED
    answers = Q(type=MessageType.ERROR) if is_failed else Q(type=MessageType.TEXT, role=MessageRole.ASSISTANT)
    last = tx.messages().filter(answers, turn_id=row.turn_id).order_by("-sequence").first()
    event = WebhookEvent.TURN_FAILED if is_failed else WebhookEvent.TURN_FINISHED
    facts = _facts(tx.session, last, row.end_reason or row.status)
    _record(tx.session, event, {**facts, "turn_id": row.turn_id})


def waiting(tx: SessionTransaction, row: ChatMessage | None = None) -> None:
    """Record that people are asked something: by a call that still runs, or by those for which the turn waits."""
    if not tx.has_webhooks or tx.run.delegating:
        return
    asking = tx.messages().filter(status=MessageStatus.WAITING, subsession__isnull=True)
    row = row or asking.order_by("sequence").first()
    _record(tx.session, WebhookEvent.AGENT_WAITING, _facts(tx.session, row, "waiting"))


def _facts(session: Session, row: ChatMessage | None, status: str) -> dict[str, Any]:
    if row is None:
        return {"status": status}
    facts = {"status": status, "message_id": row.pk, "turn_id": row.turn_id}
    return {**facts, "agent": row.agent_id or session.agent, "model": row.model or session.model}


def _record(session: Session, event: WebhookEvent, facts: dict[str, Any]) -> None:
    """Add a delivery for each webhook of the session's workspace that has chosen the event."""
    chosen = [each for each in live_webhooks().filter(workspace=session.workspace_id) if event in each.events]
    if not chosen:
        return
    now = timezone.now()
    facts = {"agent": session.agent, "model": session.model, **facts}
    rows = [
        WebhookDelivery(webhook=each, event=event, session=session, facts=facts, happened_at=now, next_at=now)
        for each in chosen
    ]
    WebhookDelivery.objects.bulk_create(rows)
    wake_on_commit()
