"""What runs write: batches of row changes, fenced by the claim, one transaction for all of a process's sessions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from operator import attrgetter
from typing import NamedTuple, assert_never
from urllib.parse import urlsplit

from django.db import transaction

from chat.bus.events import ChatEvent, RunCancelled, StatusChanged, TextAppended, UsageChanged
from chat.limits import quotas
from chat.models import ChatMessage, EndReason, MessageDelta, ModelRequest, RunState, Session, SessionRun
from chat.origin import Face
from chat.runs.changes import (
    AppendText,
    Change,
    CloseTurn,
    InsertMessage,
    RecordRequest,
    RecordUsage,
    TellCancelled,
    TellStatus,
    UpdateMessage,
)
from chat.runs.lease import Claim
from chat.services.messages.senders import sender_in
from chat.services.people import security_log
from chat.services.people.security_log import Kind
from chat.services.runs.turns import deliver_queued
from chat.services.transaction import SessionTransaction

SAVED = ("revision", "updated_at", "total_tokens", "context_used", "context_window", "provider", "model")
SAVED_OF_RUN = ("written", "attempts", "state", "turn_id", "turn_started_at", "stopped_by", "done", "owner")
# DNS allows no longer names.
LONGEST_HOST = 253


class Outcome(Enum):
    """What became of a job or a text.

    `REPEATED`: a try before this one has written it. `FENCED`: the claim is lost, nothing was written. `REWOUND`: the
    rows lack an earlier job of the claim; it could not be written, or a failover has lost it. `BUSY`: a long
    transaction has locked the session's rows; try again.
    """

    WRITTEN = "written"
    REPEATED = "repeated"
    FENCED = "fenced"
    REWOUND = "rewound"
    BUSY = "busy"


IN_ROWS = (Outcome.WRITTEN, Outcome.REPEATED)


@dataclass(slots=True)
class Recorded:
    """What became of a job: where it is written, the events to publish and, after a CloseTurn, the id of the turn that
    is open now ("" when the session was released)."""

    outcome: Outcome = Outcome.WRITTEN
    events: list[ChatEvent] = field(default_factory=list)
    next_turn: str = ""


@dataclass(eq=False, slots=True)
class Job:
    """Changes of one run that belong together. `before` are hints to publish ahead of them.

    A claim's jobs are numbered from 1. The transaction that writes number n requires that n - 1 is written, and keeps
    n. When the answer to its COMMIT is lost, the next try finds n and does not repeat the job: `recorded`, of the last
    try, is what became of it.
    """

    claim: Claim
    number: int
    changes: Sequence[Change]
    before: Sequence[TextAppended] = ()
    recorded: Recorded | None = None


@dataclass(frozen=True, slots=True)
class PendingText:
    """Text of a streaming message that is not in its rows yet; `offset` counts characters.

    A text that was tried once is tried again as it is: the rows may have it already, at this offset.
    """

    claim: Claim
    message_id: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of each job and of each text, in order."""

    jobs: list[Recorded]
    texts: list[Outcome]


class _Run(NamedTuple):
    """The columns of a locked run that decide who may write."""

    pk: str
    epoch: int
    owner_id: str | None
    claimant: str
    written: int

    def admits(self, claim: Claim) -> bool:
        return (self.epoch, self.owner_id) == (claim.epoch, claim.worker_id)

    def has(self, job: Job) -> bool:
        """Return whether a job is written already; its claim may have been released since."""
        claim = job.claim
        return (self.epoch, self.claimant) == (claim.epoch, claim.worker_id) and self.written >= job.number


_columns_of = attrgetter(*_Run._fields)


@dataclass(frozen=True, slots=True)
class _Locked:
    """The rows of a batch: `sessions` are those with jobs, `busy` those that others have locked."""

    sessions: dict[str, SessionTransaction]
    runs: dict[str, _Run]
    busy: set[str]


@transaction.atomic
def record(jobs: Sequence[Job], texts: Sequence[PendingText], *, wait: bool = True) -> Batch:
    """Write jobs and texts as far as their claims hold, in one transaction. The caller publishes after the commit.

    `wait` off: sessions whose rows others have locked are left out as busy (PostgreSQL).
    """
    locked = _lock({job.claim.session_id for job in jobs}, {text.claim.session_id for text in texts}, wait=wait)
    judged = list(zip(jobs, _judge(jobs, locked), strict=True))
    # Their jobs are written already, and may have released the session, which is no reason to call a text lost.
    known = {job.claim for job, outcome in judged if outcome is Outcome.REPEATED}
    outcomes = [_judge_text(text, locked, known) for text in texts]
    compacted = _compacted(job for job, outcome in judged if outcome in IN_ROWS)
    admitted = [text for text, outcome in zip(texts, outcomes, strict=True) if outcome is Outcome.WRITTEN]
    folded = _write_texts(admitted, compacted)
    rows = _rows(jobs)
    results = [_carry_out(locked, job, outcome, rows, folded) for job, outcome in judged]
    _save([job for job, outcome in judged if outcome is Outcome.WRITTEN], locked)
    return Batch(results, outcomes)


def _judge(jobs: Iterable[Job], locked: _Locked) -> Iterator[Outcome]:
    """Decide which jobs are to be written."""
    written = {session_id: run.written for session_id, run in locked.runs.items()}
    for job in jobs:
        session_id = job.claim.session_id
        run = locked.runs.get(session_id)
        if session_id in locked.busy:
            yield Outcome.BUSY
        elif run is not None and run.has(job):
            yield Outcome.REPEATED
        elif run is None or not run.admits(job.claim):
            yield Outcome.FENCED
        elif written[session_id] != job.number - 1:
            yield Outcome.REWOUND
        else:
            written[session_id] = job.number
            yield Outcome.WRITTEN


def _judge_text(text: PendingText, locked: _Locked, known: Collection[Claim]) -> Outcome:
    run = locked.runs.get(text.claim.session_id)
    if text.claim.session_id in locked.busy:
        return Outcome.BUSY
    return Outcome.WRITTEN if text.claim in known or (run and run.admits(text.claim)) else Outcome.FENCED


def _carry_out(
    locked: _Locked,
    job: Job,
    outcome: Outcome,
    rows: dict[str, ChatMessage],
    folded: Mapping[str, Sequence[PendingText]],
) -> Recorded:
    if outcome not in IN_ROWS:
        return Recorded(outcome)
    session = locked.sessions[job.claim.session_id]
    if outcome is Outcome.WRITTEN:
        job.recorded = Recorded(outcome, next_turn=session.run.turn_id)
        if not _in_vain(session, job):
            job.recorded.next_turn = _apply(session, job, rows, folded)
            job.recorded.events = [*job.before, *session.events]
            session.events.clear()
    return job.recorded or Recorded(outcome, next_turn=session.run.turn_id)


def _save(written: Sequence[Job], locked: _Locked) -> None:
    """Write what the jobs have changed in the rows of their sessions and runs."""
    for session_id, number in {job.claim.session_id: job.number for job in written}.items():
        tx = locked.sessions[session_id]
        tx.run.written = number
        tx.session.save(update_fields=SAVED)
        tx.run.save(update_fields=SAVED_OF_RUN)


def _lock(with_rows: set[str], with_text: set[str], *, wait: bool) -> _Locked:
    """Lock what will be written, sessions before runs and in one order.

    Texts alone, which are most of what is written, need the run only.
    """
    rows = Session.objects.select_for_update(skip_locked=not wait).filter(pk__in=with_rows).order_by("pk")
    found = {session.pk: session for session in rows} if with_rows else {}
    names = found.keys() | (with_text - with_rows)
    locking = SessionRun.objects.select_for_update(skip_locked=not wait).filter(pk__in=names).order_by("pk")
    # Texts alone need a few columns; one query for both kinds keeps the locks in one order.
    tx = {run.pk: run for run in locking} if with_rows else {}
    columns = map(_columns_of, tx.values()) if with_rows else locking.values_list(*_Run._fields)
    runs = {run.pk: run for run in map(_Run._make, columns)}
    missing = (with_rows | with_text) - runs.keys()
    # What is missing although all locks were waited for is deleted.
    busy = set() if wait else set(SessionRun.objects.filter(pk__in=missing).values_list("pk", flat=True))
    sessions = {name: SessionTransaction(found[name], tx[name]) for name in found.keys() & tx.keys()}
    return _Locked(sessions, runs, busy)


def _in_vain(tx: SessionTransaction, job: Job) -> bool:
    """Whether a turn would end for queued messages that have been withdrawn since."""
    return CloseTurn(for_queued=True) in job.changes and not ChatMessage.objects.deliverable(tx.session.pk).exists()


def _compacted(jobs: Iterable[Job]) -> set[str]:
    return {change.id for job in jobs for change in job.changes if isinstance(change, UpdateMessage) and change.compact}


def _rows(jobs: Iterable[Job]) -> dict[str, ChatMessage]:
    ids = {change.id for job in jobs for change in job.changes if isinstance(change, UpdateMessage)}
    return ChatMessage.objects.in_bulk(ids) if ids else {}


def _write_texts(texts: Sequence[PendingText], compacted: set[str]) -> dict[str, list[PendingText]]:
    """Write delta rows, but hand back the texts of messages that end in this very batch: they go into their rows."""
    folded: dict[str, list[PendingText]] = defaultdict(list)
    deltas = []
    for text in texts:
        if text.message_id in compacted:
            folded[text.message_id].append(text)
        else:
            deltas.append(MessageDelta(message_id=text.message_id, offset=text.offset, text=text.text))
    if deltas:
        # A conflict is a text that a try before has written.
        MessageDelta.objects.bulk_create(deltas, ignore_conflicts=True)
    return folded


def _apply(
    tx: SessionTransaction, job: Job, rows: dict[str, ChatMessage], folded: Mapping[str, Sequence[PendingText]]
) -> str:
    next_turn = ""
    for change in job.changes:
        match change:
            case InsertMessage(message_id, name, fields, details):
                if fields.get("end_reason") == EndReason.STOPPED:
                    fields = {**fields, **_stopper(tx)}
                rows[message_id] = tx.insert(name, ChatMessage(id=message_id, **fields), details)
            case UpdateMessage(message_id, name, fields, details, compact):
                row = rows[message_id]
                text = {"text": _whole_text(row, folded)} if compact else {}
                tx.update(name, row, {**fields, **text}, details)
                if name == "tool_exec_start":
                    _record_host(tx.session, row)
            case RecordUsage():
                _use(tx, change)
            case RecordRequest():
                ModelRequest.objects.create(session_id=tx.session.pk, **asdict(change))
            case TellStatus(status, tool_name):
                tx.events.append(StatusChanged(status, tool_name))
            case TellCancelled(turn_id):
                tx.events.append(RunCancelled(turn_id))
            case CloseTurn():
                next_turn = _close_turn(tx)
            case AppendText():
                raise AssertionError("text travels as PendingText")
            case _:
                assert_never(change)
    return next_turn


def _record_host(session: Session, row: ChatMessage) -> None:
    """Log which host a tool call is about to reach. The rest of the address can be private."""
    address = row.arguments.get("url") if isinstance(row.arguments, dict) else None
    try:
        host = urlsplit(address.strip()).hostname if isinstance(address, str) else None
    except ValueError:  # no address: the tool will say so
        return
    if host:
        details = {"tool": row.tool_name, "host": host[:LONGEST_HOST]}
        security_log.record(
            Kind.TOOL_CALLED, actor=None, person=session.owner_id, target=session, face=Face.AGENT, **details
        )


def _stopper(tx: SessionTransaction) -> dict[str, object]:
    user = tx.run.stopped_by
    return {"stopped_by": user, "stopped_by_name": sender_in(tx.session, user)} if user else {}


def _whole_text(row: ChatMessage, folded: Mapping[str, Sequence[PendingText]]) -> str:
    """Fold a message's delta rows and last texts into one, once, at its end. A text may be in both."""
    deltas = MessageDelta.objects.filter(message=row)
    parts = dict(deltas.values_list("offset", "text")) | {text.offset: text.text for text in folded.get(row.pk, ())}
    deltas.delete()
    return "".join([row.text, *(parts[offset] for offset in sorted(parts))])


def _use(tx: SessionTransaction, usage: RecordUsage) -> None:
    tx.run.attempts = 0  # a response is finished: this is no turn that ends its process
    session = tx.session
    session.total_tokens += usage.tokens
    quotas.record_tokens(user_id=tx.run.started_by_id or session.owner_id, tokens=usage.tokens)
    session.context_used = usage.context_used
    if not session.model:  # a server that had not told its models when the session began
        session.provider, session.model = usage.provider, usage.model
        tx.session_changed()
    if (session.provider, session.model) == (usage.provider, usage.model):  # else it was switched since (RUN-05)
        session.context_window = usage.context_window
    tx.events.append(UsageChanged(session.context_used, session.context_window, session.total_tokens, usage.model))


def _close_turn(tx: SessionTransaction) -> str:
    """Look once more, in the releasing transaction, whether anybody has queued something (RUN-06)."""
    run = tx.run
    run.attempts = 0  # those of the next turn are its own, however this one has ended
    if deliver_queued(tx):
        return run.turn_id
    run.state, run.turn_id, run.turn_started_at, run.stopped_by = RunState.IDLE, "", None, None
    run.done, run.owner = run.wanted, None
    return ""
