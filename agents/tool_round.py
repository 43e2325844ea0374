"""The tool round: it runs the calls of a response, in parallel where that is safe, and ends their tasks (RUN-11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from agents.elicitation import CANCELLED, Elicitation
from agents.events import FilesChanged, ToolAnswered, ToolAsked, ToolOutput, ToolReturned, ToolStarted
from agents.messages import Json, ToolCall, ToolResult
from agents.tools import NO_CONTEXT, Tool, ToolContext, call_tool

logger = logging.getLogger(__name__)

# The seconds that a cancelled tool has to clean up before it is abandoned, because Stop takes at most 200 ms (RUN-07).
CLEAN_UP_SECONDS = 0.1
# The seconds between two events with output of a running tool, and the most characters of its end that they have.
OUTPUT_INTERVAL = 0.5
MAX_OUTPUT_LENGTH = 8_000
# The most questions that a call may ask users. Further questions are cancelled.
MAX_QUESTIONS = 10
# The reasons why a call no longer waits for an answer.
EXPIRED, WITHDRAWN, LEAVING = "expired", "withdrawn", "leaving"

Reported = ToolOutput | ToolAsked | ToolAnswered | FilesChanged
Queue = asyncio.Queue[asyncio.Task[ToolResult] | Reported]
# Waits until users have answered a question, given by the call's id and the question's number, which counts from 1.
# Returns None if this process has to stop waiting.
WaitForAnswer = Callable[[str, int], Awaitable[Json | None]]


async def run_tools(
    tools: Mapping[str, Tool],
    calls: Sequence[ToolCall],
    context: ToolContext = NO_CONTEXT,
    wait_for_answer: WaitForAnswer | None = None,
) -> AsyncGenerator[ToolStarted | Reported | ToolReturned, None]:
    """Run the calls. Adjacent calls that may run in parallel do so; all others wait for the calls before them.

    Yields the ToolStarted of all calls that start together before any of them runs. Then yields ToolOutput, ToolAsked,
    ToolAnswered and FilesChanged as the tools report them, and ToolReturned as each call ends. Without
    `wait_for_answer`, no user is present, and calls cannot ask. Closing the generator cancels running calls.
    """
    for batch in _batches(tools, calls):
        for call in batch:
            yield ToolStarted(call)
        queue: Queue = asyncio.Queue()
        tasks = [_start(tools, call, context, queue, wait_for_answer) for call in batch]
        running = len(tasks)
        try:
            while running:
                event = await queue.get()
                if isinstance(event, asyncio.Task):
                    running -= 1
                    yield ToolReturned(event.result())
                else:
                    yield event
        finally:
            await _cancel(tasks)


def _start(
    tools: Mapping[str, Tool], call: ToolCall, context: ToolContext, queue: Queue, wait: WaitForAnswer | None
) -> asyncio.Task[ToolResult]:
    """Run a call in a task. The task puts itself into the queue when it is done, after its output."""
    chosen = tools.get(call.name)
    output = _Output(call.id, queue, origin=call.name if chosen is not None and chosen.foreign else "")
    files_changed = partial(queue.put_nowait, FilesChanged())
    ask = _Questions(call.id, queue, wait).ask if wait is not None else None
    work = call_tool(tools, call, replace(context, report=output.add, files_changed=files_changed, ask=ask))
    task = asyncio.create_task(work, name=f"tool {call.name}")
    task.add_done_callback(output.close)
    task.add_done_callback(queue.put_nowait)
    return task


class _Output:
    """The end of a running tool's output. It sends at most one event per OUTPUT_INTERVAL, however much it gets."""

    def __init__(self, call_id: str, queue: Queue, *, origin: str) -> None:
        self._call_id = call_id
        self._queue = queue
        self._origin = origin
        self._text = ""
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, text: str) -> None:
        self._text = (self._text + text[-MAX_OUTPUT_LENGTH:])[-MAX_OUTPUT_LENGTH:]
        if self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_at(self._not_before, self._send)

    def close(self, task: asyncio.Task[ToolResult]) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _send(self) -> None:
        self._timer = None
        self._not_before = asyncio.get_running_loop().time() + OUTPUT_INTERVAL
        self._queue.put_nowait(ToolOutput(self._call_id, self._text, self._origin))


class _Questions:
    """The questions of a running call to users, one after the other."""

    def __init__(self, call_id: str, queue: Queue, wait: WaitForAnswer) -> None:
        self._call_id = call_id
        self._queue = queue
        self._wait = wait
        self._count = 0
        self._asking = asyncio.Lock()

    async def ask(self, question: Elicitation, seconds: float) -> Json:
        """Ask users, and return their answer for the server.

        Return CANCELLED after `seconds`, if this process has to stop, or if the call has asked too often.
        """
        async with self._asking:
            if self._count >= MAX_QUESTIONS:
                return CANCELLED
            self._count += 1
            self._queue.put_nowait(ToolAsked(self._call_id, question.model_dump(exclude_defaults=True)))
            try:
                async with asyncio.timeout(seconds):
                    answer = await self._wait(self._call_id, self._count)
            except TimeoutError:
                return self._withdraw(EXPIRED)
            except asyncio.CancelledError:
                self._withdraw(WITHDRAWN)
                raise
            if answer is None:
                return self._withdraw(LEAVING)
            self._queue.put_nowait(ToolAnswered(self._call_id, answer))
            return question.for_server(answer)

    def _withdraw(self, why: str) -> Json:
        self._queue.put_nowait(ToolAnswered(self._call_id, CANCELLED, withdrawn=why))
        return CANCELLED


def _batches(tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    batches: list[list[ToolCall]] = []
    joinable = False
    for call in calls:
        parallel = call.name not in tools or tools[call.name].parallel
        if parallel and joinable:
            batches[-1].append(call)
        else:
            batches.append([call])
        joinable = parallel
    return batches


async def _cancel(tasks: Collection[asyncio.Task[ToolResult]]) -> None:
    running = [task for task in tasks if task.cancel()]
    if not running:
        return
    _, stubborn = await asyncio.wait(running, timeout=CLEAN_UP_SECONDS)
    for task in stubborn:
        logger.warning("A cancelled tool did not end and was abandoned: %s", task.get_name())
