"""The messages that a session's agent answers, by users' choice or by the number of people who can write (RUN-17)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from django.db import transaction
from django.db.models import Q

from chat.errors import NoSuchSession
from chat.models import Session, SessionRole, Share
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


def follow_people_in_workspace_later(workspace_id: int, user_id: int) -> None:
    """Let automatic sessions follow when the caller's transaction, which changes a user's membership, commits.

    Must be called before shares of the user are deleted.
    """
    shared = Share.objects.filter(user=user_id, role=SessionRole.EDITOR).values("session")
    rows = Session.objects.filter(workspace=workspace_id, replies_auto=True).exclude(status=Session.Status.DELETED)
    rows = rows.filter(Q(workspace_role=SessionRole.EDITOR) | Q(pk__in=shared))
    shown = list(rows.order_by().values_list("pk", "replies"))
    transaction.on_commit(partial(_follow_people_in, shown), robust=True)


def _follow_people_in(shown: Iterable[tuple[str, str]]) -> None:
    for session_id, before in shown:
        if _by_people(session_id) == before:
            continue
        with suppress(NoSuchSession), transaction.atomic():
            follow_people(SessionTransaction.lock(session_id))


def _by_people(session_id: str) -> str:
    return MENTIONS if writers_in(session_id) > 1 else ALL
