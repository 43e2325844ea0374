"""Ask people what a running call wants to know, and take their answer to the process that runs it."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents.elicitation import Elicitation, read_elicitation
from agents.messages import Json
from chat.bus.events import StatusChanged
from chat.bus.wakeups import Wakeup, WakeupKind, send
from chat.models import ASKING, ChatMessage, MessageStatus, RunState, User
from chat.runs.elicitations import open_record, records_of, with_last
from chat.runs.sanitize import sanitize_json
from chat.services.messages.senders import sender_in
from chat.services.transaction import SessionTransaction, notify_session_lists
from chat.services.webhooks import outbox


def ask(tx: SessionTransaction, message_id: str, question: Json) -> None:
    """Let a running call wait for people."""
    row = tx.messages().get(pk=message_id)
    record = {"question": sanitize_json(question), "asked_at": timezone.now().isoformat()}
    asked = [*records_of(row.asked), record]
    tx.update("message_updated", row, {"status": MessageStatus.WAITING, "asked": asked})
    outbox.waiting(tx, row)


def withdraw(tx: SessionTransaction, message_id: str, why: str) -> None:
    """Let a call go on without an answer. One that has come in the meantime stays as it is."""
    row = tx.messages().get(pk=message_id)
    if row.status == MessageStatus.WAITING and open_record(row.asked) is not None:
        asked = with_last(row.asked, {"withdrawn": why})
        tx.update("message_updated", row, {"status": MessageStatus.RUNNING, "asked": asked})
        _go_on(tx, row)


def skip(tx: SessionTransaction) -> None:
    """Let running calls go on without an answer, because a message has come in its place."""
    for row in tx.messages().filter(ASKING):
        if open_record(row.asked) is not None:
            fields = {"status": MessageStatus.RUNNING, "asked": with_last(row.asked, {"withdrawn": "skipped"})}
            tx.update("message_updated", row, fields)
            _go_on(tx, row)
            _wake(tx)


def open_question(row: ChatMessage) -> Elicitation | None:
    """Return what a call waits for; None if it asks nothing that can be read."""
    record = open_record(row.asked)
    return read_elicitation(record["question"]) if record is not None else None


def answered(tx: SessionTransaction, row: ChatMessage, author: User, answer: Json) -> None:
    """Record the answer, and let the process that runs the call have it. The caller saves the transaction."""
    record = {
        "answer": sanitize_json(answer),
        "answered_by": sender_in(tx.session, author),
        "answered_by_id": author.pk,
        "answered_at": timezone.now().isoformat(),
    }
    fields: dict[str, Any] = {"status": MessageStatus.RUNNING, "asked": with_last(row.asked, record)}
    tx.update("message_updated", row, fields)
    _go_on(tx, row)
    _wake(tx)


def _wake(tx: SessionTransaction) -> None:
    wakeup = Wakeup(WakeupKind.ANSWER, tx.session.pk, tx.run.turn_id, tx.run.owner_id or "")
    transaction.on_commit(partial(send, wakeup))


def _go_on(tx: SessionTransaction, row: ChatMessage) -> None:
    """Show that the call runs again, unless another one still asks."""
    if tx.run.state == RunState.RUNNING and not tx.messages().filter(ASKING).exists():
        tx.events.append(StatusChanged("tool_calling", row.tool_name))
        notify_session_lists(sessions=[tx.session.pk])
