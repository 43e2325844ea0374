"""What happened while an agent ran: a closed union of frozen values, past tense, without ids or times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agents.approval import PLAIN, Requirement
from agents.errors import AgentError
from agents.messages import Json, Text, Thinking, ToolCall, ToolResult
from agents.questions import Kind

StopReason = Literal["end", "tool_use", "max_tokens", "refusal", "pause"]
FinishReason = Literal["done", "pending", "limit", "waiting"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response; None where the server does not say.

    `input_tokens` counts cached ones too, `output_tokens` those of the reasoning.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """A request to the model is about to leave; `first_token_latency_ms` counts from here."""

    model: str
    provider: str
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the open text part (the first one opens it). Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning of the open thinking part (the first one opens it). Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the JSON text of a call's arguments, while the model writes them; the first one may be empty.

    `key` tells the open calls of one response apart, which can grow in turns.
    """

    key: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PartDone:
    """A part is complete and whole. Text and Thinking had their deltas before.

    A ToolCall can have had some, with the same `key`; it counts as a call from now on.
    """

    part: Text | Thinking | ToolCall
    key: str = ""


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """The model's response is complete. Parts that were open have had their PartDone."""

    stop_reason: StopReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run: it starts when the consumer takes the event after this one."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The end of what a running tool has reported so far; each such event replaces the one before."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolAsked:
    """A running tool asks people something, and waits: the payload of an `agents.elicitation.Elicitation`.

    A tool asks one question at a time: the next ToolAsked of a call comes after its ToolAnswered.
    """

    call_id: str
    question: Json


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A running tool has the answer to its question. `withdrawn` says why it stopped waiting without one; else ""."""

    call_id: str
    answer: Json
    withdrawn: str = ""


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """A tool has changed files of the workspace."""


@dataclass(frozen=True, slots=True)
class ToolWaiting:
    """A call waits for people: they answer its question, or approve it as `needs` says.

    `origin` says why a call that can send data out needs an approval: where text in the conversation comes from.
    """

    call: ToolCall
    kind: Kind
    needs: Requirement = PLAIN
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ToolDelegated:
    """A call waits for another agent, which works in a session of its own."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool has answered (or failed: `is_error`)."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The provider failed for now, before anything was shown; it is asked again after `delay` seconds (RUN-10)."""

    attempt: int
    delay: float
    error: AgentError


@dataclass(frozen=True, slots=True)
class RoundLimitReached:
    """The turn has used its tool rounds (RUN-09). `note` tells the model to sum up without tools."""

    rounds: int
    note: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn ended by itself, or for now: always last.

    `done`; `pending`: there is new input (RUN-06); `limit` (RUN-09); `waiting`: it goes on when people have answered.
    """

    reason: FinishReason


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn could not go on. Always last."""

    error: AgentError


ProviderEvent = TextDelta | ReasoningDelta | ToolCallDelta | PartDone | ResponseDone
AgentEvent = (
    ResponseStarted
    | ProviderEvent
    | ToolStarted
    | ToolOutput
    | ToolAsked
    | ToolAnswered
    | FilesChanged
    | ToolWaiting
    | ToolDelegated
    | ToolReturned
    | RetryScheduled
    | RoundLimitReached
    | TurnFinished
    | TurnFailed
)
