"""Ask users the questions of running calls, and deliver their answers to the process that runs the call."""

from __future__ import annotations

from functools import partial

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
    """Store a question of a running call, and let the call wait for an answer."""
    row = tx.messages().get(pk=message_id)
    record = {"question": sanitize_json(question), "asked_at": timezone.now().isoformat()}
    asked = [*records_of(row.asked), record]
    tx.update("message_updated", row, {"status": MessageStatus.WAITING, "asked": asked})
    outbox.waiting(tx, row)


def withdraw(tx: SessionTransaction, message_id: str, why: str) -> None:
    """Let a call continue without an answer. If it was answered in the meantime, change nothing."""
    row = tx.messages().get(pk=message_id)
    if row.status == MessageStatus.WAITING and open_record(row.asked) is not None:
        _close_question(tx, row, {"withdrawn": why})


def skip(tx: SessionTransaction) -> None:
    """Let running calls continue without an answer, because a user has sent a message instead."""
    for row in tx.messages().filter(ASKING):
        if open_record(row.asked) is not None:
            _close_question(tx, row, {"withdrawn": "skipped"})
            _wake_runner(tx)


def open_question(row: ChatMessage) -> Elicitation | None:
    """Return the open question of a call, or None if there is none that can be read."""
    record = open_record(row.asked)
    return read_elicitation(record["question"]) if record is not None else None


def record_answer(tx: SessionTransaction, row: ChatMessage, author: User, answer: Json) -> None:
    """Record an answer, and wake the process that runs the call. The caller saves the transaction."""
    record = {
        "answer": sanitize_json(answer),
        "answered_by": sender_in(tx.session, author),
        "answered_by_id": author.pk,
        "answered_at": timezone.now().isoformat(),
    }
    _close_question(tx, row, record)
    _wake_runner(tx)


def _wake_runner(tx: SessionTransaction) -> None:
    wakeup = Wakeup(WakeupKind.ANSWER, tx.session.pk, tx.run.turn_id, tx.run.owner_id or "")
    transaction.on_commit(partial(send, wakeup))


def _close_question(tx: SessionTransaction, row: ChatMessage, values: Json) -> None:
    """Add values to the record of a call's open question, and let the call run again.

    Publish the status, unless another call has an open question.
    """
    tx.update("message_updated", row, {"status": MessageStatus.RUNNING, "asked": with_last(row.asked, values)})
    if tx.run.state == RunState.RUNNING and not tx.messages().filter(ASKING).exists():
        tx.events.append(StatusChanged("tool_calling", row.tool_name))
        notify_session_lists(sessions=[tx.session.pk])
