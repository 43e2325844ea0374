"""Read the state of a claimed session: its open turn, unfinished rows of a dead process, and where to continue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.messages import Source
from agents.sources import read_sources
from chat.models import (
    IN_FLIGHT,
    ChatMessage,
    MessageRole,
    MessageStatus,
    MessageType,
    RunState,
    Session,
    SessionRun,
)
from chat.overrides.composed_queries import Composed
from chat.queries import presets
from chat.queries.cast import agents_from, known_agent, title_of, turn_mode
from chat.runs import lease
from chat.runs.lease import Claim
from chat.runs.turn_state import OpenText, OpenTool, ResponseText, TurnState, WritingCall
from chat.services.runs.turns import deliver_queued
from chat.services.transaction import SessionTransaction

# How often a turn may be claimed without finishing a response. The next claim closes it.
MAX_CLAIMS = 3


@dataclass(frozen=True, slots=True)
class TurnSnapshot:
    """An open turn as the rows describe it. The defaults are those of a turn that has just begun.

    `cut`: it has unfinished rows. `answered`: its last row ends it. `cancelling`: a user stopped it. `written` is the
    number of the claim's last job that is in the rows. `exhausted`: too many processes died during the turn.
    `compacting`: the turn has no rows, and it summarizes earlier messages.
    """

    state: TurnState
    cut: bool = False
    answered: bool = False
    cancelling: bool = False
    written: int = 0
    exhausted: bool = False
    compacting: bool = False


@transaction.atomic
def open_claim(claim: Claim, mono: float) -> TurnSnapshot | None:
    """Read a claimed session, and begin a turn if messages are queued.

    Return None if the claim is lost. If there is no turn to run, release the claim and return None.
    """
    tx = SessionTransaction.lock(claim.session_id)
    run = tx.run
    if (run.epoch, run.owner_id) != (claim.epoch, claim.worker_id):
        return None
    if run.state == RunState.IDLE:
        deliver_queued(tx)
        if tx.events:
            tx.save()
    if run.state == RunState.IDLE:
        run.done, run.owner, run.attempts = run.wanted, None, 0
        run.save(update_fields=["done", "owner", "attempts"])
        return None
    if run.waiting_since is not None:
        # The time for which a turn waited for an answer is not part of its duration.
        if run.turn_started_at is not None:
            run.turn_started_at += timezone.now() - run.waiting_since
        run.waiting_since = None
        run.save(update_fields=["turn_started_at", "waiting_since"])
    return _snapshot(tx.session, run, mono)


def read_open_turn(claim: Claim, mono: float) -> TurnSnapshot | None:
    """Read the open turn of a session that was claimed before; return None if the claim is lost."""
    run = lease.run_of(claim).select_related("session").first()
    return _snapshot(run.session, run, mono) if run is not None else None


def _of_turn(session_id: str, turn_id: str) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.in_conversation(session_id).filter(turn_id=turn_id).order_by("sequence")


_OF_TURN = Composed(_of_turn)


def _snapshot(session: Session, run: SessionRun, mono: float) -> TurnSnapshot:
    rows = _OF_TURN.read(session.pk, run.turn_id)
    streaming = [row for row in rows if row.status == MessageStatus.STREAMING and row.type != MessageType.TOOL_GROUP]
    open_text = None
    if streaming:
        row = streaming[-1]
        open_text = OpenText(row.pk, row.type == MessageType.REASONING, mono - _seconds_since(row.timestamp))
    agent = known_agent(session, agents_from(rows[0] if rows else None))
    own = presets.own(session, agent) if agent != session.agent else session
    state = TurnState(
        turn_id=run.turn_id,
        began=mono,
        started_by=run.started_by_id,
        elapsed_before=_seconds_since(run.turn_started_at),
        mode=turn_mode(session, rows[0] if rows else None),
        agent_id=agent,
        sender=title_of(session, agent)[:200],
        model=own.model,
        provider=own.provider,
        open=open_text,
        texts=_texts_of_cut_response(rows, mono),
        writing=tuple(
            WritingCall(row.pk, "")
            for row in rows
            if row.status == MessageStatus.STREAMING and row.type == MessageType.TOOL_GROUP
        ),
        tools=_open_tools(rows, mono),
        sources=_sources(rows),
    )
    # Pending calls do not count as cut: a retry leaves them in place, too, and the run executes them.
    cut = any(row.status in IN_FLIGHT or row.is_asking for row in rows)
    return TurnSnapshot(
        state,
        cut=cut,
        answered=is_answered(rows) and not state.tools,
        cancelling=run.state == RunState.CANCELLING,
        written=run.written,
        exhausted=run.attempts > MAX_CLAIMS,
        compacting=run.compacting,
    )


def _seconds_since(began: datetime | None) -> float:
    return max(0.0, (timezone.now() - began).total_seconds()) if began else 0.0


def _texts_of_cut_response(rows: Sequence[ChatMessage], mono: float) -> tuple[ResponseText, ...]:
    """Return the texts of the response that was cut off; empty if there is none."""
    cut = {row.response_id for row in rows if row.status == MessageStatus.STREAMING}
    texts = (row for row in rows if row.type == MessageType.TEXT and row.response_id in cut)
    return tuple(ResponseText(row.pk, mono - _seconds_since(row.timestamp)) for row in texts)


def _sources(rows: Sequence[ChatMessage]) -> tuple[Source, ...]:
    """Return the pages that the turn's tools have found so far, without duplicates."""
    return tuple(dict.fromkeys(source for row in rows for source in read_sources(row.sources)))


def _open_tools(rows: Sequence[ChatMessage], mono: float) -> tuple[OpenTool, ...]:
    return tuple(
        OpenTool(
            row.pk,
            row.tool_call_id,
            row.tool_name or "unknown",
            mono - _seconds_since(row.timestamp) if _has_run(row) else None,
            waiting=row.status == MessageStatus.WAITING and not row.is_asking,
            delegated=row.subsession is not None,
            asking=row.is_asking,
            output=row.result if _has_run(row) else "",
        )
        for row in rows
        if row.status in (MessageStatus.RUNNING, MessageStatus.PENDING, MessageStatus.WAITING)
    )


def _has_run(row: ChatMessage) -> bool:
    return row.status == MessageStatus.RUNNING or row.is_asking


def is_answered(rows: Sequence[ChatMessage]) -> bool:
    """Return whether a turn's last row ends it (RUN-12). A complete assistant text or an error does."""
    last = next((row for row in reversed(rows) if row.type != MessageType.TURN_START), None)
    if last is None:
        return not agents_from(rows[0] if rows else None)
    if last.type == MessageType.TEXT:
        return last.role == MessageRole.ASSISTANT and last.status == MessageStatus.COMPLETE
    return last.type == MessageType.ERROR
