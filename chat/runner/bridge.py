"""The bridge runs the agent for one claimed session and turns its events into row changes and streamed text."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from enum import Enum

from django.conf import settings
from django.utils import timezone

from agents.errors import AgentError, ModelNotFound
from agents.events import ResponseStarted, ToolStarted, TurnFailed, TurnFinished
from agents.i18n import gettext as _
from agents.loop import Agent, run
from agents.messages import Json, Message
from chat import ids, metrics
from chat.agents_setup import registry
from chat.bus.events import TextAppended
from chat.db import Threads
from chat.errors import FilesUnavailable
from chat.log_context import add_log_ids
from chat.queries.messages import answer_to
from chat.runner.agent_input import NO_FILES, AgentInput, build_agent_input, has_queued
from chat.runner.compactor import compact, failure_report
from chat.runner.delta_publisher import DeltaPublisher, OutgoingText
from chat.runner.resume import TurnSnapshot, open_claim, read_open_turn
from chat.runner.tracing import TurnTrace, begin_trace
from chat.runner.turn_metrics import COUNTED, count_event
from chat.runner.writer import ClaimJobs, Fenced, NotWritten, Rewound, Writer
from chat.runs.changes import (
    AppendText,
    AskPeople,
    Change,
    CloseTurn,
    InsertMessage,
    InsertSummary,
    RecordRequest,
    ReportCompaction,
    ReportStatus,
    UpdateMessage,
    WithdrawQuestion,
)
from chat.runs.lease import Claim
from chat.runs.local_runner import BegunTurn
from chat.runs.reducer import reduce
from chat.runs.tool_reducer import find_tool
from chat.runs.turn_state import Now, ProcessLost, Stopped, TurnEvent, TurnState
from chat.services.runs.delegation import report_to_caller
from chat.services.runs.recording import Recorded

logger = logging.getLogger(__name__)

# Seconds after which a call that waits for an answer reads the rows again, in case a wakeup was lost.
ANSWER_POLL = 2.0

BROKEN = _("Something went wrong. The error was logged. Retry, and contact your administrator if it happens again.")
EXHAUSTED = _(
    "The server stopped several times during this answer, so Parley didn’t continue it. "
    "Retry, and contact your administrator if it happens again."
)


class RunEnd(Enum):
    """The reason why a bridge ended: no message is queued, or another worker continues the session."""

    DONE = "done"
    HANDED_OVER = "handed over"


class HandedOver(Exception):  # not an error: another worker continues the turn
    """The turn was stopped between two responses, so that another worker continues it.

    The process stops, its worker is drained, or an administrator moves the session.
    """


class Bridge:
    """Runs the turns of one claim until no message is queued. Run `run` as a task; call `stop` on the same loop."""

    def __init__(
        self,
        claim: Claim,
        *,
        writer: Writer,
        delta_publisher: DeltaPublisher,
        threads: Threads,
        input_reads: asyncio.Semaphore,
        begun: BegunTurn | None = None,
        agent_input: AgentInput | None = None,
    ) -> None:
        self.claim = claim
        # The turn that was begun with this claim, and the input of its first response. They are not read again.
        self._begun = begun
        self._first_input = agent_input
        self._writer = writer
        self._delta_publisher = delta_publisher
        self._threads = threads
        self._input_reads = input_reads
        self._jobs = ClaimJobs(writer, claim)
        self._state = TurnState(turn_id="", began=0.0, closed=True)
        # The text that is being published, by message. It can also be the arguments of calls that the model is writing.
        self._streams: dict[str, OutgoingText] = {}
        # The record of the next request, and that of the current request until its response has a row.
        self._next_request: RecordRequest | None = None
        self._request: RecordRequest | None = None
        self._agent_task: asyncio.Task[None] | None = None
        self._stop_turn = ""
        self._is_handing_over = False
        # Set, and then replaced, when a user may have answered a running call.
        self._answers = asyncio.Event()
        # Tasks that report to the session whose agent called this one.
        self._reports: set[asyncio.Task[int]] = set()
        # The spans of the turn, if traces are on.
        self._trace: TurnTrace | None = None
        # The turns that an agent has run, with the users who started them.
        self.starters: dict[str, int | None] = {}

    async def run(self) -> RunEnd:
        """Run turns until the session is released, handed over, or claimed by another worker."""
        add_log_ids(session=self.claim.session_id)
        try:
            if self._begun is not None:
                turn: TurnSnapshot | None = TurnSnapshot(self._begun.state)
            else:
                turn = await self._threads.run_with_retry(open_claim, self.claim, time.monotonic())
            while turn is not None:
                turn = await self._load_turn() if await self._run_turn(turn) else None
        except HandedOver:
            return RunEnd.HANDED_OVER
        except Fenced:
            logger.warning("Session %s has been taken over by another worker", self.claim.session_id)
        finally:
            self._drop_streams()  # another worker may publish now
            if self._reports:
                await asyncio.wait(self._reports)
            if self._trace is not None:
                self._trace.end("left")
        return RunEnd.DONE

    def hand_over(self) -> None:
        """Stop before the next request to the model, so that another worker continues the turn from there."""
        self._is_handing_over = True
        self.check_for_answers()

    def check_for_answers(self) -> None:
        """Make calls that wait for an answer read the rows again, or end their wait if the session is handed over."""
        self._answers.set()
        self._answers = asyncio.Event()

    def stop(self, turn_id: str) -> None:
        """Stop a turn and commit its partial output (RUN-08). Do nothing if it is over; it may not have begun yet."""
        self._stop_turn = turn_id
        if self._agent_task is not None and self._state.turn_id == turn_id:
            self._agent_task.cancel()

    async def _run_turn(self, turn: TurnSnapshot) -> str:
        """Run one turn to its end. Return the id of the next turn if that has already begun, else ""."""
        try:
            self._restart(turn)
            if not turn.cut:
                metrics.turns_started.inc()
            stopping = turn.cancelling or self._stop_turn == turn.state.turn_id
            if turn.compacting:
                await self._run_compaction(stopping=stopping, exhausted=turn.exhausted)
                return await self._next_turn_id()
            self.starters[turn.state.turn_id] = turn.state.started_by
            if turn.exhausted and not stopping and not turn.answered:
                self._apply(ProcessLost(resume=False, error=AgentError(EXHAUSTED)))
            elif turn.cut and not stopping:
                self._apply(ProcessLost(resume=settings.RECOVERY == "resume"))
            elif turn.answered:
                await self._end(TurnFinished("done"))
            if not self._state.closed and not stopping:
                await self._run_stoppable(self._consume_events())
            if not self._state.closed:
                await self._end(Stopped())
            return await self._next_turn_id()
        except (Fenced, HandedOver):
            raise
        except Exception as error:
            if isinstance(error.__cause__, Rewound):
                logger.warning(
                    "Session %s lost its last changes in a database failover; resuming its turn", self.claim.session_id
                )
                return await self._run_turn(await self._load_turn())
            logger.exception("Could not record the turn of session %s; closing the turn", self.claim.session_id)
            turn = await self._load_turn()
            self._restart(turn)
            if turn.compacting:
                self._end_compaction(failure_report(AgentError(BROKEN)))
            else:
                self._apply(TurnFailed(AgentError(BROKEN)))
            return await self._next_turn_id()

    async def _next_turn_id(self) -> str:
        recorded = await self._jobs.wait()
        if recorded and recorded.caller:
            await self._threads.run_with_retry(report_to_caller, recorded.caller)
        return recorded.next_turn if recorded else ""

    async def _load_turn(self) -> TurnSnapshot:
        """Read the open turn. Raise Fenced if the claim is lost."""
        self._first_input = None  # it belongs to an earlier turn
        turn = await self._threads.run_with_retry(read_open_turn, self.claim, time.monotonic())
        if turn is None:
            raise Fenced(self.claim.session_id)
        return turn

    def _restart(self, turn: TurnSnapshot) -> None:
        """Reset the state of the turn to what the rows contain."""
        self._drop_streams()
        self._state, self._jobs = turn.state, ClaimJobs(self._writer, self.claim, turn.written)
        add_log_ids(turn=turn.state.turn_id)
        self._trace = begin_trace(self.claim.session_id, turn.state)

    def _drop_streams(self) -> None:
        for stream in self._streams.values():
            self._delta_publisher.drop(stream)
        self._streams.clear()

    async def _run_compaction(self, *, stopping: bool, exhausted: bool) -> None:
        """Summarize earlier messages. Nothing is written unless the summary is complete."""
        if exhausted:
            self._end_compaction(failure_report(AgentError(EXHAUSTED)))
        elif not stopping:
            await self._run_stoppable(self._compact())
        if not self._state.closed:
            self._end_compaction(ReportCompaction("stopped"))

    async def _compact(self) -> None:
        self._end_compaction(await compact(self._threads, self.claim.session_id))

    def _end_compaction(self, change: InsertSummary | ReportCompaction) -> None:
        self._state = replace(self._state, closed=True)
        self._submit([change, ReportStatus("idle"), CloseTurn()])

    async def _run_stoppable(self, work: Coroutine[None, None, None]) -> None:
        """Run the agent in a separate task, so that Stop can cancel it at any await."""
        self._agent_task = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait([self._agent_task])
        finally:
            task, self._agent_task = self._agent_task, None
            if not task.done():  # the process is shutting down: the turn stays open for the next claim
                task.cancel()
                await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    async def _consume_events(self) -> None:
        try:
            agent, history = await self._read_input()
            turn = run(agent, history, self._has_pending, refresh=self._read_input, wait_for_answer=self._await_answer)
            async with aclosing(turn) as events:
                async for event in events:
                    if isinstance(event, TurnFinished | TurnFailed):
                        await self._end(event)
                        continue
                    self._apply(event)
                    if isinstance(event, ToolStarted):
                        await self._jobs.wait()  # the rows show each tool that may have run (RUN-15)
        except AgentError as error:
            await self._end(TurnFailed(error))
        except (Fenced, HandedOver, NotWritten):
            raise
        except Exception:
            logger.exception("Turn %s of session %s failed", self._state.turn_id, self.claim.session_id)
            await self._end(TurnFailed(AgentError(BROKEN)))

    async def _await_answer(self, call_id: str, number: int) -> Json | None:
        """Wait until a running call is answered; return None if the session is handed over to another process."""
        while not self._is_handing_over:
            news = self._answers
            tool = find_tool(self._state, call_id)
            answer = await self._threads.run_with_retry(answer_to, tool.id, number) if tool is not None else None
            if answer is not None:
                return answer
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_POLL):
                    await news.wait()
        return None

    async def _end(self, event: TurnFinished | TurnFailed | Stopped) -> None:
        """Close the turn. If its changes could not be written, `_run_turn` closes it instead.

        The end of a complete answer does not wait for the answer's last rows, so that both are written in one
        transaction. Jobs are numbered, so if the rows cannot be written, the end is not written either.
        """
        if not isinstance(event, TurnFinished):
            await self._jobs.wait()
        self._apply(event)

    async def _read_input(self) -> tuple[Agent, Sequence[Message]]:
        """Read the agent and the context of the next response."""
        await self._jobs.wait()
        if self._is_handing_over and self._stop_turn != self._state.turn_id:
            raise HandedOver
        try:
            agent_input = await self._build_input()
        except ModelNotFound:
            await registry().models()  # the provider's list may have arrived in the meantime
            agent_input = await self._build_input()
        if await registry().servers.settle(agent_input.tool_names, agent_input.servers):
            agent_input = await self._build_input()
        self._next_request = agent_input.request
        return agent_input.agent, agent_input.history

    async def _build_input(self) -> AgentInput:
        # Long contexts take seconds. The semaphore leaves threads for claims.
        if (agent_input := self._first_input) is not None:
            self._first_input = None
            return agent_input
        async with self._input_reads:
            try:
                return await self._threads.run_with_retry(build_agent_input, self.claim.session_id)
            except FilesUnavailable as error:
                raise AgentError(NO_FILES) from error

    async def _has_pending(self) -> bool:
        await self._jobs.wait()
        return await self._threads.run_with_retry(has_queued, self.claim.session_id)

    def _report_question(self, recorded: asyncio.Future[Recorded]) -> None:
        """Show in the calling session, if there is one, whether a call in this session waits for a user (RUN-18)."""
        if not recorded.cancelled() and recorded.exception() is None and (caller := recorded.result().caller):
            task = asyncio.get_running_loop().create_task(self._threads.run_with_retry(report_to_caller, caller))
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)

    def _apply(self, event: TurnEvent) -> None:
        """Reduce an event and submit its changes, without waiting for the write."""
        if isinstance(event, COUNTED):
            count_event(event, self._state)
        if self._trace is not None:
            self._trace.apply(event, self._state)
        now = Now(timezone.now(), time.monotonic(), ids.message_id, ids.response_id)
        self._state, changes = reduce(self._state, event, now)
        if isinstance(event, ResponseStarted) and self._next_request is not None:
            self._request = replace(self._next_request, response_id=self._state.response_id)
        stream = self._streams.get(changes[0].id) if changes and isinstance(changes[0], AppendText) else None
        if stream is not None and isinstance(changes[0], AppendText):
            text = changes[0].text
            self._writer.append(self.claim, stream.id, stream.length, text)
            stream.parts.append(text)
            stream.length += len(text)
            self._delta_publisher.add(stream)
        elif changes:
            self._submit(changes)

    def _submit(self, changes: Sequence[Change]) -> None:
        changes = self._with_request(changes)
        recorded = self._jobs.submit(changes, self._take_ended_streams(changes))
        if any(isinstance(change, AskPeople | WithdrawQuestion) for change in changes):
            recorded.add_done_callback(self._report_question)
        for change in changes:
            if isinstance(change, InsertMessage) and change.fields.get("status") == "streaming":
                length = len(change.fields["text"])
                kind = change.fields["type"]
                stream = OutgoingText(self.claim.session_id, change.id, kind, length, length)
                self._streams[change.id] = stream
                recorded.add_done_callback(stream.announce)

    def _with_request(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Add the record of the request to the first row of its response. A response without rows leaves no record."""
        request = self._request
        if request is None or not any(
            isinstance(change, InsertMessage) and change.fields.get("response_id") == request.response_id
            for change in changes
        ):
            return changes
        self._request = None
        return [request, *changes]

    def _take_ended_streams(self, changes: Sequence[Change]) -> list[TextAppended]:
        """Return the remaining text of the streams that these changes end. It is published before the changes."""
        last = []
        for change in changes:
            if isinstance(change, UpdateMessage) and change.compact and change.id in self._streams:
                stream = self._streams.pop(change.id)
                self._delta_publisher.drop(stream)
                last += stream.take()
        return last
