"""A provider that says what its script says: deterministic, without a network, for tests and the demo agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from agents.errors import ProviderError
from agents.events import (
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    ResponseDone,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from agents.messages import Text, Thinking, ToolCall
from agents.providers.base import Request


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Sign:
    """End the open reasoning with this opaque data; without open reasoning it is a hidden one."""

    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stop:
    """End the response for this reason instead of "tool_use" after tool calls and "end" otherwise."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class HangUp:
    """End the stream without ResponseDone, as a broken server does."""


class Gate:
    """Hold the reply until a test opens it. Single use, within one event loop."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def reached(self) -> None:
        """Return once a reply waits at the gate."""
        await self._reached.wait()

    async def _pass(self) -> None:
        self._reached.set()
        await self._opened.wait()


# A string is a text delta; an exception is raised; a ToolCall is complete, after its deltas, whose key is its id; Usage
# goes into ResponseDone.
Step = (
    str
    | TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | Sign
    | ToolCall
    | Usage
    | Pause
    | Gate
    | Stop
    | HangUp
    | Exception
)
Reply = Iterable[Step]
Script = Iterable[Reply] | Callable[[Request], Reply]


class ScriptedProvider:
    """Answer the nth request by the nth reply of the script, or each by what a function makes of it.

    `requests` are those received, `streaming` counts the streams that are open now.
    """

    def __init__(self, script: Script, name: str = "scripted", models: Iterable[str] = ("scripted",)) -> None:
        self.name = name
        self.requests: list[Request] = []
        self.streaming = 0
        self.closed = False
        self._models = list(models)
        self._script = script if callable(script) else iter(script)

    def prepare(self) -> None:
        """Do nothing: there is nothing to load."""

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        self.streaming += 1
        try:
            async for event in play(self._reply(request), self.name):
                yield event
        finally:
            self.streaming -= 1

    async def list_models(self) -> list[str]:
        return self._models

    async def close(self) -> None:
        self.closed = True

    def _reply(self, request: Request) -> Reply:
        if callable(self._script):
            return self._script(request)
        try:
            return next(self._script)
        except StopIteration:
            raise ProviderError(f"The script has no reply for request {len(self.requests)}.") from None


async def play(reply: Reply, provider: str) -> AsyncGenerator[ProviderEvent, None]:
    """Perform a reply's steps as the events of a response."""
    stage = _Stage(provider)
    for step in reply:
        match step:
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Gate():
                await step._pass()
            case HangUp():
                return
            case Exception():
                raise step
            case _:
                for event in stage.perform(step):
                    yield event
    for event in stage.finish():
        yield event


@dataclass
class _Stage:
    """The open part of the response, and what its end will say."""

    provider: str
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    begun: set[str] = field(default_factory=set)
    reason: StopReason = "end"

    def perform(
        self, step: str | TextDelta | ReasoningDelta | ToolCallDelta | Sign | ToolCall | Usage | Stop
    ) -> list[ProviderEvent]:
        match step:
            case str() | TextDelta():
                delta = TextDelta(step) if isinstance(step, str) else step
                done = self._close_reasoning()
                self.text.append(delta.text)
                return [*done, delta]
            case ReasoningDelta(text):
                done = self._close_text()
                self.reasoning.append(text)
                return [*done, step]
            case Sign(data):
                return [*self._close_text(), *self._close_reasoning(data)]
            case ToolCall():
                self.reason = "tool_use"
                return [*self._close(), PartDone(step, step.id if step.id in self.begun else "")]
            case ToolCallDelta(key):
                self.begun.add(key)
                return [*self._close(), step]
            case Usage():
                self.usage = step
            case Stop(reason):
                self.reason = reason
        return []

    def finish(self) -> list[ProviderEvent]:
        return [*self._close(), ResponseDone(self.reason, self.usage)]

    def _close(self) -> list[ProviderEvent]:
        return [*self._close_text(), *self._close_reasoning()]

    def _close_text(self) -> list[ProviderEvent]:
        text, self.text = "".join(self.text), []
        return [PartDone(Text(text))] if text else []

    def _close_reasoning(self, data: Mapping[str, str] | None = None) -> list[ProviderEvent]:
        text, self.reasoning = "".join(self.reasoning), []
        return [PartDone(Thinking(text, self.provider, data or {}))] if text or data else []
