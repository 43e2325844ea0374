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
    """The time of an event: the aware wall time and the monotonic seconds. It also has functions for new ids."""

    wall: datetime
    mono: float
    message_id: Callable[[], str]
    response_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Stopped:
    """A user pressed Stop."""


@dataclass(frozen=True, slots=True)
class ProcessLost:
    """The process that ran the turn has died. `resume`: the turn continues.

    Otherwise it ends as failed with `error`, or as interrupted if there is no error.
    """

    resume: bool
    error: AgentError | None = None


TurnEvent = AgentEvent | Stopped | ProcessLost


@dataclass(frozen=True, slots=True)
class OpenText:
    """A streaming text or reasoning row. `whole`: its text is complete, but the row is not. `began` is monotonic."""

    id: str
    reasoning: bool
    began: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ResponseText:
    """A text row of the current response. It gets its duration when the response is done.

    `data` is sent back to the provider with the text in later requests; None until the text is complete. `sources` are
    the pages that it cites; None until they are known. `origin` is the host of a page that the vendor has read for it.
    """

    id: str
    began: float
    data: Mapping[str, str] | None = None
    sources: tuple[Source, ...] | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool call without a result. `began` is None until it runs. `waiting`: it waits for users or another agent.

    `asking`: it runs, and users have not answered its question yet. `output` is the last part of a running tool's
    output so far.
    """

    id: str
    call_id: str
    name: str
    began: float | None = None
    waiting: bool = False
    # It waits for another agent, not for users.
    delegated: bool = False
    asking: bool = False
    output: str = ""


@dataclass(frozen=True, slots=True)
class WritingCall:
    """The row of a call whose arguments the model is writing. `key` is the provider's key of it, "" after a restart."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class TurnState:
    """An open turn. `began` is monotonic. `elapsed_before` is the duration of the turn before `began`, in seconds.

    In the current response, `open` is the streaming row, `texts` are all text rows with the streaming one, `last_row`
    is the newest row, and `writing` are the calls that are not complete. `tools` are the calls without a result.
    """

    turn_id: str
    began: float
    # The id of the user who started or reopened the turn, if a user did.
    started_by: int | None = None
    elapsed_before: float = 0.0
    mode: str = "agent"
    agent_id: str = ""
    # The agent's name on its messages, if the session has several agents.
    sender: str = ""
    model: str = ""
    provider: str = ""
    context_window: int | None = None
    response_id: str = ""
    requested: float = 0.0
    # A request failed, and the next one has not been sent.
    retrying: bool = False
    # The last response was empty, so the turn ends as failed.
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
