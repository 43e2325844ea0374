"""Store which users a message mentions, mark the session in their lists, and notify them (LIVE-07)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db import transaction

from agents.messages import Json
from chat.bus.wakeups import Wakeup, WakeupKind, send
from chat.mentions import mentioned_people
from chat.models import ChatMessage, Session, User
from chat.queries import cast
from chat.queries.session_people import people_of
from chat.services.sessions.user_state import locked_states
from chat.services.transaction import SessionTransaction, notify_session_lists
from chat.snapshots import AGENT_MENTIONS


def mentions_in(session: Session, author: User | None, text: str) -> list[list[int]] | None:
    """Return the mentions in a text as [user id, start, length] in characters, or None if there are none.

    Users can be mentioned by their display name, by their user name, or by both, because two display names can look the
    same. Authors cannot mention themselves.
    """
    if "@" not in text:
        return None
    names = [
        (name, user.pk)
        for user in people_of(session)
        for name in (user.sender, user.username, f"{user.sender} ({user.username})")
    ]
    found = mentioned_people(text, names)
    author_id = author.pk if author else None
    return [[each.user_id, each.start, each.length] for each in found if each.user_id != author_id] or None


def with_agents(session: Session, kept: object, text: str) -> Json | None:
    """Return the `arguments` of a message's row: the mentions of agents, and the other values of `kept`."""
    others = {name: value for name, value in kept.items() if name != AGENT_MENTIONS} if isinstance(kept, dict) else {}
    found = cast.mentions_of_agents(session, text) if "@" in text else []
    return ({**others, AGENT_MENTIONS: list(map(list, found))} if found else others) or None


def mentions_after_edit(session: Session, row: ChatMessage, text: str) -> dict[str, Any]:
    """Return the mention columns of an edited message."""
    if row.role != "user":
        return {}
    return {"mentions": mentions_in(session, row.user, text), "arguments": with_agents(session, row.arguments, text)}


def mentioned_ids(row: ChatMessage) -> set[int]:
    """Return the ids of the users whom a message mentions."""
    return {user_id for user_id, _start, _length in row.mentions or ()}


def notify_mentioned(tx: SessionTransaction, row: ChatMessage, *, before: Iterable[int] = ()) -> None:
    """Mark the session for users whom a new or changed message mentions, except for those mentioned `before`.

    A runner sends the push messages soon after the commit.
    """
    people = mentioned_ids(row).difference(before)
    if not people:
        return
    locked_states(tx.session.pk, people).update(mentioned_revision=row.revision)
    notify_session_lists(users=people)
    transaction.on_commit(partial(send, Wakeup(WakeupKind.MENTION, tx.session.pk, message_id=row.pk)))
