"""Add other agents to a session, and remove them. Each answers when it is addressed."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from agents.messages import Json
from agents.registry import AgentPreset
from chat.agents_setup import registry
from chat.errors import Invalid, ServiceError
from chat.models import Session, User
from chat.queries import presets
from chat.queries.cast import AGENTS, REMOVED
from chat.services.sessions.fields import change
from chat.services.transaction import SessionTransaction

MAX_AGENTS = 8


class NoSuchAgent(ServiceError):
    def __init__(self, agent: str) -> None:
        super().__init__("no_such_agent", _("The agent “%(agent)s” isn’t configured here.") % {"agent": agent})


def chosen_agent(session: Session, author: User, agent: str) -> AgentPreset:
    """Return the agent that a user has chosen for a session. Raise NoSuchAgent if it is not offered there."""
    chosen = presets.offered_preset(agent, author, session.workspace_id) if agent else None
    if chosen is None:
        raise NoSuchAgent(agent)
    return chosen


@transaction.atomic
def add_agent(*, session: Session, author: User, agent: str, again: bool = False) -> None:
    """Add an agent to a session, with a copy of its model, prompt and tools. No effect if it is there already.

    With `again`, undo the agent's removal, with the copy that the session still has. Raise ServiceError for an agent
    that is not offered or was never there, more than eight other agents, and an archived session.
    """
    if again:
        _take_back(session, author, agent)
        return
    chosen = chosen_agent(session, author, agent)
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    entries = presets.copies_of_others(tx.session)
    present = [entry["name"] for entry in entries if not entry.get(REMOVED)]
    if chosen.name in (tx.session.agent, *present):
        return
    _require_room(present)
    provider, model = chosen.provider, chosen.model
    if model and not registry().offers(provider, model):
        provider, model = tx.session.provider, tx.session.model
    named: Json = {"name": chosen.name, "provider": provider, "model": model, "system_prompt": chosen.system_prompt}
    kept = [entry for entry in entries if entry["name"] != chosen.name]
    _set(tx, author, [*kept, {**presets.copy_of(chosen), **named}])


def _take_back(session: Session, author: User, agent: str) -> None:
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    entries = presets.copies_of_others(tx.session)
    entry = next((entry for entry in entries if entry["name"] == agent), None)
    if entry is None:
        raise NoSuchAgent(agent)
    if not entry.get(REMOVED) or agent == tx.session.agent:
        return
    _require_room([each["name"] for each in entries if not each.get(REMOVED)])
    there = {name: value for name, value in entry.items() if name != REMOVED}
    _set(tx, author, [there if each is entry else each for each in entries])


def _require_room(present: Sequence[str]) -> None:
    if len(present) >= MAX_AGENTS:
        raise Invalid(_("A session can have up to %(count)d other agents.") % {"count": MAX_AGENTS})


@transaction.atomic
def remove_agent(*, session: Session, author: User, agent: str) -> None:
    """Remove an agent that was added to a session. Its messages stay. Raise ServiceError."""
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    entries = presets.copies_of_others(tx.session)
    if not any(entry["name"] == agent and not entry.get(REMOVED) for entry in entries):
        raise ServiceError("no_such_agent", _("This agent wasn’t added to the session."))
    _set(tx, author, [{**entry, REMOVED: True} if entry["name"] == agent else entry for entry in entries])


def _set(tx: SessionTransaction, author: User, entries: list[Json]) -> None:
    config = {**tx.session.config_values, AGENTS: entries}
    change(tx, author, agent=tx.session.agent, config=config)
