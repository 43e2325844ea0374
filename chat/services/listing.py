"""The list of a person's sessions: what each looks like from where they stand, grouped by when it was last active."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, TypedDict

from django.db.models import Exists, F, FilteredRelation, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import ChatMessage, RunState, Session, User
from chat.services.access import sessions_of
from chat.services.participation import said_by_others

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class Seen(TypedDict):
        pinned_at: datetime | None
        unread: bool

    Row = WithAnnotations[Session, Seen]

PAGE = 60
MOST = 2000


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as its row in the list shows it. `owner` is given where it is somebody else's."""

    id: str
    title: str
    owner: User | None
    workspace: int
    workspace_name: str
    archived: bool
    pinned: bool
    unread: bool
    working: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one heading; `key` is the heading's name for programs."""

    key: str
    title: str
    rows: list[Listed]


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of the list, the last active first, whatever is pinned; `more` when others come after them."""

    rows: list[Listed]
    more: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """The list, or its beginning: `more` is how many rows to ask for to see more of it, 0 when this is all."""

    groups: list[Group]
    more: int

    @property
    def owners(self) -> set[User]:
        """Whose sessions these are, where they are not the reader's."""
        return {row.owner for group in self.groups for row in group.rows if row.owner}


def listing(user: User, zone: tzinfo, *, shown: int = PAGE, archived: bool = False, within: Q | None = None) -> Listing:
    """Read the person's list, pinned sessions first, then the last active; days are those of their own zone.

    `within` narrows it down, as to a workspace's sessions (services/workspaces.py).
    """
    shown = max(PAGE, min(shown, MOST))
    found = list(_rows(user, archived, within)[: shown + 1])
    rows = [_listed(session, user) for session in found[:shown]]
    more = shown + 2 * PAGE if len(found) > shown else 0
    if archived:
        return Listing([Group("archived", _("Archived"), rows)] if rows else [], more)
    return Listing(grouped(rows, timezone.now(), zone), more)


def listed_before(
    user: User,
    place: tuple[datetime, str] | None = None,
    *,
    count: int = PAGE,
    archived: bool = False,
    within: Q | None = None,
) -> Slice:
    """Read the rows that come after a `place`, which is a row's time and id; None: from the first on. One query."""
    rows = _rows(user, archived, within).order_by("-updated_at", "pk")
    if place is not None:
        updated_at, pk = place
        rows = rows.filter(Q(updated_at__lt=updated_at) | Q(updated_at=updated_at, pk__gt=pk))
    found = list(rows[: count + 1])
    return Slice([_listed(session, user) for session in found[:count]], more=len(found) > count)


def recent(user: User, count: int, within: Q | None = None) -> list[Listed]:
    """Read the last active sessions, wherever they stand in the list."""
    rows = _rows(user, archived=False, within=within).order_by("-updated_at")[:count]
    return [_listed(session, user) for session in rows]


def unread_sessions(user: User) -> QuerySet[Row]:
    """What the list marks as unread, in no order: to be asked whether there is any."""
    return _rows(user, archived=False).filter(revision__gt=F("read"), unread=True).order_by()


def grouped(rows: list[Listed], now: datetime, zone: tzinfo) -> list[Group]:
    """Put rows, in their order, under headings; empty ones are left out."""
    today = now.astimezone(zone).date()
    groups: dict[str, Group] = {}
    for row in rows:
        age = today - row.updated_at.astimezone(zone).date()
        key, title = ("pinned", _("Pinned")) if row.pinned else _age(age)
        groups.setdefault(key, Group(key, title, [])).rows.append(row)
    return list(groups.values())


def _age(age: timedelta) -> tuple[str, str]:
    if age.days <= 0:
        return "today", _("Today")
    if age.days == 1:
        return "yesterday", _("Yesterday")
    if age.days <= 7:
        return "week", _("Previous 7 days")
    if age.days <= 30:
        return "month", _("Previous 30 days")
    return "older", _("Older")


def _rows(user: User, archived: bool, within: Q | None = None) -> QuerySet[Row]:
    status = Session.Status.ARCHIVED if archived else Session.Status.ACTIVE
    sessions = sessions_of(user).filter(within or Q(), status=status).select_related("owner", "run", "workspace")
    mine = FilteredRelation("participations", condition=Q(participations__user=user))
    sessions = sessions.alias(mine=mine, read=Coalesce("mine__read_revision", 0))
    sessions = sessions.annotate(pinned_at=F("mine__pinned_at"), unread=Exists(_unseen(user)))
    return sessions.order_by(F("pinned_at").desc(nulls_last=True), "-updated_at", "pk")


def _unseen(user: User) -> QuerySet[ChatMessage]:
    """What has been said since the person looked."""
    return ChatMessage.objects.filter(said_by_others(user), session=OuterRef("pk"), revision__gt=OuterRef("read"))


def _listed(session: Row, user: User) -> Listed:
    return Listed(
        id=session.pk,
        title=session.title,
        owner=None if session.owner_id == user.pk else session.owner,
        workspace=session.workspace_id,
        workspace_name=session.workspace.name,
        archived=session.status == Session.Status.ARCHIVED,
        pinned=session.pinned_at is not None,
        unread=session.unread,
        working=session.run.state != RunState.IDLE,
        updated_at=session.updated_at,
    )
