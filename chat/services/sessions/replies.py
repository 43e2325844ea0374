"""The messages that a session's agent answers, by users' choice or by the number of people who can write (RUN-17)."""

from __future__ import annotations

from chat.models import Session
from chat.queries.session_people import writers_in
from chat.services.sessions.fields import change
from chat.services.transaction import SessionTransaction

ALL, MENTIONS = Session.Replies.ALL, Session.Replies.MENTIONS
# The value with which clients leave the choice to the number of people.
AUTOMATIC = "auto"


def reply_columns(session_id: str, choice: str) -> dict[str, object]:
    """Return the columns of a session for a choice: "all", "mentions" or AUTOMATIC."""
    if choice == AUTOMATIC:
        return {"replies": _by_people(session_id), "replies_auto": True}
    return {"replies": choice, "replies_auto": False}


def follow_people(tx: SessionTransaction) -> None:
    """Let the agent of an automatic session answer all messages, or only mentions if several people can write.

    The caller has locked the session before it changed who can write in it.
    """
    if tx.session.replies_auto and tx.session.status != Session.Status.DELETED:
        change(tx, None, replies=_by_people(tx.session.pk))


def _by_people(session_id: str) -> str:
    return MENTIONS if writers_in(session_id) > 1 else ALL
