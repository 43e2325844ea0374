"""The messages that a session's agent answers, by users' choice or by the number of people who can write (RUN-17)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from django.db import transaction
from django.db.models import Q

from chat.errors import NoSuchSession
from chat.models import Membership, Session, SessionRole, Share
from chat.queries.session_people import writers_in, writers_in_each
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
    opened = Q(workspace_role=SessionRole.EDITOR) | _own_or_shared(user_id)
    _follow_people_later(Q(workspace=workspace_id) & opened)


def follow_people_of_later(user_id: int) -> None:
    """Let automatic sessions follow when the caller's transaction, which activates or deactivates a user, commits."""
    workspaces = Membership.objects.filter(user=user_id).values("workspace")
    opened = Q(workspace_role=SessionRole.EDITOR, workspace__in=workspaces)
    _follow_people_later(opened | _own_or_shared(user_id))


def _own_or_shared(user_id: int) -> Q:
    shared = Share.objects.filter(user=user_id, role=SessionRole.EDITOR).values("session")
    return Q(owner=user_id) | Q(pk__in=shared)


def _follow_people_later(condition: Q) -> None:
    rows = Session.objects.filter(condition, replies_auto=True).exclude(status=Session.Status.DELETED)
    shown = dict(rows.order_by().values_list("pk", "replies"))
    if shown:
        transaction.on_commit(partial(_follow_people_in, shown), robust=True)


def _follow_people_in(shown: Mapping[str, str]) -> None:
    for session_id, count in writers_in_each(shown).items():
        if _by_count(count) == shown[session_id]:
            continue
        with suppress(NoSuchSession), transaction.atomic():
            follow_people(SessionTransaction.lock(session_id))


def _by_people(session_id: str) -> str:
    return _by_count(writers_in(session_id))


def _by_count(writers: int) -> str:
    return MENTIONS if writers > 1 else ALL
