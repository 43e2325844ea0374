"""The request that a session would send next, for users and programs to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.errors import AgentError
from agents.loop import Agent, request_of
from agents.messages import Message
from agents.providers.base import Request
from agents.tools import Tool
from agents.words import Words
from chat.models import ChatMessage, Session
from chat.projections.briefed import Block, blocks
from chat.projections.context import context, system_prompt
from chat.projections.estimate import of_text, of_tools
from chat.projections.measure import Measure, measured
from chat.running.briefing import agent_of, gather
from chat.running.showing import Reader, Shown, glance, shown

# What `measured` needs beside the columns of the context.
MEASURED = ("model", "timestamp", "input_tokens")


@dataclass(frozen=True, slots=True)
class NextRequest:
    """The rows and what becomes of them. Without an `agent` no request can be sent: `problem` says why."""

    session: Session
    rows: Sequence[ChatMessage]
    files: Shown
    agent: Agent | None = None
    problem: Words | str = ""

    @property
    def system(self) -> str:
        return system_prompt(self.rows, self.session.system_prompt)

    @property
    def tools(self) -> Sequence[Tool]:
        return self.agent.tools if self.agent else ()

    @property
    def messages(self) -> list[Message]:
        return context(self.rows, self.files)

    @property
    def request(self) -> Request:
        """The request as the agent makes it; without an agent only what the rows say."""
        if self.agent is None:
            return Request(self.session.model, tuple(self.messages), self.system)
        return request_of(self.agent, self.messages)

    @property
    def _maker(self) -> tuple[str, str]:
        """The provider and the model whose reasoning goes back."""
        return (self.agent.provider.name, self.agent.model) if self.agent else ("", "")

    def estimate(self) -> tuple[list[Block], Measure]:
        """Lay out the context with estimated tokens; the rows need the `MEASURED` columns."""
        laid = blocks(self.rows, self.files, *self._maker)
        around = of_text(self.system) + of_tools(self.tools)
        return laid, measured(laid, around, (self.session.provider, self.session.model))


def next_request(session: Session, *more: str, reader: Reader = glance) -> NextRequest:
    """Read a session's next request. `more` are columns of its rows; `reader` gives the files that the model takes."""
    rows = gather(session, *more)
    try:
        agent = agent_of(session, rows)
    except AgentError as error:
        return NextRequest(session, rows, {}, problem=error.words)
    return NextRequest(session, rows, shown(rows, agent.takes, reader), agent)
