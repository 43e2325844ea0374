"""Build the input of the next response: the agent with the session's settings, and the context from the rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from agents.delegates import is_delegate
from agents.i18n import gettext as _
from agents.loop import Agent
from agents.mcp.config import AddedServer
from agents.messages import Message
from agents.registry import AgentPreset
from agents.toolbox import SANDBOX_TOOLS
from chat.agents_setup import registry, sandbox
from chat.languages import in_language
from chat.models import FORKED_FILES, ChatMessage, MemoryNote, Session
from chat.projections.context import NOTHING_AROUND, Around, context, system_prompt
from chat.projections.requests import request_rows
from chat.projections.views import seen_by, with_introduction
from chat.queries import cast, presets, workspace_rules
from chat.queries.cast import active_agent
from chat.queries.context_rows import RequestFacts, context_rows, contexts, is_another_context, request_facts
from chat.queries.forked_files import with_forked_files
from chat.queries.knowledge import with_knowledge
from chat.queries.mcp_servers import with_servers
from chat.queries.memory import notes_in, with_notes
from chat.queries.senders import sender_cache
from chat.queries.subsessions import with_delegates
from chat.runner.attached_files import copy_attachments, load_file_parts
from chat.runs.changes import RecordRequest
from chat.runs.local_runner import BegunTurn
from chat.services.runs import dialects

logger = logging.getLogger(__name__)

NO_FILES = _("The files of this session are not available right now. Retry in a moment.")

# A context with at most this many messages is read and built in a few milliseconds.
SHORT_CONTEXT = 100


@dataclass(frozen=True, slots=True)
class AgentInput:
    """What a model request is made from, read together (RUN-16, ADM-02), and the record of the request."""

    agent: Agent
    history: list[Message]
    request: RecordRequest
    # The names in the agent's own list of tools. `agent` lacks the tools of servers whose tools are not known yet.
    tool_names: tuple[str, ...] = ()
    servers: tuple[AddedServer, ...] = ()


def build_agent_input(session_id: str) -> AgentInput:
    """Build the input from the session and its rows. Raise agents.errors.AgentError if its model is not configured."""
    session = Session.objects.get(pk=session_id)
    return _build(session, request_facts(session))


def _build(session: Session, facts: RequestFacts) -> AgentInput:
    if facts.is_scheduled:  # this turn only: the row is not written
        session.mode = Session.Mode.RUN
    is_plain = not facts.has_files and not facts.has_summaries
    rows = contexts.rows(session, facts) if is_plain else context_rows(session)
    name = active_agent(session)
    seen = view_of(session, rows, name)
    preset = presets.own(session, name)
    if facts.has_servers:
        preset = with_servers(preset, session)
    around = sender_cache.around_request(session.pk, seen, facts.senders, facts.newest)
    agent = _agent_of(preset, session, seen, name, notes_in(session) if facts.has_notes else (), around)
    if facts.has_rules and agent.tools:
        agent = replace(agent, rules=workspace_rules.with_workspace_rules(agent.rules, session, name))
    if any(tool in SANDBOX_TOOLS for tool in agent.tools):
        copy_attachments(agent, rows)
    files = {} if is_plain else load_file_parts(seen, agent)  # plain rows have no files
    history = context(seen, files, around)
    known = facts.last_request
    sent_rows = request_rows(rows, None if is_another_context(session, known, facts.has_summaries) else known)
    request = RecordRequest(
        revision=session.revision,
        agent=agent.name,
        provider=agent.provider.name,
        model=agent.model,
        tools=tuple(tool.name for tool in agent.tools),
        shared=sent_rows.shared,
        rows=sent_rows.rows,
    )
    return AgentInput(agent, history, request, preset.tools, preset.servers)


def first_input(turn: BegunTurn) -> AgentInput | None:
    """Build the input of a turn that has just begun; return None if that may take long or fails.

    The thread that has begun the turn calls this while a client waits for it, so long inputs are left to the
    runner's threads. If building fails here, a thread of the runner tries again, and an error there ends the turn.
    """
    if turn.last_sequence > SHORT_CONTEXT:
        return None
    try:
        facts = request_facts(turn.session)
        # A user's language may be active in this thread. A request to a model must not depend on it.
        return None if facts.has_files else in_language(settings.LANGUAGE_CODE, _build, turn.session, facts)
    except Exception as error:
        logger.debug("Rebuilding the first input of session %s: %r", turn.session.pk, error)
        return None


def view_of(session: Session, rows: Sequence[ChatMessage], agent: str = "") -> Sequence[ChatMessage]:
    """Return the rows as an agent of the session gets them. An empty `agent` means the session's own agent."""
    titles = cast.titles(session)
    return seen_by(rows, agent or session.agent, _own_agent(session), titles) if titles else rows


def prompt_of(
    session: Session,
    rows: Sequence[ChatMessage],
    preset: AgentPreset,
    agent: str = "",
    own_prompt: str | None = None,
    around: Around = NOTHING_AROUND,
) -> str:
    """Return the system prompt, without the notes, for an agent of the session that gets these rows.

    `preset` is the session's copy of the agent's configuration. `own_prompt` replaces the session's system prompt.
    `around` is as in `with_sources`.
    """
    titles = cast.titles(session)
    prompt = preset.system_prompt if own_prompt is None or agent in titles else own_prompt
    if titles:
        prompt = with_introduction(prompt, agent or session.agent, _own_agent(session), titles)
    prompt = system_prompt(rows, prompt, around)
    return with_forked_files(prompt, session, preset.tools) if FORKED_FILES in session.config_values else prompt


def _own_agent(session: Session) -> tuple[str, str]:
    return session.agent, presets.own(session).title


def build_session_agent(
    session: Session,
    rows: Sequence[ChatMessage],
    notes: Sequence[MemoryNote] = (),
    agent_name: str = "",
    around: Around = NOTHING_AROUND,
) -> Agent:
    """Build the agent for the next response. Raise agents.errors.AgentError if the model is not configured."""
    return _agent_of(with_servers(presets.own(session, agent_name), session), session, rows, agent_name, notes, around)


def _agent_of(
    preset: AgentPreset,
    session: Session,
    rows: Sequence[ChatMessage],
    name: str,
    notes: Sequence[MemoryNote],
    around: Around,
) -> Agent:
    prompt = prompt_of(session, rows, preset, name, around=around)
    preset = replace(preset, system_prompt=with_notes(prompt, notes))
    unattended = session.mode == Session.Mode.RUN
    agent = replace(
        registry().build_agent(preset),
        sandbox=sandbox(session.pk),
        unattended=unattended,
        cache_key=session.pk,
        asks_before_sending=not settings.SEND_WITHOUT_APPROVAL,
    )
    dialects.recall(agent.provider)
    if preset.knowledge:
        agent = with_knowledge(agent, session, preset.knowledge)
    if any(map(is_delegate, preset.tools)):
        agent = with_delegates(agent, session, preset)
    return agent


def has_queued(session_id: str) -> bool:
    """Return whether a queued message can be answered at the next break of the turn (RUN-06)."""
    return ChatMessage.objects.for_break(session_id).exists()
