"""The state of an open turn between two events, and the turn events that do not come from the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agents.errors import AgentError
from agents.events import AgentEvent
from agents.messages import Source


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of an event: wall time (aware), monotonic seconds, and a source of ids."""

    wall: datetime
    mono: float
    message_id: Callable[[], str]
    response_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Stopped:
    """A user pressed Stop."""


@dataclass(frozen=True, slots=True)
class ProcessLost:
    """The process that ran the turn died; `resume` says whether the turn continues.

    A turn that does not continue ends as failed with `error`, or as interrupted without one.
    """

    resume: bool
    error: AgentError | None = None


TurnEvent = AgentEvent | Stopped | ProcessLost


@dataclass(frozen=True, slots=True)
class OpenText:
    """A streaming text or reasoning row. `whole`: the text is complete, the row not yet. `began` is monotonic."""

    id: str
    reasoning: bool
    began: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ResponseText:
    """A text row of the current response, which gets its duration when the response is done.

    `data` is returned to the provider with the text in later requests; None until the text is complete. `sources` are
    the pages that it cites; None until that is known.
    """

    id: str
    began: float
    data: Mapping[str, str] | None = None
    sources: tuple[Source, ...] | None = None


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool call without a result; `began` is None until it runs. `waiting`: for people.

    `asking`: it runs, and people have not answered what it asked them.
    `output` is the end of what a running tool has reported so far.
    """

    id: str
    call_id: str
    name: str
    began: float | None = None
    waiting: bool = False
    # Waits for another agent instead of people.
    delegated: bool = False
    asking: bool = False
    output: str = ""


@dataclass(frozen=True, slots=True)
class WritingCall:
    """The row of a call whose arguments the model is writing. `key` is the provider's for it, "" after a restart."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """An open turn. `began` is monotonic; `elapsed_before` are the seconds of the turn before that.

    In the current response `open` is the streaming row, `texts` are all text rows (with the streaming one), and
    `last_row` is the newest row, `writing` are the calls that are not complete. `tools` are the calls without a result.
    """

    turn_id: str
    began: float
    elapsed_before: float = 0.0
    mode: str = "agent"
    agent_id: str = ""
    # The agent's name on its messages, in a session with several.
    sender: str = ""
    model: str = ""
    provider: str = ""
    context_window: int | None = None
    response_id: str = ""
    requested: float = 0.0
    # A request failed, and the next one has not been sent.
    retrying: bool = False
    # The last response had nothing in it: the turn ends as failed.
    was_empty: bool = False
    first_token_ms: int | None = None
    open: OpenText | None = None
    texts: tuple[ResponseText, ...] = ()
    last_row: str = ""
    writing: tuple[WritingCall, ...] = ()
    tools: tuple[OpenTool, ...] = ()
    # The pages that were found in the turn, which its texts may cite.
    sources: tuple[Source, ...] = ()
    closed: bool = False
