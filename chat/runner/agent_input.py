"""What the next response is made of: the agent as the session has it now, and the context as the rows say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.loop import Agent
from agents.messages import Message
from chat.agents_setup import registry
from chat.models import ChatMessage, Session
from chat.projections.context import CONTEXT_FIELDS, context, system_prompt
from chat.projections.requests import named
from chat.queries import presets
from chat.queries.attachments import fetch_attachments
from chat.queries.model_requests import last_revision
from chat.runner.file_parts import load_file_parts
from chat.runs.changes import RecordRequest
from chat.services.runs import dialects


@dataclass(frozen=True, slots=True)
class Briefing:
    """Everything that one LLM call depends on, read at one moment (RUN-16, ADM-02), and what is to be kept of it."""

    agent: Agent
    history: list[Message]
    request: RecordRequest


def build_agent_input(session_id: str) -> Briefing:
    """Read the session and its rows. Raises agents.errors.AgentError where its model is not configured."""
    session = Session.objects.get(pk=session_id)
    rows = load_context_rows(session)
    agent = agent_of(session, rows)
    return Briefing(agent, context(rows, load_file_parts(rows, agent.takes)), _request(session, rows, agent))


def load_context_rows(session: Session, *more: str) -> list[ChatMessage]:
    """Read the live rows in order, as far as the context is made of them (and `more` columns), with their files.

    The session was read before: rows may be newer than its revision, never older.
    """
    live = ChatMessage.objects.live(session.pk).only(*CONTEXT_FIELDS, "revision", *more)
    rows = list(live.order_by("sequence"))
    fetch_attachments(rows, with_text=True)
    return rows


def agent_of(session: Session, rows: Sequence[ChatMessage]) -> Agent:
    """Make the agent as it will answer. Raises agents.errors.AgentError where the model is not configured."""
    told = system_prompt(rows, session.system_prompt)
    agent = registry().build_agent(replace(presets.own(session), system_prompt=told))
    dialects.recall(agent.provider)
    return agent


def _request(session: Session, rows: Sequence[ChatMessage], agent: Agent) -> RecordRequest:
    names = named(rows, last_revision(session.pk))
    return RecordRequest(
        revision=session.revision,
        agent=agent.name,
        provider=agent.provider.name,
        model=agent.model,
        tools=tuple(tool.name for tool in agent.tools),
        shared=names.shared,
        rows=names.rows,
    )


def has_queued(session_id: str) -> bool:
    """Tell whether a queued message is to be delivered at the next break (RUN-06)."""
    return ChatMessage.objects.deliverable(session_id).exists()
