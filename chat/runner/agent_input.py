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
from chat.languages import speaking
from chat.models import FORKED_FILES, ChatMessage, MemoryNote, Session
from chat.projections.context import context, system_prompt
from chat.projections.requests import named
from chat.projections.views import introduced, seen_by
from chat.queries import cast, presets, workspace_rules
from chat.queries.cast import agent_at_work
from chat.queries.context_rows import context_rows, is_another_context
from chat.queries.forked_files import with_forked_files
from chat.queries.knowledge import with_knowledge
from chat.queries.mcp_servers import with_servers
from chat.queries.memory import notes_in, with_notes
from chat.queries.request_facts import RequestFacts, request_facts
from chat.queries.subsessions import with_delegates
from chat.runner.attachment_copies import with_copies
from chat.runner.context_cache import contexts
from chat.runner.file_parts import load_file_parts
from chat.runs.changes import RecordRequest
from chat.runs.local_runner import BegunTurn
from chat.services.runs import dialects

logger = logging.getLogger(__name__)

NO_FILES = _("The files of this conversation are not available right now. Retry in a moment.")

# A context of so many messages is read and put together in a few milliseconds.
SHORT_CONTEXT = 100


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
    return _build(session, request_facts(session))


def _build(session: Session, facts: RequestFacts) -> AgentInput:
    if facts.is_scheduled:  # this turn only: the row is not written
        session.mode = Session.Mode.RUN
    is_plain = not facts.has_files and not facts.has_summaries
    rows = contexts.rows(session, facts) if is_plain else context_rows(session)
    name = agent_at_work(session)
    seen = view_of(session, rows, name)
    preset = presets.own(session, name)
    if facts.has_servers:
        preset = with_servers(preset, session)
    agent = _built(preset, session, seen, name, notes_in(session) if facts.has_notes else ())
    if facts.has_rules and agent.tools:
        agent = replace(agent, rules=workspace_rules.added(agent.rules, session, name))
    if any(tool in SANDBOX_TOOLS for tool in agent.tools):
        agent = with_copies(agent, rows)
    history = context(seen, load_file_parts(seen, agent.takes))
    known = facts.last_request
    names = named(rows, None if is_another_context(session, known, facts.has_summaries) else known)
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


def first_input(turn: BegunTurn) -> AgentInput | None:
    """Build the input of a turn that has just begun; None if that may take long, or fails.

    For the thread that has begun the turn, which others wait for: the runner's threads build long inputs. They try one
    that has failed again, and the turn ends with what they meet.
    """
    if turn.last_sequence > SHORT_CONTEXT:
        return None
    try:
        facts = request_facts(turn.session)
        # The thread may speak a user's language. No request to a model depends on that.
        return None if facts.has_files else speaking(settings.LANGUAGE_CODE, _build, turn.session, facts)
    except Exception as error:
        logger.debug("The first input of session %s is built again: %r", turn.session.pk, error)
        return None


def view_of(session: Session, rows: Sequence[ChatMessage], agent: str = "") -> Sequence[ChatMessage]:
    """Return rows as an agent of the session gets them; "" stands for its own."""
    titles = cast.titles(session)
    return seen_by(rows, agent or session.agent, _named(session), titles) if titles else rows


def prompt_of(
    session: Session,
    rows: Sequence[ChatMessage],
    preset: AgentPreset,
    agent: str = "",
    own_prompt: str | None = None,
) -> str:
    """Return the system prompt of an agent of the session, which gets these rows, without the notes.

    `preset` is what the session keeps of the agent. `own_prompt` stands for that of the session.
    """
    titles = cast.titles(session)
    prompt = preset.system_prompt if own_prompt is None or agent in titles else own_prompt
    if titles:
        prompt = introduced(prompt, agent or session.agent, _named(session), titles)
    prompt = system_prompt(rows, prompt)
    return with_forked_files(prompt, session, preset.tools) if FORKED_FILES in session.config_values else prompt


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
    preset = replace(preset, system_prompt=with_notes(prompt_of(session, rows, preset, name), notes))
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
    """Return whether a queued message waits to be answered at the next break (RUN-06)."""
    return ChatMessage.objects.for_break(session_id).exists()
