"""What a run wants written: row changes as values, in the order in which they are to be applied."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.messages import Json
from chat.bus.events import MessageEventName
from chat.snapshots import AgentStatus


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
    """A response's tokens for the session's own figures (RUN-04)."""

    provider: str
    model: str
    context_used: int | None
    context_window: int | None
    tokens: int


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """What a response is asked with: columns of ModelRequest, `rows` by message id and revision."""

    revision: int
    agent: str
    provider: str
    model: str
    tools: tuple[str, ...]
    shared: int
    rows: tuple[tuple[str, int], ...]
    response_id: str = ""


@dataclass(frozen=True, slots=True)
class TellStatus:
    """agent_status to push beside the changes around it."""

    status: AgentStatus
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class TellCancelled:
    turn_id: str


@dataclass(frozen=True, slots=True)
class CloseTurn:
    """The turn is over: begin the next one with what is queued, or release the session.

    `for_queued`: it ends for what is queued alone (RUN-06). When that has been withdrawn meanwhile, none of the job
    is written and the turn goes on.
    """

    for_queued: bool = False


Change = (
    InsertMessage | UpdateMessage | AppendText | RecordUsage | RecordRequest | TellStatus | TellCancelled | CloseTurn
)
