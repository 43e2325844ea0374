"""Build the input of the next response: the agent with the session's settings, and the context from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.loop import Agent
from agents.messages import Message
from chat.agents_setup import registry, sandbox
from chat.models import ApprovalRule, ChatMessage, MemoryNote, Session
from chat.projections.context import context, system_prompt
from chat.projections.requests import named
from chat.queries import presets
from chat.queries.context_rows import context_rows, is_another_context
from chat.queries.memory import notes_in, with_notes
from chat.queries.model_requests import last_revision
from chat.runner.file_parts import load_file_parts
from chat.runs.changes import RecordRequest
from chat.services.runs import dialects


@dataclass(frozen=True, slots=True)
class AgentInput:
    """Everything that a model request depends on, read together (RUN-16, ADM-02), and the record of the request."""

    agent: Agent
    history: list[Message]
    request: RecordRequest
    # What the agent's list of tools names: servers whose tools are not known yet have none in `agent`.
    tool_names: tuple[str, ...] = ()


def build_agent_input(session_id: str) -> AgentInput:
    """Read the session and its rows. Raises agents.errors.AgentError if its model is not configured."""
    session = Session.objects.get(pk=session_id)
    rows = context_rows(session)
    agent = _with_approvals(build_session_agent(session, rows, notes_in(session)), session)
    names_of_tools = presets.own(session).tools
    history = context(rows, load_file_parts(rows, agent.takes))
    known = last_revision(session.pk)
    names = named(rows, None if is_another_context(session, known) else known)
    request = RecordRequest(
        revision=session.revision,
        agent=agent.name,
        provider=agent.provider.name,
        model=agent.model,
        tools=tuple(tool.name for tool in agent.tools),
        shared=names.shared,
        rows=names.rows,
    )
    return AgentInput(agent, history, request, names_of_tools)


def build_session_agent(session: Session, rows: Sequence[ChatMessage], notes: Sequence[MemoryNote] = ()) -> Agent:
    """Build the agent for the next response. Raises agents.errors.AgentError if the model is not configured."""
    prompt = with_notes(system_prompt(rows, session.system_prompt), notes)
    preset = replace(presets.own(session), system_prompt=prompt)
    agent = replace(registry().build_agent(preset), sandbox=sandbox(session.pk))
    dialects.recall(agent.provider)
    return agent


def _with_approvals(agent: Agent, session: Session) -> Agent:
    """Add the rules of the session's workspace, which only matter to an agent that would ask people."""
    if not (agent.rules.ask or any(tool.approval for tool in agent.tools)):
        return agent
    rules = ApprovalRule.objects.filter(workspace=session.workspace_id, agent=session.agent)
    approved = (*agent.rules.approved, *rules.values_list("rule", flat=True))
    return replace(agent, rules=replace(agent.rules, approved=approved))


def has_queued(session_id: str) -> bool:
    """Return whether a queued message waits to be answered at the next break (RUN-06)."""
    return ChatMessage.objects.to_answer(session_id).exists()
