"""The sessions that wait for a user or mention a user, and that the list of the page does not show."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet

from chat.models import RunState, Session, SessionRun, User, UserSessionState
from chat.overrides.composed_queries import Composed
from chat.queries.session_list import Within, listed_rows, sessions_within, values_of

MAX_SESSIONS = 50


class Needing(NamedTuple):
    """A session that the list does not show, and that waits for the user or mentions the user."""

    id: str
    title: str
    mention: int
    waiting: bool


def needing_elsewhere(user: User, within: Within | None = None) -> list[Needing]:
    """Read the sessions outside of `within` that wait for the user or mention the user. None reads all of them."""
    return [Needing(*values) for values in _NEEDING.read(user.pk, *values_of(within))]


def _needing(user_id: int, *within: int) -> QuerySet[Session, tuple[Any, ...]]:
    listed = sessions_within(*within)
    rows = listed_rows(User(pk=user_id), archived=False, within=listed and ~listed)
    # Few sessions can match. A database that begins with these does not check each of the user's sessions.
    mentioned = UserSessionState.objects.filter(user=user_id, mentioned_revision__gt=F("read_revision"))
    at_work = SessionRun.objects.filter(state__in=(RunState.WAITING, RunState.RUNNING))
    rows = rows.filter(pk__in=mentioned.values("session").union(at_work.values("session")))
    rows = rows.filter(Q(mention__gt=0) | Q(waiting=True))[:MAX_SESSIONS]
    return rows.values_list("pk", "title", "mention", "waiting")


_NEEDING = Composed(_needing)
