"""What a run knows of its open turn between two events, and the events that no agent tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agents.errors import AgentError
from agents.events import AgentEvent


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
    """The process that ran the turn died; `resume` tells whether the turn goes on.

    `error`: why it does not, for a turn that ends as failed; without one it ends as interrupted.
    """

    resume: bool
    error: AgentError | None = None


TurnEvent = AgentEvent | Stopped | ProcessLost


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text or reasoning row that grows, or is `whole` and waits for its end; `began` is monotonic."""

    id: str
    reasoning: bool
    began: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text row of the present response whose duration is known when the response is done.

    `data` is what its provider must get back with it; None until the text is whole.
    """

    id: str
    began: float
    data: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool call without a result; `began` is None while it is pending."""

    id: str
    call_id: str
    name: str
    began: float | None = None


@dataclass(frozen=True, slots=True)
class TurnState:
    """An open turn. `began` is monotonic; `lead` is what had passed of the turn before that, in seconds.

    Of the present response: `open` is the row that grows, `spoken` its texts (the growing one too), `last_row` its
    newest row. `tools` are the calls without a result.
    """

    turn_id: str
    began: float
    lead: float = 0.0
    mode: str = "agent"
    agent_id: str = ""
    model: str = ""
    provider: str = ""
    context_window: int | None = None
    response_id: str = ""
    requested: float = 0.0
    first_token_ms: int | None = None
    open: OpenText | None = None
    spoken: tuple[SpokenText, ...] = ()
    last_row: str = ""
    tools: tuple[OpenTool, ...] = ()
    closed: bool = False
