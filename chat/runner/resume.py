"""What a run finds when it has claimed a session: the open turn, what a dead process left, where to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

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
from chat.runs.lease import Claim
from chat.runs.turn_state import OpenText, OpenTool, SpokenText, TurnState
from chat.services.runs.turns import deliver_queued
from chat.services.transaction import SessionTransaction

# So often a turn is claimed without finishing a response; the next claim closes it.
MOST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class TurnSnapshot:
    """An open turn. `cut`: rows were left unfinished; `answered`: its last row ends it; `cancelling`: it is to stop.

    `written`: the number of the claim's last job in the rows. `exhausted`: the turn has ended too many processes.
    """

    state: TurnState
    cut: bool
    answered: bool
    cancelling: bool
    written: int
    exhausted: bool


@transaction.atomic
def open_claim(claim: Claim, mono: float) -> TurnSnapshot | None:
    """Look at a claimed session. None: nothing is to be done and the claim is given back, or it was lost."""
    tx = SessionTransaction.lock(claim.session_id)
    run = tx.run
    if (run.epoch, run.owner_id) != (claim.epoch, claim.worker_id):
        return None
    if run.state == RunState.IDLE and deliver_queued(tx):
        tx.save()
    if run.state == RunState.IDLE:
        run.done, run.owner, run.attempts = run.wanted, None, 0
        run.save(update_fields=["done", "owner", "attempts"])
        return None
    return _opening(tx.session, run, mono)


def open_turn(claim: Claim, mono: float) -> TurnSnapshot | None:
    """Look at the open turn of a session that was claimed before. None: the claim is lost."""
    claimed = SessionRun.objects.filter(pk=claim.session_id, epoch=claim.epoch, owner=claim.worker_id)
    run = claimed.select_related("session").first()
    return _opening(run.session, run, mono) if run is not None else None


def _opening(session: Session, run: SessionRun, mono: float) -> TurnSnapshot:
    rows = list(ChatMessage.objects.live(session.pk).filter(run_id=run.turn_id).order_by("sequence"))
    state = TurnState(
        turn_id=run.turn_id,
        began=mono,
        lead=_passed(run.turn_started_at),
        mode=session.mode,
        agent_id=session.agent,
        model=session.model,
        provider=session.provider,
        open=_open_text(rows, mono),
        spoken=_spoken(rows, mono),
        tools=_open_tools(rows, mono),
    )
    # Calls that have not begun are no damage: a retry leaves them too, and the run carries them out.
    cut = any(row.status in IN_FLIGHT for row in rows)
    return TurnSnapshot(
        state,
        cut,
        is_answered(rows),
        run.state == RunState.CANCELLING,
        run.written,
        run.attempts > MOST_ATTEMPTS,
    )


def _passed(began: datetime | None) -> float:
    return max(0.0, (timezone.now() - began).total_seconds()) if began else 0.0


def _open_text(rows: Sequence[ChatMessage], mono: float) -> OpenText | None:
    growing = [row for row in rows if row.status == MessageStatus.STREAMING]
    if not growing:
        return None
    return OpenText(growing[-1].pk, growing[-1].type == MessageType.REASONING, mono - _passed(growing[-1].timestamp))


def _spoken(rows: Sequence[ChatMessage], mono: float) -> tuple[SpokenText, ...]:
    """The texts of the response that was cut off, if one was."""
    cut = {row.response_id for row in rows if row.status == MessageStatus.STREAMING}
    texts = (row for row in rows if row.type == MessageType.TEXT and row.response_id in cut)
    return tuple(SpokenText(row.pk, mono - _passed(row.timestamp)) for row in texts)


def _open_tools(rows: Sequence[ChatMessage], mono: float) -> tuple[OpenTool, ...]:
    return tuple(
        OpenTool(
            row.pk,
            row.tool_call_id,
            row.tool_name or "unknown",
            mono - _passed(row.timestamp) if row.status == MessageStatus.RUNNING else None,
        )
        for row in rows
        if row.status in (MessageStatus.RUNNING, MessageStatus.PENDING)
    )


def is_answered(rows: Sequence[ChatMessage]) -> bool:
    """Whether a turn's last row ends it (RUN-12): a whole assistant text or an error does, all else goes on."""
    last = next((row for row in reversed(rows) if row.type != MessageType.TURN_START), None)
    if last is None:
        return True
    if last.type == MessageType.TEXT:
        return last.role == MessageRole.ASSISTANT and last.status == MessageStatus.COMPLETE
    return last.type == MessageType.ERROR
