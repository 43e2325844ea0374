"""What runs write: batches of row changes, fenced by the epoch, one transaction for all of a process's sessions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import assert_never
from urllib.parse import urlsplit

from django.db import transaction

from chat.events import ChatEvent, RunCancelled, StatusChanged, TextAppended, UsageChanged
from chat.models import ChatMessage, EndReason, MessageDelta, ModelRequest, RunState, Session, SessionRun
from chat.origin import Face
from chat.running.changes import (
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
from chat.services import security_log
from chat.services.rows import OpenSession
from chat.services.security_log import Kind
from chat.services.senders import sender_in
from chat.services.turns import deliver_queued

# DNS allows no longer names.
LONGEST_HOST = 253


@dataclass(frozen=True, slots=True)
class Job:
    """Changes of one run that belong together. `before` are hints to publish ahead of them."""

    session_id: str
    epoch: int
    changes: Sequence[Change]
    before: Sequence[TextAppended] = ()


@dataclass(frozen=True, slots=True)
class PendingText:
    """Text of a streaming message that is not in its rows yet; `offset` counts characters."""

    session_id: str
    epoch: int
    message_id: str
    offset: int
    text: str


@dataclass(slots=True)
class Recorded:
    """What became of a job: `fenced` (another worker has the session, nothing was written), or the events to
    publish and, after a CloseTurn, the id of the turn that is open now ("" when the session was released)."""

    fenced: bool = False
    events: list[ChatEvent] = field(default_factory=list)
    next_turn: str = ""


@transaction.atomic
def record(jobs: Sequence[Job], texts: Sequence[PendingText]) -> list[Recorded]:
    """Write jobs and pending texts; answers one Recorded per job, in order.

    Fenced jobs and texts are left out, all else is written or nothing is. The caller publishes after the commit.
    """
    opened, epochs = _lock({job.session_id for job in jobs}, {text.session_id for text in texts})
    rows = _rows(jobs)
    folded = _write_texts([text for text in texts if epochs.get(text.session_id) == text.epoch], _compacted(jobs))
    results = [
        _carry_out(opened[job.session_id], job, rows, folded)
        if epochs.get(job.session_id) == job.epoch
        else Recorded(fenced=True)
        for job in jobs
    ]
    for session_id in {job.session_id for job, result in zip(jobs, results, strict=True) if not result.fenced}:
        opened[session_id].session.save(
            update_fields=[
                "revision",
                "updated_at",
                "total_tokens",
                "context_used",
                "context_window",
                "provider",
                "model",
            ]
        )
    return results


def _carry_out(session: OpenSession, job: Job, rows: dict[str, ChatMessage], folded: dict[str, list[str]]) -> Recorded:
    if _in_vain(session, job):
        return Recorded(next_turn=session.run.turn_id)
    next_turn = _apply(session, job, rows, folded)
    events = [*job.before, *session.events]
    session.events.clear()
    return Recorded(events=events, next_turn=next_turn)


def _lock(with_rows: set[str], with_text: set[str]) -> tuple[dict[str, OpenSession], dict[str, int]]:
    """Lock what will be written, sessions before runs and in one order; give the sessions whose rows will change, and
    the epochs of all runs that have an owner: texts alone, which are most of what is written, need no more."""
    sessions = {each.pk: each for each in Session.objects.select_for_update().filter(pk__in=with_rows).order_by("pk")}
    runs = SessionRun.objects.filter(pk__in=with_rows | with_text, owner__isnull=False).order_by("pk")
    epochs = dict(runs.select_for_update().values_list("pk", "epoch"))
    opened = SessionRun.objects.filter(pk__in=with_rows & epochs.keys()) if with_rows else ()
    return {run.pk: OpenSession(sessions[run.pk], run) for run in opened}, epochs


def _in_vain(opened: OpenSession, job: Job) -> bool:
    """Whether a turn would end for queued messages that have been withdrawn meanwhile."""
    return CloseTurn(for_queued=True) in job.changes and not ChatMessage.objects.deliverable(opened.session.pk).exists()


def _compacted(jobs: Iterable[Job]) -> set[str]:
    return {change.id for job in jobs for change in job.changes if isinstance(change, UpdateMessage) and change.compact}


def _rows(jobs: Iterable[Job]) -> dict[str, ChatMessage]:
    ids = {change.id for job in jobs for change in job.changes if isinstance(change, UpdateMessage)}
    return ChatMessage.objects.in_bulk(ids) if ids else {}


def _write_texts(texts: Sequence[PendingText], compacted: set[str]) -> dict[str, list[str]]:
    """Write delta rows, but hand back the texts of messages that end in this very batch: they go into their rows."""
    folded: dict[str, list[str]] = defaultdict(list)
    deltas = []
    for text in texts:
        if text.message_id in compacted:
            folded[text.message_id].append(text.text)
        else:
            deltas.append(MessageDelta(message_id=text.message_id, offset=text.offset, text=text.text))
    if deltas:
        MessageDelta.objects.bulk_create(deltas)
    return folded


def _apply(opened: OpenSession, job: Job, rows: dict[str, ChatMessage], folded: dict[str, list[str]]) -> str:
    next_turn = ""
    for change in job.changes:
        match change:
            case InsertMessage(message_id, name, fields, details):
                if fields.get("end_reason") == EndReason.STOPPED:
                    fields = {**fields, **_stopper(opened)}
                rows[message_id] = opened.insert(name, ChatMessage(id=message_id, **fields), details)
            case UpdateMessage(message_id, name, fields, details, compact):
                row = rows[message_id]
                text = {"text": _whole_text(row, folded)} if compact else {}
                opened.update(name, row, {**fields, **text}, details)
                if name == "tool_exec_start":
                    _record_host(opened.session, row)
            case RecordUsage():
                _use(opened, change)
            case RecordRequest():
                ModelRequest.objects.create(session_id=opened.session.pk, **asdict(change))
            case TellStatus(status, tool_name):
                opened.events.append(StatusChanged(status, tool_name))
            case TellCancelled(turn_id):
                opened.events.append(RunCancelled(turn_id))
            case CloseTurn():
                next_turn = _close_turn(opened)
            case AppendText():
                raise AssertionError("text travels as PendingText")
            case _:
                assert_never(change)
    return next_turn


def _record_host(session: Session, row: ChatMessage) -> None:
    """Note which host a tool call is about to reach; what else stands in the address may be private."""
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


def _stopper(opened: OpenSession) -> dict[str, object]:
    user = opened.run.stopped_by
    return {"stopped_by": user, "stopped_by_name": sender_in(opened.session, user)} if user else {}


def _whole_text(row: ChatMessage, folded: dict[str, list[str]]) -> str:
    """Fold a message's delta rows and last texts into one, once, at its end."""
    deltas = MessageDelta.objects.filter(message=row)
    parts = [row.text, *deltas.order_by("offset").values_list("text", flat=True), *folded.get(row.pk, ())]
    deltas.delete()
    return "".join(parts)


def _use(opened: OpenSession, usage: RecordUsage) -> None:
    session = opened.session
    session.total_tokens += usage.tokens
    session.context_used = usage.context_used
    if not session.model:  # a server that had not told its models when the session began
        session.provider, session.model = usage.provider, usage.model
        opened.session_changed()
    if (session.provider, session.model) == (usage.provider, usage.model):  # else it was switched meanwhile (RUN-05)
        session.context_window = usage.context_window
    opened.events.append(UsageChanged(session.context_used, session.context_window, session.total_tokens, usage.model))


def _close_turn(opened: OpenSession) -> str:
    """Look once more, in the releasing transaction, whether anybody has queued something (RUN-06)."""
    run = opened.run
    if deliver_queued(opened):
        return run.turn_id
    run.state, run.turn_id, run.turn_started_at, run.stopped_by = RunState.IDLE, "", None, None
    run.done, run.owner = run.wanted, None
    run.save(update_fields=["state", "turn_id", "turn_started_at", "stopped_by", "done", "owner"])
    return ""
