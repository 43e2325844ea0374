"""A provider that plays a script, for tests and the demo agent. It is deterministic and needs no network."""

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
from agents.providers.base import ListedModel, Request


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Sign:
    """End the open reasoning with this opaque data. Without open reasoning, add a hidden one."""

    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stop:
    """End the response for this reason. Without this step, it is "tool_use" after tool calls, else "end"."""

    reason: StopReason
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class HangUp:
    """End the stream without ResponseDone, as a broken server does."""


class Gate:
    """A step at which the reply waits until a test opens the gate. Use it once, on one event loop."""

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


# A string is a text delta. An exception is raised. A ToolCall is complete; its deltas come before it, with its id as
# their key. Usage is sent with ResponseDone.
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
    """A provider that answers the nth request with the nth reply of its script, or all requests by a function.

    `requests` are the requests received, and `streaming` is the number of streams that are open now.
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

    async def list_models(self) -> dict[str, ListedModel]:
        return dict.fromkeys(self._models, ListedModel())

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
    """Yield the events of a response that a reply's steps describe."""
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
    """The open part of the response, and the values for its end."""

    provider: str
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    begun: set[str] = field(default_factory=set)
    reason: StopReason = "end"
    explanation: str = ""

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
            case Stop(reason, explanation):
                self.reason, self.explanation = reason, explanation
        return []

    def finish(self) -> list[ProviderEvent]:
        return [*self._close(), ResponseDone(self.reason, self.usage, self.explanation)]

    def _close(self) -> list[ProviderEvent]:
        return [*self._close_text(), *self._close_reasoning()]

    def _close_text(self) -> list[ProviderEvent]:
        text, self.text = "".join(self.text), []
        return [PartDone(Text(text))] if text else []

    def _close_reasoning(self, data: Mapping[str, str] | None = None) -> list[ProviderEvent]:
        text, self.reasoning = "".join(self.reasoning), []
        return [PartDone(Thinking(text, self.provider, data or {}))] if text or data else []
