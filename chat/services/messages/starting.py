"""Begin a plain turn in one transaction of few statements, including the claim of this process's runner (RUN-01).

`sending.send_message` has the full rules. A turn is plain if the owner of a session that no one else can see sends a
text to an idle agent. For all other turns, `begin_turn` returns None and changes nothing. A property test checks that
both functions write the same rows and events (tests/services/test_starting.py).
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from chat import ids
from chat.bus.events import StatusChanged
from chat.errors import ServiceError
from chat.limits.quotas import SMALL_CHARS, quotas
from chat.models import ChatMessage, MessageRole, MessageType, RunState, Session, SessionRun, User, without_files
from chat.names import MAX_LENGTH
from chat.queries import presets
from chat.queries.webhooks import HAS_WEBHOOKS
from chat.row_statements import columns_of, names_of, new_row, read_value, row_of, update_row
from chat.runs import lease
from chat.runs.lease import Claim
from chat.runs.local_runner import BegunTurn, local_runner
from chat.runs.turn_state import TurnState
from chat.services.idempotency import request_digest
from chat.services.messages.mentioning import with_agents
from chat.services.messages.sending import Sent
from chat.services.messages.validation import validate_characters, validate_message
from chat.services.sessions import user_state
from chat.services.transaction import SessionTransaction
from chat.services.webhooks import outbox

# Locks the session and then its run, and reads all values for the decision. It finds a session only for its active
# owner, which is the rule of chat/access.py for owners. On PostgreSQL the statement can wait for another transaction.
# Then the two locked rows have the changes of that transaction, but the subqueries do not. So `revision_before` differs
# from the session's revision.
_LOCK_AND_READ = """
    SELECT {session}, {run},
        (SELECT revision FROM chat_session WHERE id = s.id) AS revision_before,
        COALESCE((SELECT MAX(sequence) FROM chat_chatmessage WHERE session_id = s.id), 0) AS last_sequence,
        EXISTS (SELECT 1 FROM chat_chatmessage WHERE session_id = s.id AND "key" = %(key)s) AS is_key_used,
        EXISTS (SELECT 1 FROM chat_participation
            WHERE session_id = s.id AND user_id = u.id AND NOT draft = '') AS has_draft,
        EXISTS (SELECT 1 FROM chat_share WHERE session_id = s.id) AS is_shared,
        COALESCE((SELECT tokens FROM chat_dailyusage WHERE user_id = u.id AND day = %(day)s), 0) AS tokens_today,
        (SELECT COUNT(*) FROM chat_sessionrun
            WHERE started_by_id = u.id AND NOT state = 'idle' AND NOT state = 'waiting') AS running_turns,
        EXISTS (SELECT 1 FROM chat_worker WHERE id = %(worker)s AND lease_until > {now}) AS has_worker,
        {has_webhooks} AS has_webhooks,
        {now} AS now
    FROM chat_session s
        JOIN chat_sessionrun r ON r.session_id = s.id
        JOIN chat_user u ON u.id = s.owner_id
    WHERE s.id = %(session)s AND u.id = %(user)s AND u.is_active {lock}
"""
_WRITTEN_RUN_COLUMNS = (
    "state",
    "turn_id",
    "turn_started_at",
    "stopped_by",
    "started_by",
    "wanted",
    "due_since",
    "owner",
    "claimant",
    "epoch",
    "written",
    "attempts",
)
# The database's clock, in the SQL of Django's Now().
_NOW = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "STATEMENT_TIMESTAMP()"}
_LOCK = {"sqlite": "", "postgresql": "FOR UPDATE OF s, r"}


class _LockedState(NamedTuple):
    """The values that `_LOCK_AND_READ` returns."""

    session: Session
    run: SessionRun
    revision_before: int
    last_sequence: int
    is_key_used: bool
    has_draft: bool
    is_shared: bool
    tokens_today: int
    running_turns: int
    has_worker: bool
    has_webhooks: bool
    now: datetime


def begin_turn(*, author: User, session_id: str, text: str, key: str | None) -> Sent | None:
    """Add a user message in a new turn if the turn is plain; otherwise return None.

    The runner of this process runs the turn. If there is no runner, or it has no room, a worker is woken.
    """
    if connection.in_atomic_block or not ids.may_be_one(session_id) or not _is_plain_text(text, key):
        return None
    runner = local_runner()
    worker_id = runner.reserve() if runner is not None else ""
    sent = turn = None
    try:
        with transaction.atomic():
            written = _write_turn(author, session_id, text, key or None, worker_id)
        if written is not None:  # outside of the transaction: a turn that was not committed must not run
            sent, turn = written
    except IntegrityError:  # on PostgreSQL: the key was used, or the worker removed, after `_lock_and_read` has read
        return None
    finally:
        if runner is not None and turn is not None:
            runner.take(turn)
        elif runner is not None and worker_id:
            runner.release()
    return sent


def _is_plain_text(text: str, key: str | None) -> bool:
    try:
        validate_message(text)
        validate_characters(key or "")
    except ServiceError:
        return False
    return len(text) <= SMALL_CHARS


def _write_turn(
    author: User, session_id: str, text: str, key: str | None, worker_id: str
) -> tuple[Sent, BegunTurn | None] | None:
    """Write a turn with its message, and start its run, if the turn is plain.

    Return the message, and the turn if `worker_id` has claimed it.
    """
    locked = _lock_and_read(author, session_id, key, worker_id)
    if locked is None or not _may_begin(locked):
        return None
    tx = SessionTransaction(locked.session, locked.run, locked.last_sequence, has_webhooks=bool(locked.has_webhooks))
    session, turn_id, now = locked.session, ids.turn_id(), timezone.now()
    marker = new_row(ChatMessage, type=MessageType.TURN_START, turn_id=turn_id, mode=session.mode, timestamp=now)
    message = _new_message(session, author, turn_id, text, key)
    tx.add_rows([marker, message])
    tx.record_event("turn_start", marker)
    tx.record_event("user_message", message, {"model": session.model})
    tx.events.append(StatusChanged("thinking"))
    outbox.message_sent(tx, message)
    tx.save()
    if locked.has_draft:
        user_state.delete_sent_draft(session=session, user=author, sent=text)
    claim = _start_run(locked, author, turn_id, now, worker_id if locked.has_worker else "")
    state = TurnState(
        turn_id=turn_id,
        began=time.monotonic(),
        started_by=author.pk,
        mode=session.mode,
        agent_id=session.agent,
        model=session.model,
        provider=session.provider,
    )
    turn = BegunTurn(claim, state, session, message.sequence or 0) if claim is not None else None
    return Sent(message.pk, queued=False, turn_id=turn_id, sequence=message.sequence), turn


def _new_message(session: Session, author: User, turn_id: str, text: str, key: str | None) -> ChatMessage:
    row = new_row(
        ChatMessage,
        type=MessageType.TEXT,
        role=MessageRole.USER,
        text=text,
        sender=author.sender[:MAX_LENGTH],  # unique, because no other user can see the session
        user_id=author.pk,
        mode=session.mode,
        turn_id=turn_id,
        arguments=with_agents(session, None, text),
        idempotency_key=key,
        key_digest=request_digest({"text": text, "attachments": []}) if key else None,
    )
    return without_files(row)


def _lock_and_read(author: User, session_id: str, key: str | None, worker_id: str) -> _LockedState | None:
    today = connection.ops.adapt_datefield_value(timezone.now().date())
    values: dict[str, Any] = {"session": session_id, "user": author.pk, "key": key, "day": today, "worker": worker_id}
    statement, of_session, of_run = _statement(connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    if row is None:
        return None
    session = row_of(Session, row[:of_session])
    run = row_of(SessionRun, row[of_session : of_session + of_run])
    return _LockedState._make(
        [session, run, *row[of_session + of_run : -1], read_value(SessionRun, "due_since", row[-1])]
    )


@cache
def _statement(vendor: str) -> tuple[str, int, int]:
    """Return the statement for this kind of database, and the number of columns of the session and of the run."""
    session, run = names_of(Session, "s"), names_of(SessionRun, "r")
    has_webhooks = HAS_WEBHOOKS.format(session="s")
    statement = _LOCK_AND_READ.format(
        session=session, run=run, has_webhooks=has_webhooks, now=_NOW[vendor], lock=_LOCK[vendor]
    )
    return statement, len(columns_of(Session, vendor)), len(columns_of(SessionRun, vendor))


def _may_begin(locked: _LockedState) -> bool:
    """Return whether the turn is plain and within the quotas."""
    session, run, limits = locked.session, locked.run, quotas()
    is_active = session.status == Session.Status.ACTIVE
    has_title = bool(session.title)  # without one, the message becomes the title
    is_idle = run.state == RunState.IDLE and run.owner_id is None and run.wanted == run.done
    is_for_the_agent = session.replies == Session.Replies.ALL and not presets.copies_of_others(session)
    is_consistent = locked.revision_before == session.revision
    is_shared = locked.is_shared or bool(session.workspace_role)
    is_ready = is_active and has_title and is_idle and is_consistent
    is_plain = is_ready and is_for_the_agent and not is_shared and not locked.is_key_used
    has_tokens = not limits.tokens_per_day or locked.tokens_today < limits.tokens_per_day
    has_room = not limits.running_turns or locked.running_turns < limits.running_turns
    return is_plain and has_tokens and has_room


def _start_run(locked: _LockedState, author: User, turn_id: str, now: datetime, worker_id: str) -> Claim | None:
    """Open the turn and request its run, as `turns.open_turn` and `lease.request` do; claim it as `lease.claim` does.

    If `worker_id` is "", wake a worker on commit instead of claiming the run.
    """
    run = locked.run
    run.state, run.turn_id, run.turn_started_at, run.stopped_by_id = RunState.RUNNING, turn_id, now, None
    run.started_by_id, run.wanted, run.due_since = author.pk, run.wanted + 1, locked.now
    if worker_id:
        run.owner_id, run.claimant, run.epoch, run.written = worker_id, worker_id, run.epoch + 1, 0
        run.attempts += 1
    else:
        lease.wake_on_commit(run.pk)
    update_row(run, _WRITTEN_RUN_COLUMNS)
    return Claim(run.pk, run.epoch, worker_id) if worker_id else None
