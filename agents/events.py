"""The events of a running agent: a closed union of frozen values, without ids of rows and without times."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Literal

from agents.approval import PLAIN, Requirement
from agents.errors import AgentError
from agents.messages import Json, Text, Thinking, ToolCall, ToolResult
from agents.questions import Kind

StopReason = Literal["end", "tool_use", "max_tokens", "context", "refusal", "pause"]
FinishReason = Literal["done", "pending", "limit", "waiting"]
# No model reads or writes more in one response. Greater counts are wrong, and would use up the quota of a day.
MAX_TOKENS = 20_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one response; a number is None if the server does not report it.

    `input_tokens` includes the cached tokens, and `output_tokens` includes the reasoning.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def plausible(self) -> Usage:
        """Return the usage with None in place of counts that are not plausible integers, which some servers send."""
        return Usage(*(count if type(count) is int and 0 <= count <= MAX_TOKENS else None for count in astuple(self)))


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """A request to the model is about to be sent; `first_token_latency_ms` counts from here."""

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

    `key` identifies the call within its response, because deltas of several open calls can alternate.
    """

    key: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PartDone:
    """A part is complete, and contains the whole of it. The deltas of Text and Thinking came before.

    A ToolCall may have had deltas with the same `key`. Only this event makes it a call.
    """

    part: Text | Thinking | ToolCall
    key: str = ""


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """The model's response is complete. Each open part has had its PartDone before.

    `explanation` is what the provider says about a refusal, or "".
    """

    stop_reason: StopReason
    usage: Usage
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run. It starts when the consumer requests the next event."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The last part of a running tool's output so far. Each such event replaces the previous one.

    `origin` is the place from which it comes, or "" if it is Parley's own text.
    """

    call_id: str
    text: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ToolAsked:
    """A running tool asks users a question and waits. `question` is the payload of an `agents.elicitation.Elicitation`.

    A tool asks one question at a time, so the next ToolAsked of a call comes after its ToolAnswered.
    """

    call_id: str
    question: Json


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A running tool no longer waits for an answer to its question.

    If users have not answered, `withdrawn` is the reason why it stopped waiting; otherwise it is "".
    """

    call_id: str
    answer: Json
    withdrawn: str = ""


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """A tool has changed session files."""


@dataclass(frozen=True, slots=True)
class ToolWaiting:
    """A call waits until users answer its question, or approve it as `needs` requires.

    If the call can send data out, `origin` names the places from which text in the conversation comes. That text is
    the reason why the call needs an approval.
    """

    call: ToolCall
    kind: Kind
    needs: Requirement = PLAIN
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ToolDelegated:
    """A call waits for another agent, which works in a subsession.

    `has_new_address`: the conversation has text from elsewhere, and the task has an address that is not in it.
    """

    call: ToolCall
    has_new_address: bool = False


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool has returned its result, or has failed (`is_error` of the result)."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The provider failed before anything was shown. The request is repeated after `delay` seconds (RUN-10)."""

    attempt: int
    delay: float
    error: AgentError


@dataclass(frozen=True, slots=True)
class RoundLimitReached:
    """The turn has used all of its tool rounds (RUN-09). `note` asks the model for a summary without tools."""

    rounds: int
    note: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn ended without an error, or pauses. This is always the last event.

    Reasons: `done`; `pending`: new input has arrived (RUN-06); `limit`: the tool rounds are used up (RUN-09);
    `waiting`: the turn continues when users have answered or other agents are done.
    """

    reason: FinishReason


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn failed. This is always the last event."""

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
