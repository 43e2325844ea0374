"""The bridge: runs the agent for one claimed session and turns its events into rows and pushes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from django.conf import settings
from django.utils import timezone

from agents.errors import AgentError, ModelNotFound
from agents.events import ResponseStarted, ToolStarted, TurnFailed, TurnFinished
from agents.i18n import gettext as _
from agents.loop import Agent, run
from agents.messages import Message
from chat import ids
from chat.agents_setup import registry
from chat.bus.events import TextAppended
from chat.db import Threads
from chat.runner.agent_input import Briefing, build_agent_input, has_queued
from chat.runner.delta_publisher import DeltaPublisher, OutgoingText
from chat.runner.resume import TurnSnapshot, open_claim, open_turn
from chat.runner.writer import Fenced, Rewound, Writer
from chat.runs.changes import AppendText, Change, InsertMessage, RecordRequest, UpdateMessage
from chat.runs.lease import Claim
from chat.runs.reducer import reduce
from chat.runs.turn_state import Now, ProcessLost, Stopped, TurnEvent, TurnState
from chat.services.runs.recording import Job, Recorded

logger = logging.getLogger(__name__)

BROKEN = _("Something went wrong. The error was logged. Retry, and contact your administrator if it happens again.")
EXHAUSTED = _(
    "The server stopped several times during this answer, so Parley didn’t try again. "
    "Retry, and contact your administrator if it happens again."
)


class Unwritten(Exception):  # the cause is the error
    """Something of the turn could not be written; the cause says why."""


class Bridge:
    """One claim's work: turn after turn until nothing is queued. Use `run` as a task; `stop` from the same loop."""

    def __init__(
        self, claim: Claim, *, writer: Writer, pump: DeltaPublisher, threads: Threads, briefs: asyncio.Semaphore
    ) -> None:
        self.claim = claim
        self._writer = writer
        self._pump = pump
        self._threads = threads
        self._briefs = briefs
        self._written = 0
        self._state = TurnState(turn_id="", began=0.0, closed=True)
        self._stream: OutgoingText | None = None
        self._briefed: RecordRequest | None = None
        self._request: RecordRequest | None = None
        self._last: asyncio.Future[Recorded] | None = None
        self._unwritten: BaseException | None = None
        self._work: asyncio.Task[None] | None = None
        self._stop_turn = ""

    async def run(self) -> None:
        """Work until the session is released or lost to another worker."""
        try:
            opening = await self._threads.run_with_retry(open_claim, self.claim, time.monotonic())
            while opening is not None:
                opening = await self._after(await self._turn(opening))
        except Fenced:
            logger.warning("Session %s has been taken over by another worker", self.claim.session_id)
        finally:
            if self._stream is not None:  # another worker may publish now
                self._pump.drop(self._stream)

    def stop(self, turn_id: str) -> None:
        """Stop a turn and commit what exists (RUN-08). Harmless if it is over; remembered if it has not begun."""
        self._stop_turn = turn_id
        if self._work is not None and self._state.turn_id == turn_id:
            self._work.cancel()

    async def _after(self, next_turn: str) -> TurnSnapshot | None:
        return await self._reopened() if next_turn else None

    async def _turn(self, opening: TurnSnapshot) -> str:
        """Run one turn to its end; returns the id of the next one when that has begun already."""
        try:
            return await self._play(opening)
        except Fenced:
            raise
        except Exception as error:
            if isinstance(error.__cause__, Rewound):
                logger.warning("Session %s has lost its last rows in a failover; going on", self.claim.session_id)
                return await self._turn(await self._reopened())
            logger.exception("Turn of session %s could not be recorded; closing it", self.claim.session_id)
            self._begin(await self._reopened())
            self._apply(TurnFailed(AgentError(BROKEN)))
            return await self._closed()

    async def _reopened(self) -> TurnSnapshot:
        """Raises Fenced."""
        opening = await self._threads.run_with_retry(open_turn, self.claim, time.monotonic())
        if opening is None:
            raise Fenced(self.claim.session_id)
        return opening

    def _begin(self, opening: TurnSnapshot) -> None:
        """Start from what the rows say."""
        if self._stream is not None:
            self._pump.drop(self._stream)
        self._state, self._written = opening.state, opening.written
        self._stream, self._unwritten, self._last = None, None, None

    async def _play(self, opening: TurnSnapshot) -> str:
        self._begin(opening)
        stopping = opening.cancelling or self._stop_turn == opening.state.turn_id
        if opening.exhausted and not stopping and not opening.answered:
            self._apply(ProcessLost(resume=False, error=AgentError(EXHAUSTED)))
        elif opening.cut and not stopping:
            self._apply(ProcessLost(resume=settings.RECOVERY == "resume"))
        elif opening.answered:
            await self._end(TurnFinished("done"))
        if not self._state.closed and not stopping:
            await self._drive()
        if not self._state.closed:
            await self._end(Stopped())
        return await self._closed()

    async def _closed(self) -> str:
        recorded = await self._committed()
        return recorded.next_turn if recorded else ""

    async def _drive(self) -> None:
        """Run the agent in a task of its own, so that Stop can cut it at any await."""
        self._work = asyncio.get_running_loop().create_task(self._consume())
        try:
            await asyncio.wait([self._work])
        finally:
            work, self._work = self._work, None
            if not work.done():  # the process is shutting down: the turn stays open for the next claim
                work.cancel()
                await asyncio.wait([work])
        if not work.cancelled():
            work.result()

    async def _consume(self) -> None:
        try:
            agent, history = await self._brief()
            async with aclosing(run(agent, history, self._check_pending, refresh=self._brief)) as events:
                async for event in events:
                    if isinstance(event, TurnFinished | TurnFailed):
                        await self._end(event)
                        continue
                    self._apply(event)
                    if isinstance(event, ToolStarted):
                        await self._committed()  # a tool that ran must be known to have been started (RUN-15)
        except AgentError as error:
            await self._end(TurnFailed(error))
        except (Fenced, Unwritten):
            raise
        except Exception:
            logger.exception("Turn %s of session %s failed", self._state.turn_id, self.claim.session_id)
            await self._end(TurnFailed(AgentError(BROKEN)))

    async def _end(self, event: TurnFinished | TurnFailed | Stopped) -> None:
        """Close the turn, but not over words that could not be written: those end it in another way."""
        await self._committed()
        self._apply(event)

    async def _brief(self) -> tuple[Agent, Sequence[Message]]:
        await self._committed()
        try:
            briefing = await self._read_brief()
        except ModelNotFound:
            await registry().models()  # its server may have told by now
            briefing = await self._read_brief()
        self._briefed = briefing.request
        return briefing.agent, briefing.history

    async def _read_brief(self) -> Briefing:
        """Read the context. Long ones take seconds: they wait for each other, so that claims do not wait for them."""
        async with self._briefs:
            return await self._threads.run_with_retry(build_agent_input, self.claim.session_id)

    async def _check_pending(self) -> bool:
        await self._committed()
        return await self._threads.run_with_retry(has_queued, self.claim.session_id)

    async def _committed(self) -> Recorded | None:
        """Wait until all that was applied is in the rows; returns what became of the last of it.

        Raises Fenced, or Unwritten from its cause.
        """
        if self._last is None:
            return None
        await asyncio.wait([self._last])
        error = self._unwritten or self._last.exception()
        if isinstance(error, Fenced):
            raise error
        if error is not None:
            raise Unwritten from error
        return self._last.result()

    def _wrote(self, recorded: asyncio.Future[Recorded]) -> None:
        if not recorded.cancelled() and self._unwritten is None:
            self._unwritten = recorded.exception()

    def _apply(self, event: TurnEvent) -> None:
        """Reduce an event and send its changes on their way; never waits."""
        now = Now(timezone.now(), time.monotonic(), ids.message_id, ids.response_id)
        self._state, changes = reduce(self._state, event, now)
        if isinstance(event, ResponseStarted) and self._briefed is not None:
            self._request = replace(self._briefed, response_id=self._state.response_id)
        if len(changes) == 1 and isinstance(changes[0], AppendText) and self._stream is not None:
            self._grow(self._stream, changes[0].text)
        elif changes:
            self._submit(changes)

    def _grow(self, stream: OutgoingText, text: str) -> None:
        self._writer.append(self.claim, stream.id, stream.length, text)
        stream.parts.append(text)
        stream.length += len(text)
        self._pump.add(stream)

    def _submit(self, changes: Sequence[Change]) -> None:
        changes = self._with_request(changes)
        before = self._ended_stream(changes)
        self._written += 1
        self._last = self._writer.submit(Job(self.claim, self._written, changes, before))
        self._last.add_done_callback(self._wrote)
        for change in changes:
            if isinstance(change, InsertMessage) and change.fields.get("status") == "streaming":
                length = len(change.fields["text"])
                reasoning = change.fields["type"] == "reasoning"
                self._stream = OutgoingText(self.claim.session_id, change.id, reasoning, length, length)
                self._last.add_done_callback(self._stream.announce)

    def _with_request(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Store what a response was requested with, along with its first row. A response without rows is not stored."""
        request = self._request
        if request is None or not any(_is_row_of(change, request.response_id) for change in changes):
            return changes
        self._request = None
        return [request, *changes]

    def _ended_stream(self, changes: Sequence[Change]) -> list[TextAppended]:
        """Take the last text of the stream that these changes end. It is published before the end."""
        stream = self._stream
        if stream is None or not any(
            isinstance(change, UpdateMessage) and change.compact and change.id == stream.id for change in changes
        ):
            return []
        self._pump.drop(stream)
        self._stream = None
        return stream.take()


def _is_row_of(change: Change, response_id: str) -> bool:
    return isinstance(change, InsertMessage) and change.fields.get("response_id") == response_id
