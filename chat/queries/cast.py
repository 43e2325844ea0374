"""The agents of a session: its own, and others that answer when they are addressed.

The others are in the session's configuration, each as a copy of its preset. A removed agent stays there, so that its
messages are still shown as those of another agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agents.messages import Json
from chat.mentions import ANY_AGENT, find_mentions, mentioned_agents
from chat.models import ChatMessage, MessageType, Session, SessionRun
from chat.queries import presets

# The key for the other agents in `Session.config`, and for the agents that answer from a turn on in the turn's marker.
AGENTS = "agents"
REMOVED = "removed"
# The key, in a turn's marker, for the id of the failed turn whose agent answers again in this one.
REPEATS = "repeats"


@dataclass(frozen=True, slots=True)
class Member:
    """An agent of a session. `name` addresses it, and `title` is shown to users."""

    name: str
    title: str
    provider: str
    model: str
    icon: str = ""

    def to_json(self) -> Json:
        return asdict(self)


def others(session: Session) -> list[Member]:
    """Return the other agents of a session, without removed ones."""
    return [_member(entry) for entry in _entries(session) if not entry.get(REMOVED)]


def members(session: Session) -> list[Member]:
    """Return all agents of a session, its own first, or [] if it has no other agents."""
    found = others(session)
    if not found:
        return []
    own = presets.own(session)
    return [Member(session.agent, own.title, session.provider, session.model, own.icon), *found]


def titles(session: Session) -> dict[str, str]:
    """Return the titles of the other agents, including removed ones, by name."""
    return {entry["name"]: _member(entry).title for entry in _entries(session)}


def title_of(session: Session, name: str) -> str:
    """Return the title that an agent's messages show, or "" if the session has never had another agent."""
    known = titles(session)
    return known.get(name) or presets.own(session).title if known else ""


def addressed_agents(session: Session, text: str) -> list[str]:
    """Return the agents that answer a message, in the order in which it mentions them (RUN-17).

    A message that mentions no agent is for the session's own agent, unless that one answers mentions only.
    """
    found = find_mentions(text, _callable(session))
    return found or ([session.agent] if session.replies == Session.Replies.ALL else [])


def mentions_of_agents(session: Session, text: str) -> list[tuple[str, int, int]]:
    """Return the mentions of a session's agents in a text, as (agent, start, length) in characters."""
    return mentioned_agents(text, _callable(session))


def _callable(session: Session) -> dict[str, str]:
    """Return the names that can follow an @, and the agent of each name."""
    own = presets.agent_copy(session).title if session.replies == Session.Replies.MENTIONS or others(session) else ""
    names = {ANY_AGENT: session.agent, own: session.agent, session.agent: session.agent}
    for member in others(session):
        names |= {member.title: member.name, member.name: member.name}
    return names


def agents_from(marker: ChatMessage | None) -> list[str]:
    """Return the agents that answer in the turn of a marker, and in the turns that follow it, or []."""
    kept = marker.arguments if marker is not None and marker.type == MessageType.TURN_START else None
    found = kept.get(AGENTS) if isinstance(kept, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def turn_mode(session: Session, marker: ChatMessage | None) -> str:
    """Return the mode of the turn that a marker begins: the session's, or `run` if a schedule began it (MSG-09)."""
    is_scheduled = marker is not None and marker.type == MessageType.TURN_START and bool(marker.workflow_id)
    return Session.Mode.RUN if is_scheduled else session.mode


def active_agent(session: Session) -> str:
    """Return the agent that answers in the open turn. Without other agents, it is the session's own, with no query."""
    if not presets.copies_of_others(session):
        return session.agent
    turns = SessionRun.objects.filter(pk=session.pk).values("turn_id")
    markers = ChatMessage.objects.in_conversation(session.pk).filter(turn_id__in=turns, type=MessageType.TURN_START)
    return known_agent(session, agents_from(markers.first()))


def known_agent(session: Session, names: Sequence[str]) -> str:
    """Return the first of these agents if it is in the session, otherwise the session's own agent."""
    return names[0] if names and names[0] in {member.name for member in others(session)} else session.agent


def _entries(session: Session) -> list[Json]:
    return [entry for entry in presets.copies_of_others(session) if entry["name"] != session.agent]


def _member(entry: Json) -> Member:
    title = entry.get("agent_title")
    return Member(
        entry["name"],
        title if isinstance(title, str) and title else entry["name"],
        str(entry.get("provider", "")),
        str(entry.get("model", "")),
        presets.icon_of(entry),
    )
