"""Row changes of a run, as values in the order in which they are applied."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from agents.messages import Json
from chat.bus.events import MessageEventName
from chat.session_snapshot import Activity, AgentStatus, CompactionOutcome


@dataclass(frozen=True, slots=True)
class InsertMessage:
    """A new row at the end of the session. `fields` are columns of ChatMessage."""

    id: str
    name: MessageEventName
    fields: Json
    details: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """New values for a row. `compact`: first add the text of its delta rows to its own, and delete them."""

    id: str
    name: MessageEventName
    fields: Json
    details: Json = field(default_factory=dict)
    compact: bool = False


@dataclass(frozen=True, slots=True)
class EndWait:
    """New values for the row of a call that waits for users or another agent, because its turn ends.

    If the call has got its result since the run read it, the result stays. `if_approved` is the result if users have
    approved the call since, but it has not run.
    """

    id: str
    fields: Json
    if_approved: str


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

    def columns(self) -> Json:
        """Return the values by column. In contrast to `asdict`, this does not copy the tuples."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class InsertSummary:
    """A summary that replaces the rows from `first` to `after`, which a model has read at `read_revision`.

    `messages` is their number, `context_used` an estimate of the context with the summary, and `tokens` the tokens that
    were used to make it.
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
    """An agent_status event, published in order with the changes around it. The fields are those of StatusChanged."""

    status: AgentStatus
    tool_name: str = ""
    activity: Activity = ""
    code: str = ""
    retry_in: int = 0


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """A files_changed event: session files have changed."""


@dataclass(frozen=True, slots=True)
class ReportCancelled:
    """An agent_cancelled event."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class CloseTurn:
    """End the turn: begin the next one with the queued messages, or release the session.

    `for_queued`: the turn ends only to deliver queued messages (RUN-06). If they have been withdrawn since, nothing of
    the job is written and the turn continues.
    """

    for_queued: bool = False


@dataclass(frozen=True, slots=True)
class WaitForAnswers:
    """Release the session until users or other agents have answered, unless the turn can already continue (UI-12)."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """Begin the subsession for the task of a call. The call is updated before, in the same job.

    `has_new_address` is that of the event.
    """

    id: str
    has_new_address: bool = False


@dataclass(frozen=True, slots=True)
class AskPeople:
    """Make a running call wait for users. `question` is the payload of an `agents.elicitation.Elicitation`."""

    id: str
    question: Json


@dataclass(frozen=True, slots=True)
class WithdrawQuestion:
    """Let a call that waits for users continue without an answer. `why` is the reason."""

    id: str
    why: str


Change = (
    InsertMessage
    | UpdateMessage
    | EndWait
    | AppendText
    | RecordUsage
    | RecordRequest
    | InsertSummary
    | ReportCompaction
    | ReportStatus
    | ReportFiles
    | ReportCancelled
    | CloseTurn
    | WaitForAnswers
    | Delegate
    | AskPeople
    | WithdrawQuestion
)
