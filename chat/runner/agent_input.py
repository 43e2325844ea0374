"""Build the input of the next response: the agent with the session's settings, and the context from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from agents.loop import Agent
from agents.mcp.config import AddedServer
from agents.messages import Message
from agents.registry import AgentPreset
from chat.agents_setup import registry, sandbox
from chat.models import ApprovalRule, ChatMessage, MemoryNote, Session
from chat.projections.context import context, system_prompt
from chat.projections.requests import named
from chat.projections.views import introduced, seen_by
from chat.queries import cast, presets
from chat.queries.cast import agent_at_work
from chat.queries.context_rows import context_rows, is_another_context
from chat.queries.mcp_servers import with_servers
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
    servers: tuple[AddedServer, ...] = ()


def build_agent_input(session_id: str) -> AgentInput:
    """Read the session and its rows. Raises agents.errors.AgentError if its model is not configured."""
    session = Session.objects.get(pk=session_id)
    rows = context_rows(session)
    name = agent_at_work(session)
    seen = view_of(session, rows, name)
    preset = with_servers(presets.own(session, name), session)
    agent = _with_approvals(_built(preset, session, seen, name, notes_in(session)), session, name)
    history = context(seen, load_file_parts(seen, agent.takes))
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
    return AgentInput(agent, history, request, preset.tools, preset.servers)


def view_of(session: Session, rows: Sequence[ChatMessage], agent: str = "") -> Sequence[ChatMessage]:
    """Return rows as an agent of the session gets them; "" stands for its own."""
    titles = cast.titles(session)
    return seen_by(rows, agent or session.agent, _named(session), titles) if titles else rows


def prompt_of(session: Session, rows: Sequence[ChatMessage], agent: str = "", own_prompt: str | None = None) -> str:
    """Return the system prompt of an agent of the session, which gets these rows, without the notes.

    `own_prompt` stands for that of the session.
    """
    titles, own = cast.titles(session), presets.own(session, agent)
    prompt = own.system_prompt if own_prompt is None or agent in titles else own_prompt
    if titles:
        prompt = introduced(prompt, agent or session.agent, _named(session), titles)
    return system_prompt(rows, prompt)


def _named(session: Session) -> tuple[str, str]:
    return session.agent, presets.own(session).title


def build_session_agent(
    session: Session, rows: Sequence[ChatMessage], notes: Sequence[MemoryNote] = (), agent_name: str = ""
) -> Agent:
    """Build the agent for the next response. Raises agents.errors.AgentError if the model is not configured."""
    return _built(with_servers(presets.own(session, agent_name), session), session, rows, agent_name, notes)


def _built(
    preset: AgentPreset, session: Session, rows: Sequence[ChatMessage], name: str, notes: Sequence[MemoryNote]
) -> Agent:
    preset = replace(preset, system_prompt=with_notes(prompt_of(session, rows, name), notes))
    unattended = session.mode == Session.Mode.RUN
    agent = replace(
        registry().build_agent(preset),
        sandbox=sandbox(session.pk),
        unattended=unattended,
        cache_key=session.pk,
        asks_before_sending=not settings.SEND_WITHOUT_APPROVAL,
    )
    dialects.recall(agent.provider)
    return agent


def _with_approvals(agent: Agent, session: Session, name: str) -> Agent:
    """Add the rules of the session's workspace, which only matter to an agent that would ask people."""
    if not (agent.rules.ask or any(tool.approval or tool.sends_out != "never" for tool in agent.tools)):
        return agent
    rules = ApprovalRule.objects.filter(workspace=session.workspace_id, agent=name)
    approved = (*agent.rules.approved, *rules.values_list("rule", flat=True))
    return replace(agent, rules=replace(agent.rules, approved=approved))


def has_queued(session_id: str) -> bool:
    """Return whether a queued message waits to be answered at the next break (RUN-06)."""
    return ChatMessage.objects.to_answer(session_id).exists()
