"""The list of a user's sessions: what each row shows to this user, grouped by the last activity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from django.db.models import (
    BooleanField,
    Case,
    Exists,
    F,
    FilteredRelation,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.access import deleted_sessions_of, listed_sessions_of, open_to
from chat.models import ASKING, ChatMessage, MessageStatus, MessageType, RunState, Session, SessionRole, Share, User
from chat.overrides.composed_queries import Composed
from chat.queries.approvals import approved_by, lacks_role
from chat.queries.search import sessions_with

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class Seen(TypedDict):
        pinned_at: datetime | None
        unread: bool
        mention: int
        waiting: bool
        caller: str | None

    Row = WithAnnotations[Session, Seen]

PAGE = 60
MAX_LISTED = 2000
MAX_DELETED = 50


class Within(NamedTuple):
    """The sessions of a workspace; with `others`, also sessions that are in none of those workspaces."""

    workspace: int
    others: tuple[int, ...] = ()


class Facts(NamedTuple):
    """The values that are read of a session for its row, in the order of COLUMNS."""

    id: str
    title: str
    owner_id: int
    workspace: int
    workspace_name: str
    status: str
    updated_at: datetime
    state: str
    delegating: bool
    pinned_at: datetime | None
    unread: bool
    mention: int
    waiting: bool
    caller: str | None


COLUMNS = (
    *("pk", "title", "owner_id", "workspace_id", "workspace__name", "status", "updated_at"),
    *("run__state", "run__delegating", "pinned_at", "unread", "mention", "waiting", "caller"),
)
NAMED_BY = ("username", "first_name", "last_name", "display_name", "picture")
READ = (*COLUMNS, *(f"owner__{name}" for name in NAMED_BY))
_values_of = attrgetter(*(column.replace("__", ".") for column in COLUMNS))


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as its row in the list shows it. `caller` is the title of the session that its agent works for.

    `owner` is set if another user owns it, with their name and picture. `mention` is the revision of the last message
    that mentions the user, or 0 if they have read it. `working` is True if an agent works in it, `waiting` if it waits
    for an answer that the user may give.
    """

    id: str
    title: str
    owner: User | None
    workspace: int
    workspace_name: str
    archived: bool
    pinned: bool
    unread: bool
    working: bool
    waiting: bool
    updated_at: datetime
    caller: str | None = None
    mention: int = 0

    @property
    def mentioned(self) -> bool:
        """True if a message that the user has not read mentions them."""
        return self.mention > 0


@dataclass(frozen=True, slots=True)
class Group:
    """The rows under one heading. `key` identifies the heading, in any language."""

    key: str
    title: str
    rows: list[Listed]


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session in a list for API clients: its row, and the user's role in it."""

    listed: Listed
    session: Session
    role: str


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The conditions of a list. `words` are in the title, the owner's name or a message; `deleted` can be restored."""

    archived: bool = False
    deleted: bool = False
    words: str = ""
    agent: str | None = None
    updated_since: datetime | None = None
    within: Q | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of a list, the last active first, pinned or not. `more` is True if others follow."""

    rows: list[ListedSession]
    more: bool


EVERYTHING = ListFilter()


@dataclass(frozen=True, slots=True)
class Listing:
    """The list, or its beginning. `more` is the number of rows to request to see more, or 0 if these are all."""

    groups: list[Group]
    more: int

    @property
    def owners(self) -> set[User]:
        """The owners of sessions that are not the user's own."""
        return {row.owner for group in self.groups for row in group.rows if row.owner}


def listing(
    user: User, zone: tzinfo, *, shown: int = PAGE, archived: bool = False, within: Within | None = None
) -> Listing:
    """Read a user's list: sessions that wait for them, then pinned ones, then the others by their last day in `zone`.

    Takes one query. `within` limits the list.
    """
    shown = max(PAGE, min(shown, MAX_LISTED))
    found = _first(shown + 1, archived).read(user.pk, *values_of(within))
    rows = _list_entries(found[:shown], user)
    more = shown + 2 * PAGE if len(found) > shown else 0
    if archived:
        return Listing([Group("archived", _("Archived"), rows)] if rows else [], more)
    return Listing(grouped(rows, timezone.now(), zone), more)


def listed_before(
    user: User, place: tuple[datetime, str] | None = None, *, count: int = PAGE, only: ListFilter = EVERYTHING
) -> Slice:
    """Read the rows after a `place`, which is a row's time and id; None reads from the first row on.

    Takes one query, and one more on SQLite if words are searched.
    """
    rows = _with_status(user, _filtered_sessions(user, only)).select_related("owner", "run", "workspace")
    rows = rows.order_by("-updated_at", "pk")
    is_owner, is_editor = When(owner=user, then=Value("owner")), When(_may_edit(user), then=Value("editor"))
    rows = rows.annotate(role=Case(is_owner, is_editor, default=Value("viewer")))
    if place is not None:
        updated_at, pk = place
        rows = rows.filter(Q(updated_at__lt=updated_at) | Q(updated_at=updated_at, pk__gt=pk))
    found = list(rows[: count + 1])
    shown = [
        ListedSession(_list_entry(Facts._make(_values_of(row)), user, row.owner), row, row.role)
        for row in found[:count]
    ]
    return Slice(shown, more=len(found) > count)


def _filtered_sessions(user: User, only: ListFilter) -> QuerySet[Session]:
    if only.deleted:
        sessions = deleted_sessions_of(user)
    else:
        status = Session.Status.ARCHIVED if only.archived else Session.Status.ACTIVE
        sessions = listed_sessions_of(user).filter(status=status)
    sessions = sessions.filter(only.within or Q())
    if only.agent is not None:
        sessions = sessions.filter(agent=only.agent)
    if only.updated_since is not None:
        sessions = sessions.filter(updated_at__gte=only.updated_since)
    return sessions_with(only.words, sessions, in_messages=True)


def recent(user: User, count: int, within: Within | None = None) -> list[Listed]:
    """Read the sessions with the last activity, pinned or not."""
    return _list_entries(_last_active(count).read(user.pk, *values_of(within)), user)


def deleted_sessions(user: User) -> list[Session]:
    """Read the user's own deleted sessions, the last deleted first.

    A session that works for another one is left out if that one is deleted, too, because they are restored together.
    """
    alone = Q(caller_session=None) | ~Q(caller_session__status=Session.Status.DELETED)
    return list(deleted_sessions_of(user).filter(alone).order_by("-deleted_at")[:MAX_DELETED])


def unread_sessions(user: User) -> QuerySet[Row]:
    """Return the sessions that the list marks as unread, unordered, to check whether there are any."""
    return listed_rows(user, archived=False).filter(revision__gt=F("read"), unread=True).order_by()


def grouped(rows: list[Listed], now: datetime, zone: tzinfo) -> list[Group]:
    """Group rows under headings, in their order. Empty groups are left out."""
    today = now.astimezone(zone).date()
    waiting = _("Waiting for you (%(count)s)") % {"count": sum(row.waiting for row in rows)}
    groups: dict[str, Group] = {}
    for row in rows:
        age = today - row.updated_at.astimezone(zone).date()
        key, title = ("waiting", waiting) if row.waiting else ("pinned", _("Pinned")) if row.pinned else _age(age)
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


@lru_cache(maxsize=64)  # a page requests as many rows as it shows
def _first(count: int, archived: bool) -> Composed[tuple[Any, ...]]:
    """Compose the query for the first rows of a list."""

    def build(user_id: int, *within: int) -> QuerySet[Session, tuple[Any, ...]]:
        return listed_rows(User(pk=user_id), archived, sessions_within(*within)).values_list(*READ)[:count]

    return Composed(build)


@lru_cache(maxsize=8)
def _last_active(count: int) -> Composed[tuple[Any, ...]]:
    def build(user_id: int, *within: int) -> QuerySet[Session, tuple[Any, ...]]:
        rows = listed_rows(User(pk=user_id), archived=False, within=sessions_within(*within))
        return rows.order_by("-updated_at").values_list(*READ)[:count]

    return Composed(build)


def values_of(within: Within | None) -> tuple[int, ...]:
    """Return the values of a `Within` for a composed query; none for all sessions."""
    return () if within is None else (within.workspace, *within.others)


def sessions_within(workspace: int | None = None, *others: int) -> Q | None:
    """Return the condition for the values of a `Within`, or None for all sessions."""
    if workspace is None:
        return None
    return Q(workspace=workspace) | ~Q(workspace__in=others) if others else Q(workspace=workspace)


def listed_rows(user: User, archived: bool, within: Q | None = None) -> QuerySet[Row]:
    """Return the rows of a user's list, in its order."""
    status = Session.Status.ARCHIVED if archived else Session.Status.ACTIVE
    # A session in which an agent works for another one is opened from that one. It is listed while it runs or waits.
    shown = Q(caller_session=None) | ~Q(run__state=RunState.IDLE)
    return _with_status(user, listed_sessions_of(user).filter(within or Q(), shown, status=status))


def _with_status(user: User, sessions: QuerySet[Session]) -> QuerySet[Row]:
    """Add the user's status to sessions: pinned, unread, mentioned, waiting. Sort those that wait first."""
    mine = FilteredRelation("participations", condition=Q(participations__user=user))
    sessions = sessions.alias(mine=mine, read=Coalesce("mine__read_revision", 0))
    is_mentioned = When(mine__mentioned_revision__gt=F("read"), then=F("mine__mentioned_revision"))
    mention = Case(is_mentioned, default=Value(0))
    # Others have sent these messages since the user read the session.
    unseen = ChatMessage.objects.filter(can_be_unread(user), session=OuterRef("pk"), revision__gt=OuterRef("read"))
    sessions = sessions.annotate(
        pinned_at=F("mine__pinned_at"),
        unread=Exists(unseen),
        mention=mention,
        waiting=_waiting(user),
        caller=F("caller_session__title"),
    )
    return sessions.order_by("-waiting", F("pinned_at").desc(nulls_last=True), "-updated_at", "pk")


def _waiting(user: User) -> Case:
    """Return an expression for whether a session waits for an answer that the user may give."""
    of_turn = ChatMessage.objects.filter(session=OuterRef("pk"), turn_id=OuterRef("run__turn_id"))
    open_for_user = of_turn.filter(
        ~approved_by(user), ~lacks_role(user), status=MessageStatus.WAITING, subsession__isnull=True
    )
    is_waiting = Q(run__state=RunState.WAITING, run__delegating=False) & Exists(open_for_user)
    waits = is_waiting | (Q(run__state=RunState.RUNNING) & Exists(of_turn.filter(ASKING)))
    mine = When((Q(owner=user) | _may_edit(user)) & waits, then=Value(True))
    return Case(mine, default=Value(False), output_field=BooleanField())


def _may_edit(user: User) -> Q:
    """Return a condition for sessions in which the user is an editor, by a share or as a member of the workspace."""
    shared = Share.objects.filter(session=OuterRef("pk"), user=user, role=SessionRole.EDITOR)
    return Q(Exists(shared)) | Q(open_to(user), workspace_role=SessionRole.EDITOR)


def _list_entries(found: Iterable[tuple[Any, ...]], user: User) -> list[Listed]:
    """Return the rows of the list for the values that `_first` and `_last_active` read."""
    return [_list_entry(Facts._make(each[: len(COLUMNS)]), user, _owner(each, user)) for each in found]


def _owner(read: tuple[Any, ...], user: User) -> User:
    """Return the owner. For other users, only the name and the picture are read."""
    pk = read[COLUMNS.index("owner_id")]
    return user if pk == user.pk else User(pk=pk, **dict(zip(NAMED_BY, read[len(COLUMNS) :], strict=True)))


def _list_entry(facts: Facts, user: User, owner: User) -> Listed:
    at_rest = facts.state in (RunState.IDLE, RunState.WAITING) and not facts.delegating
    return Listed(
        id=facts.id,
        title=facts.title,
        owner=None if facts.owner_id == user.pk else owner,
        workspace=facts.workspace,
        workspace_name=facts.workspace_name,
        archived=facts.status == Session.Status.ARCHIVED,
        pinned=facts.pinned_at is not None,
        unread=facts.unread,
        mention=facts.mention,
        working=not facts.waiting and not at_rest,
        waiting=facts.waiting,
        updated_at=facts.updated_at,
        caller=facts.caller,
    )


def can_be_unread(user: User | OuterRef) -> Q:
    """Return a condition for messages that can be unread: complete ones of others or agents, and open questions."""
    return is_complete_or_open() & (Q(user=None) | ~Q(user=user))


def is_complete_or_open() -> Q:
    """Return a condition for texts and errors that are complete, and for open questions."""
    unfinished = Q(status__in=(MessageStatus.QUEUED, MessageStatus.STREAMING))
    said = Q(type__in=(MessageType.TEXT, MessageType.ERROR)) & ~unfinished
    return Q(removed_at=None) & (said | Q(status=MessageStatus.WAITING, subsession__isnull=True))
