"""Row changes of a run, as values in the order in which they are applied."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.messages import Json
from chat.bus.events import MessageEventName
from chat.snapshots import AgentStatus, CompactionOutcome


@dataclass(frozen=True, slots=True)
class InsertMessage:
    """A new row at the end of the session; `fields` are columns of ChatMessage."""

    id: str
    name: MessageEventName
    fields: Json
    details: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """New values for a row; `compact` folds its delta rows into its text first."""

    id: str
    name: MessageEventName
    fields: Json
    details: Json = field(default_factory=dict)
    compact: bool = False


@dataclass(frozen=True, slots=True)
class AppendText:
    """More text for a streaming row."""

    id: str
    text: str
    reasoning: bool


@dataclass(frozen=True, slots=True)
class RecordUsage:
    """The tokens of a response, for the session's totals (RUN-04)."""

    provider: str
    model: str
    context_used: int | None
    context_window: int | None
    tokens: int


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """The record of a response's request: columns of ModelRequest. `rows` are message ids with revisions."""

    revision: int
    agent: str
    provider: str
    model: str
    tools: tuple[str, ...]
    shared: int
    rows: tuple[tuple[str, int], ...]
    response_id: str = ""


@dataclass(frozen=True, slots=True)
class InsertSummary:
    """A summary that stands for the rows from `first` to `after`, which a model has read at `read_revision`.

    `messages` counts them, `context_used` estimates the context after it, and `tokens` were used to make it.
    """

    after: str
    first: str
    read_revision: int
    text: str
    messages: int
    provider: str
    model: str
    context_used: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ReportCompaction:
    """A compaction_ended event of a compaction that made no summary."""

    outcome: CompactionOutcome
    message: str = ""
    words: Json | None = None


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """An agent_status event, published in order with the changes around it."""

    status: AgentStatus
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class ReportCancelled:
    """An agent_cancelled event."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class CloseTurn:
    """End the turn: begin the next one with the queued messages, or release the session.

    `for_queued`: the turn ends only to deliver queued messages (RUN-06). If they were withdrawn since, nothing of the
    job is written and the turn continues.
    """

    for_queued: bool = False


@dataclass(frozen=True, slots=True)
class PauseTurn:
    """Release the session until people have answered (UI-12), unless the turn can go on already."""


Change = (
    InsertMessage
    | UpdateMessage
    | AppendText
    | RecordUsage
    | RecordRequest
    | InsertSummary
    | ReportCompaction
    | ReportStatus
    | ReportCancelled
    | CloseTurn
    | PauseTurn
)
