"""Turns without an event loop. The test supplies the agent's events, and the real reducer and recorder write them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from django.utils import timezone

from agents.events import TurnFinished
from chat import ids
from chat.bus.events import TextAppended
from chat.models import Session
from chat.projections.compaction import plan
from chat.queries.context_rows import context_rows
from chat.queries.messages import message_snapshot
from chat.runner.compactor import first_of
from chat.runner.resume import TurnSnapshot, open_claim, read_open_turn
from chat.runs import lease
from chat.runs.changes import AppendText, Change, CloseTurn, InsertSummary, ReportCompaction, ReportStatus
from chat.runs.lease import Claim
from chat.runs.reducer import reduce
from chat.runs.turn_state import Now, ProcessLost, Stopped, TurnEvent, TurnState
from chat.services.runs.recording import Job, Outcome, PendingText, record
from chat.services.transaction import publish_on_commit
from tests.support.workers import declare_dead


class Player:
    """A player of the turns of one session, event by event. `state` is that of the open turn, or None."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.state: TurnState | None = None
        self._worker = lease.register_worker()
        self._claim: Claim | None = None
        self._written = 0
        self._seconds = count(100)
        self._resumes = True

    def begin(self) -> bool:
        """Claim the session if it is due, open its turn and repair the rows of the last run, as a bridge does.

        Return False if there is nothing to run.
        """
        if self._claim is None:
            self._take()
        if self._claim is not None and self.state is None:
            opening = open_claim(self._claim, float(next(self._seconds)))
            if opening is None:
                self._claim = None
            else:
                self.state, self._written = opening.state, opening.written
                if opening.compacting:
                    stopped = ReportCompaction("stopped")
                    self.end_compaction(stopped if opening.cancelling else self.summary())
                else:
                    self._repair(opening)
        return self.state is not None

    def summary(self) -> InsertSummary | ReportCompaction:
        """Return the summary of the messages that a compaction would summarize now, or its report if there are none."""
        planned = plan(context_rows(Session.objects.get(pk=self.session.pk), "turn_id"), 1000)
        if planned is None:
            return ReportCompaction("nothing")
        read = max(row.revision for row in planned.rows)
        text = f"Summary of {planned.messages}"
        return InsertSummary(planned.after.pk, first_of(planned), read, text, planned.messages, "scripted", "one", 5, 3)

    def claim_compaction(self) -> bool:
        """Claim the session without compacting it. Return whether a compaction is due."""
        if self._claim is None:
            self._take()
        if self._claim is None:
            return False
        opening = open_claim(self._claim, float(next(self._seconds)))
        assert opening is not None
        self.state, self._written = opening.state, opening.written
        return opening.compacting

    def end_compaction(self, change: InsertSummary | ReportCompaction) -> None:
        assert self._claim is not None
        self._record(self._claim, [change, ReportStatus("idle"), CloseTurn()])

    def apply(self, *events: TurnEvent) -> None:
        for event in events:
            self._apply(event)

    def crash(self, *, resumes: bool) -> None:
        """Kill the worker and let another one claim the session. Later writes of the dead worker are rejected."""
        declare_dead(self._worker)
        dead, state = self._claim, self.state
        self._worker, self._claim, self.state, self._resumes = lease.register_worker(), None, None, resumes
        self._take()
        if dead is not None and state is not None:
            _, changes = reduce(state, Stopped(), self._now())
            [late] = record([Job(dead, self._written + 1, changes)], []).jobs
            assert late.outcome is Outcome.FENCED

    def _take(self) -> None:
        for claim in lease.claim(self._worker, 1000):
            if claim.session_id == self.session.pk:
                self._claim = claim
            else:
                lease.give_back(claim)

    def _repair(self, opening: TurnSnapshot) -> None:
        if opening.cancelling:
            self._apply(TurnFinished("done") if opening.answered and not opening.cut else Stopped())
        elif opening.cut:
            self._apply(ProcessLost(self._resumes))
        elif opening.answered:
            self._apply(TurnFinished("done"))

    def _apply(self, event: TurnEvent) -> None:
        assert self.state is not None
        assert self._claim is not None
        self.state, changes = reduce(self.state, event, self._now())
        match changes:
            case [AppendText(message_id, text, reasoning)]:
                self._append(message_id, text, reasoning)
            case _:
                self._record(self._claim, changes)

    def _append(self, message_id: str, text: str, reasoning: bool) -> None:
        assert self._claim is not None
        message = message_snapshot(message_id)
        assert message is not None
        record([], [PendingText(self._claim, message_id, len(message.text), text)])
        publish_on_commit(self.session.pk, [TextAppended(message_id, len(message.text), text, reasoning)])

    def _record(self, claim: Claim, changes: Sequence[Change]) -> None:
        self._written += 1
        [recorded] = record([Job(claim, self._written, changes)], []).jobs
        assert recorded.outcome is Outcome.WRITTEN
        if any(isinstance(change, CloseTurn) for change in changes):
            self._close(claim, recorded.next_turn)

    def _close(self, claim: Claim, next_turn: str) -> None:
        if next_turn:
            opening = read_open_turn(claim, float(next(self._seconds)))
            assert opening is not None
            self.state = opening.state
        else:
            self.state = self._claim = None

    def _now(self) -> Now:
        return Now(timezone.now(), float(next(self._seconds)), ids.message_id, ids.response_id)
