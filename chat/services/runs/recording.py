"""Write batches of row changes of runs, fenced by their claims, in one transaction for all sessions of a process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import lru_cache
from typing import assert_never

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from chat.bus.events import (
    ChatEvent,
    CompactionEnded,
    FilesChanged,
    RunCancelled,
    StatusChanged,
    TextAppended,
)
from chat.limits import quotas
from chat.models import (
    ChatMessage,
    EndReason,
    MessageStatus,
    MessageType,
    ModelRequest,
    RunState,
)
from chat.queries import presets
from chat.queries.cast import agents_from, others
from chat.row_statements import insert_rows, new_row, update_row
from chat.runs.changes import (
    AppendText,
    AskPeople,
    Change,
    CloseTurn,
    Delegate,
    EndWait,
    InsertMessage,
    InsertSummary,
    RecordRequest,
    RecordUsage,
    ReportCancelled,
    ReportCompaction,
    ReportFiles,
    ReportStatus,
    UpdateMessage,
    WaitForAnswers,
    WithdrawQuestion,
)
from chat.runs.lease import Claim
from chat.services.messages.senders import sender_in
from chat.services.people import security_log
from chat.services.runs import asking, compaction, delegation
from chat.services.runs.locking import Locked, lock
from chat.services.runs.turns import deliver_queued, end_wait, show_delegated
from chat.services.transaction import SessionTransaction, publish_on_commit
from chat.services.webhooks import outbox

SESSION_COLUMNS = ("revision", "updated_at", "total_tokens", "context_used", "context_window", "provider", "model")
WRITTEN_RUN_COLUMNS = (
    "written",
    "attempts",
    "state",
    "turn_id",
    "turn_started_at",
    "waiting_since",
    "stopped_by",
    "compacting",
    "delegating",
    "done",
    "owner",
)
_TAKE_DELTAS = 'DELETE FROM chat_messagedelta WHERE message_id = %s RETURNING "offset", text'
# The most texts in one statement, because SQLite may have been built for at most 999 values.
MAX_DELTAS = 300


class Outcome(Enum):
    """The outcome of writing a job or a text.

    REPEATED: an earlier try has written it. FENCED: the claim is lost, and nothing was written. REWOUND: an earlier job
    of the claim is not in the rows, because it could not be written or a failover lost it. BUSY: another transaction
    has locked the session's rows, and the caller tries again.
    """

    WRITTEN = "written"
    REPEATED = "repeated"
    FENCED = "fenced"
    REWOUND = "rewound"
    BUSY = "busy"


IN_ROWS = (Outcome.WRITTEN, Outcome.REPEATED)


@dataclass(slots=True)
class Recorded:
    """The result of a job: its events and, after a CloseTurn, the next turn's id ("" if the session is released).

    `caller` is the session for which this one works, if its last turn has ended or it may wait for people now.
    """

    outcome: Outcome = Outcome.WRITTEN
    events: list[ChatEvent] = field(default_factory=list)
    next_turn: str = ""
    caller: str = ""


@dataclass(eq=False, slots=True)
class Job:
    """Changes of one run that are written together. `before` are hints that are published before their events.

    A claim's jobs are numbered from 1. The transaction that writes number n requires that n - 1 is written, and stores
    n. If the answer to its COMMIT is lost, the next try finds n and does not write the job again; `recorded` is the
    result of the last try.
    """

    claim: Claim
    number: int
    changes: Sequence[Change]
    before: Sequence[TextAppended] = ()
    recorded: Recorded | None = None


@dataclass(frozen=True, slots=True)
class PendingText:
    """Text of a streaming message to write; `offset` counts characters.

    A retry writes the same text at the same offset, because the rows may have it already.
    """

    claim: Claim
    message_id: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The results of the jobs, and the outcomes of the texts, in order."""

    jobs: list[Recorded]
    texts: list[Outcome]


@transaction.atomic
def record(jobs: Sequence[Job], texts: Sequence[PendingText], *, wait: bool = True) -> Batch:
    """Write the jobs and texts whose claims still hold, in one transaction, and publish their events on commit.

    If `wait` is False, sessions whose rows are locked are skipped as busy (PostgreSQL).
    """
    locked = lock({job.claim.session_id for job in jobs}, {text.claim.session_id for text in texts}, wait=wait)
    decided = list(zip(jobs, _job_outcomes(jobs, locked), strict=True))
    # A repeated job may have released its session. The texts of its claim are not lost then.
    repeated = {job.claim for job, outcome in decided if outcome is Outcome.REPEATED}
    outcomes = [_text_outcome(text, locked, repeated) for text in texts]
    updates = [
        change
        for job, outcome in decided
        if outcome in IN_ROWS
        for change in job.changes
        if isinstance(change, UpdateMessage)
    ]
    admitted = [text for text, outcome in zip(texts, outcomes, strict=True) if outcome is Outcome.WRITTEN]
    last_texts = _write_texts(admitted, {change.id for change in updates if change.compact})
    results = [_write_job(locked, job, outcome, last_texts) for job, outcome in decided]
    written = {job.claim.session_id: job.number for job, outcome in decided if outcome is Outcome.WRITTEN}
    for session_id, number in written.items():
        tx = locked.sessions[session_id]
        tx.run.written = number
        update_row(tx.session, SESSION_COLUMNS)
        update_row(tx.run, WRITTEN_RUN_COLUMNS)
    quotas.record_tokens(used for tx in locked.sessions.values() for used in tx.used)
    for job, recorded in zip(jobs, results, strict=True):
        if recorded.events:
            publish_on_commit(job.claim.session_id, recorded.events)
    return Batch(results, outcomes)


def _job_outcomes(jobs: Iterable[Job], locked: Locked) -> Iterator[Outcome]:
    """Yield the outcome of each job, in order."""
    written = {session_id: run.written for session_id, run in locked.runs.items()}
    for job in jobs:
        session_id = job.claim.session_id
        run = locked.runs.get(session_id)
        if session_id in locked.busy:
            yield Outcome.BUSY
        elif run is not None and run.has(job.claim, job.number):
            yield Outcome.REPEATED
        elif run is None or not run.admits(job.claim):
            yield Outcome.FENCED
        elif written[session_id] != job.number - 1:
            yield Outcome.REWOUND
        else:
            written[session_id] = job.number
            yield Outcome.WRITTEN


def _text_outcome(text: PendingText, locked: Locked, repeated: Collection[Claim]) -> Outcome:
    run = locked.runs.get(text.claim.session_id)
    if text.claim.session_id in locked.busy:
        return Outcome.BUSY
    return Outcome.WRITTEN if text.claim in repeated or (run and run.admits(text.claim)) else Outcome.FENCED


def _write_job(locked: Locked, job: Job, outcome: Outcome, last_texts: Mapping[str, Sequence[PendingText]]) -> Recorded:
    if outcome not in IN_ROWS:
        return Recorded(outcome)
    tx = locked.sessions[job.claim.session_id]
    if outcome is Outcome.WRITTEN:
        job.recorded = Recorded(outcome, next_turn=tx.run.turn_id)
        # A turn that ends only for queued messages continues if they were withdrawn since.
        ends_for_queued = CloseTurn(for_queued=True) in job.changes
        if not ends_for_queued or ChatMessage.objects.for_break(tx.session.pk).exists():
            job.recorded.next_turn = _apply(tx, job, last_texts)
            waits = any(isinstance(change, WaitForAnswers | AskPeople | WithdrawQuestion) for change in job.changes)
            if (waits or tx.run.state == RunState.IDLE) and tx.session.caller_message_id:
                job.recorded.caller = tx.session.caller_session_id or ""
            job.recorded.events = [*job.before, *tx.events]
            tx.events.clear()
    return job.recorded or Recorded(outcome, next_turn=tx.run.turn_id)


def _write_texts(texts: Sequence[PendingText], compacted: set[str]) -> dict[str, list[PendingText]]:
    """Insert delta rows. Return the texts of messages that end in this batch, which are added to their rows instead."""
    last_texts: dict[str, list[PendingText]] = defaultdict(list)
    deltas = []
    for text in texts:
        if text.message_id in compacted:
            last_texts[text.message_id].append(text)
        else:
            deltas.append((text.message_id, text.offset, text.text))
    for start in range(0, len(deltas), MAX_DELTAS):
        part = deltas[start : start + MAX_DELTAS]
        with connection.cursor() as cursor:
            cursor.execute(_insert_deltas(len(part)), [value for delta in part for value in delta])
    return last_texts


@lru_cache(maxsize=MAX_DELTAS)
def _insert_deltas(count: int) -> str:
    """Return the statement for `count` texts. It skips texts that an earlier try has written."""
    values = ", ".join(["(%s, %s, %s)"] * count)
    return f'INSERT INTO chat_messagedelta (message_id, "offset", text) VALUES {values} ON CONFLICT DO NOTHING'  # noqa: S608  # no values


def _apply(tx: SessionTransaction, job: Job, last_texts: Mapping[str, Sequence[PendingText]]) -> str:
    next_turn = ""
    for change in job.changes:
        match change:
            case InsertMessage():
                _insert_message(tx, change)
            case UpdateMessage():
                _update_message(tx, change, last_texts)
            case EndWait(message_id, fields, if_approved):
                end_wait(tx, message_id, fields, if_approved)
            case RecordUsage():
                _record_usage(tx, change)
            case RecordRequest():
                insert_rows([ModelRequest(session_id=tx.session.pk, **change.columns())])
            case InsertSummary():
                compaction.insert(tx, change)
            case ReportCompaction(outcome, message, words):
                tx.events.append(CompactionEnded(outcome, 0, message, words))
            case ReportStatus():
                tx.events.append(StatusChanged(**asdict(change)))
            case ReportFiles():
                tx.events.append(FilesChanged())
            case ReportCancelled(turn_id):
                tx.events.append(RunCancelled(turn_id))
            case CloseTurn(for_queued):
                next_turn = _close_turn(tx, for_queued=for_queued)
            case WaitForAnswers():
                next_turn = _begin_waiting(tx)
            case Delegate(message_id, has_new_address):
                delegation.begin(tx, tx.messages().get(pk=message_id), has_new_address=has_new_address)
            case AskPeople(message_id, question):
                asking.ask(tx, message_id, question)
            case WithdrawQuestion(message_id, why):
                asking.withdraw(tx, message_id, why)
            case AppendText():
                raise AssertionError("text is written as PendingText")
            case _:
                assert_never(change)
    return next_turn


def _insert_message(tx: SessionTransaction, change: InsertMessage) -> None:
    """Insert a row. The end of a turn that a user has stopped gets that user and their name."""
    row = new_row(ChatMessage, id=change.id, **change.fields)
    if row.end_reason == EndReason.STOPPED and tx.run.stopped_by:
        row.stopped_by, row.stopped_by_name = tx.run.stopped_by, sender_in(tx.session, tx.run.stopped_by)
    tx.insert(change.name, row, change.details)
    outbox.row_added(tx, change.name, row)


def _update_message(
    tx: SessionTransaction, change: UpdateMessage, last_texts: Mapping[str, Sequence[PendingText]]
) -> None:
    text = _take_text(change.id, last_texts) if change.compact else ""
    # A call whose arguments are complete stores them instead of its text.
    text = "" if "text" in change.fields else text
    row = tx.update_by_id(change.name, change.id, change.fields, change.details, more_text=text)
    if change.name == "tool_exec_start":
        security_log.record_host(tx.session, row)


def _take_text(message_id: str, last_texts: Mapping[str, Sequence[PendingText]]) -> str:
    """Return the text to append to a message that ends: its delta rows, which are deleted, and the last texts.

    A text may be in both.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_DELTAS, [message_id])
        parts = dict(cursor.fetchall())
    parts |= {text.offset: text.text for text in last_texts.get(message_id, ())}
    return "".join(parts[offset] for offset in sorted(parts))


def _record_usage(tx: SessionTransaction, usage: RecordUsage) -> None:
    tx.run.attempts = 0  # a response has finished, so the turn does not make processes fail
    session = tx.session
    session.total_tokens += usage.tokens
    tx.used.append((tx.run.started_by_id or session.owner_id, usage.tokens))
    session.context_used = usage.context_used
    if not session.model:  # the provider had not listed its models when the session began
        session.provider, session.model = usage.provider, usage.model
        tx.session_changed()
    if (session.provider, session.model) == (usage.provider, usage.model):  # else the model was changed since (RUN-05)
        session.context_window = usage.context_window
    tx.usage_changed()


def _close_turn(tx: SessionTransaction, *, for_queued: bool) -> str:
    """Begin the next turn, or release the session, in the same transaction. Return the turn's id, or "".

    A turn begins for queued messages (RUN-06), and for the next agent that the earlier messages address.
    """
    run = tx.run
    run.attempts = 0  # the next turn counts its own attempts
    is_answered = not run.compacting and run.state == RunState.RUNNING
    run.compacting = run.delegating = False
    unfinished = _unfinished(tx, for_queued=for_queued)
    if is_answered and not unfinished and compaction.is_due(tx.session):
        compaction.begin(tx, None)
        return run.turn_id
    if deliver_queued(tx, unfinished):
        return run.turn_id
    run.state, run.turn_id, run.turn_started_at, run.stopped_by = RunState.IDLE, "", None, None
    run.done, run.owner = run.wanted, None
    return ""


def _unfinished(tx: SessionTransaction, *, for_queued: bool) -> list[str]:
    """Return the agents of the turn that have not answered yet. After a stop there are none."""
    if tx.run.state == RunState.CANCELLING or not presets.copies_of_others(tx.session):
        return []
    markers = tx.messages().filter(turn_id=tx.run.turn_id, type=MessageType.TURN_START)
    agents = agents_from(markers.first()) or [tx.session.agent]
    there = {tx.session.agent, *(member.name for member in others(tx.session))}
    return [name for name in (agents if for_queued else agents[1:]) if name in there]


def _begin_waiting(tx: SessionTransaction) -> str:
    """Release the session until people answer (UI-12) or other agents have ended. Return "".

    Return the turn's id instead if the turn continues, because it was stopped, all have answered since, or messages are
    queued. While other agents work, queued messages wait for them, as they wait for tools.
    """
    run = tx.run
    run.attempts = 0  # waiting is not a failure of the worker
    rows = tx.messages().filter(status__in=(MessageStatus.WAITING, MessageStatus.PENDING)).order_by("sequence")
    rows = rows.annotate(is_question=Q(subsession__isnull=True))
    open_calls = list(rows.values_list("status", "is_question"))
    delegated = sum(not is_question for _status, is_question in open_calls)
    only_waits = {status for status, _is_question in open_calls} == {MessageStatus.WAITING}
    is_queued = not delegated and ChatMessage.objects.for_break(tx.session.pk).exists()
    if run.state == RunState.CANCELLING or is_queued or not only_waits:
        return run.turn_id
    run.state, run.waiting_since = RunState.WAITING, timezone.now()
    run.delegating = delegated == len(open_calls)
    run.done, run.owner = run.wanted, None
    outbox.waiting(tx)
    if run.delegating:
        show_delegated(tx)
    else:
        tx.events.append(StatusChanged("waiting"))
    return ""
