"""What the next response is made of: the agent as the session has it now, and the context as the rows say."""

from __future__ import annotations

from dataclasses import dataclass

from agents.loop import Agent
from agents.messages import Message
from chat.agents_setup import registry
from chat.models import ChatMessage, Session
from chat.projections.context import CONTEXT_FIELDS, context, system_prompt


@dataclass(frozen=True, slots=True)
class Briefing:
    """Everything that one LLM call depends on, read at one moment (RUN-16, ADM-02)."""

    agent: Agent
    history: list[Message]


def brief(session_id: str) -> Briefing:
    """Read the session and its rows. Raises agents.errors.AgentError where its model is not configured."""
    session = Session.objects.get(pk=session_id)
    rows = list(
        ChatMessage.objects.filter(session=session_id, sequence__isnull=False)
        .only(*CONTEXT_FIELDS)
        .order_by("sequence")
    )
    agent = registry().build_agent(
        preset=session.agent,
        provider=session.provider,
        model=session.model,
        system=system_prompt(rows, session.system_prompt),
    )
    return Briefing(agent, context(rows))


def has_queued(session_id: str) -> bool:
    """Whether somebody has said something since (RUN-06)."""
    return ChatMessage.objects.queued(session_id).exists()
