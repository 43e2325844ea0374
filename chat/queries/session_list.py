"""The list of a person's sessions: what each looks like from where they stand, grouped by when it was last active."""

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
    CharField,
    Exists,
    F,
    FilteredRelation,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat, Replace, StrIndex
from django.db.models.lookups import GreaterThan
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.access import deleted_sessions_of, listed_sessions_of, open_to
from chat.models import ASKING, ChatMessage, MessageStatus, MessageType, RunState, Session, SessionRole, Share, User
from chat.overrides.composed_queries import Composed
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
MOST = 2000
MOST_DELETED = 50


class Within(NamedTuple):
    """The sessions of a workspace; with `others`, also those that are in none of these workspaces."""

    workspace: int
    others: tuple[int, ...] = ()


class Facts(NamedTuple):
    """What is read of a session for its row, in the order of COLUMNS."""

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


def _facts_of(session: Row) -> Facts:
    return Facts._make(_values_of(session))


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as its row in the list shows it. `caller`: the title of the session that its agent works for.

    `owner` is set if another user owns it, with their name and picture. `mention`: the revision of the last message
    that mentions the user, or 0 if they have read it. `working`: an agent works in it; `waiting`: it waits for an
    answer that the user may give.
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
        """Whether a message that the user has not read mentions them."""
        return self.mention > 0


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one heading; `key` is the heading's name for programs."""

    key: str
    title: str
    rows: list[Listed]


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session in a list for programs: its row, and the user's role in it."""

    listed: Listed
    session: Session
    role: str


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What narrows a list down. `words` are in the title, the owner's name or a message; `deleted`: restorable ones."""

    archived: bool = False
    deleted: bool = False
    words: str = ""
    agent: str | None = None
    updated_since: datetime | None = None
    within: Q | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of a list, the last active first, whatever is pinned; `more` when others come after them."""

    rows: list[ListedSession]
    more: bool


EVERYTHING = ListFilter()


@dataclass(frozen=True, slots=True)
class Listing:
    """The list, or its beginning: `more` is how many rows to ask for to see more of it, 0 when this is all."""

    groups: list[Group]
    more: int

    @property
    def owners(self) -> set[User]:
        """Whose sessions these are, where they are not the reader's."""
        return {row.owner for group in self.groups for row in group.rows if row.owner}


def listing(
    user: User, zone: tzinfo, *, shown: int = PAGE, archived: bool = False, within: Within | None = None
) -> Listing:
    """Read the person's list: sessions that wait for them, pinned ones, then the last active, by days of their zone.

    One query. `within` limits the list.
    """
    shown = max(PAGE, min(shown, MOST))
    found = _first(shown + 1, archived).read(user.pk, *_values(within))
    rows = _all_listed(found[:shown], user)
    more = shown + 2 * PAGE if len(found) > shown else 0
    if archived:
        return Listing([Group("archived", _("Archived"), rows)] if rows else [], more)
    return Listing(grouped(rows, timezone.now(), zone), more)


def listed_before(
    user: User, place: tuple[datetime, str] | None = None, *, count: int = PAGE, only: ListFilter = EVERYTHING
) -> Slice:
    """Read the rows that come after a `place`, which is a row's time and id; None: from the first on.

    One query; one more on SQLite where words are searched.
    """
    rows = _with_status(user, _filtered(user, only)).select_related("owner", "run", "workspace")
    rows = rows.order_by("-updated_at", "pk")
    is_owner, is_editor = When(owner=user, then=Value("owner")), When(_may_edit(user), then=Value("editor"))
    rows = rows.annotate(role=Case(is_owner, is_editor, default=Value("viewer")))
    if place is not None:
        updated_at, pk = place
        rows = rows.filter(Q(updated_at__lt=updated_at) | Q(updated_at=updated_at, pk__gt=pk))
    found = list(rows[: count + 1])
    shown = [ListedSession(_listed(_facts_of(row), user, row.owner), row, row.role) for row in found[:count]]
    return Slice(shown, more=len(found) > count)


def _filtered(user: User, only: ListFilter) -> QuerySet[Session]:
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
    """Read the last active sessions, wherever they are in the list."""
    return _all_listed(_last_active(count).read(user.pk, *_values(within)), user)


def deleted_sessions(user: User) -> list[Session]:
    """Read the user's own deleted sessions, the last deleted first, without those in which agents worked for others."""
    return list(deleted_sessions_of(user).filter(caller_session=None).order_by("-deleted_at")[:MOST_DELETED])


def others_in(user: User, session_ids: Iterable[str]) -> int:
    """Count the other people who can open those of these sessions that the user owns."""
    own = Session.objects.filter(pk__in=list(session_ids), owner=user).exclude(status=Session.Status.DELETED)
    invited = User.objects.filter(shares__session__in=own)
    members = User.objects.filter(memberships__workspace__in=own.exclude(workspace_role="").values("workspace"))
    return (invited | members).exclude(pk=user.pk).distinct().count()


def unread_sessions(user: User) -> QuerySet[Row]:
    """What the list marks as unread, in no order: to be asked whether there is any."""
    return _rows(user, archived=False).filter(revision__gt=F("read"), unread=True).order_by()


def grouped(rows: list[Listed], now: datetime, zone: tzinfo) -> list[Group]:
    """Put rows, in their order, under headings; empty ones are left out."""
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


@lru_cache(maxsize=64)  # a page asks for as many rows as it shows
def _first(count: int, archived: bool) -> Composed[tuple[Any, ...]]:
    """Compose the query for the first rows of a list."""

    def build(user_id: int, *within: int) -> QuerySet[Session, tuple[Any, ...]]:
        return _rows(User(pk=user_id), archived, _places(*within)).values_list(*READ)[:count]

    return Composed(build)


@lru_cache(maxsize=8)
def _last_active(count: int) -> Composed[tuple[Any, ...]]:
    def build(user_id: int, *within: int) -> QuerySet[Session, tuple[Any, ...]]:
        rows = _rows(User(pk=user_id), archived=False, within=_places(*within))
        return rows.order_by("-updated_at").values_list(*READ)[:count]

    return Composed(build)


def _values(within: Within | None) -> tuple[int, ...]:
    return () if within is None else (within.workspace, *within.others)


def _places(workspace: int | None = None, *others: int) -> Q | None:
    """Return the condition of a `Within`."""
    if workspace is None:
        return None
    return Q(workspace=workspace) | ~Q(workspace__in=others) if others else Q(workspace=workspace)


def _rows(user: User, archived: bool, within: Q | None = None) -> QuerySet[Row]:
    status = Session.Status.ARCHIVED if archived else Session.Status.ACTIVE
    # An agent's work for another session is reached from that one, and listed while it goes on or waits for people.
    shown = Q(caller_session=None) | ~Q(run__state=RunState.IDLE)
    return _with_status(user, listed_sessions_of(user).filter(within or Q(), shown, status=status))


def _with_status(user: User, sessions: QuerySet[Session]) -> QuerySet[Row]:
    """Add what the list shows of each session for one user: pinned, unread, working, waiting; those that wait first."""
    mine = FilteredRelation("participations", condition=Q(participations__user=user))
    sessions = sessions.alias(mine=mine, read=Coalesce("mine__read_revision", 0))
    is_mentioned = When(mine__mentioned_revision__gt=F("read"), then=F("mine__mentioned_revision"))
    mention = Case(is_mentioned, default=Value(0))
    sessions = sessions.annotate(
        pinned_at=F("mine__pinned_at"),
        unread=Exists(_unseen(user)),
        mention=mention,
        waiting=_waiting(user),
        caller=F("caller_session__title"),
    )
    return sessions.order_by("-waiting", F("pinned_at").desc(nulls_last=True), "-updated_at", "pk")


def _waiting(user: User) -> Case:
    """Whether a session waits for an answer that the user may give."""
    of_turn = ChatMessage.objects.filter(session=OuterRef("pk"), turn_id=OuterRef("run__turn_id"))
    open_for_user = of_turn.filter(~_agreed(user), status=MessageStatus.WAITING, subsession__isnull=True)
    is_paused = Q(run__state=RunState.WAITING, run__delegating=False) & Exists(open_for_user)
    waits = is_paused | (Q(run__state=RunState.RUNNING) & Exists(of_turn.filter(ASKING)))
    mine = When((Q(owner=user) | _may_edit(user)) & waits, then=Value(True))
    return Case(mine, default=Value(False), output_field=BooleanField())


def _agreed(user: User) -> Q:
    """Return whether a user has approved a call that waits for others, too. The list of their ids is read as text."""
    ids: Combinable = Coalesce(KT("approval__agreed"), Value(""))
    for sign, by in ((" ", ""), ("[", ","), ("]", ",")):
        ids = Replace(ids, Value(sign), Value(by))
    wanted = Concat(Value(","), Cast(Value(user.pk), CharField()), Value(","))
    return Q(GreaterThan(StrIndex(ids, wanted), 0))


def _may_edit(user: User) -> Q:
    """Return whether a user is an editor of a session that they may see, by a share or as a member of the workspace."""
    shared = Share.objects.filter(session=OuterRef("pk"), user=user, role=SessionRole.EDITOR)
    return Q(Exists(shared)) | Q(open_to(user), workspace_role=SessionRole.EDITOR)


def _unseen(user: User) -> QuerySet[ChatMessage]:
    """What has been said since the person looked."""
    return ChatMessage.objects.filter(said_by_others(user), session=OuterRef("pk"), revision__gt=OuterRef("read"))


def _all_listed(found: Iterable[tuple[Any, ...]], user: User) -> list[Listed]:
    """Make the rows of what `_first` and `_last_active` read."""
    return [_listed(Facts._make(each[: len(COLUMNS)]), user, _owner(each, user)) for each in found]


def _owner(read: tuple[Any, ...], user: User) -> User:
    """Return the owner; of others, only the name and the picture are read."""
    pk = read[COLUMNS.index("owner_id")]
    return user if pk == user.pk else User(pk=pk, **dict(zip(NAMED_BY, read[len(COLUMNS) :], strict=True)))


def _listed(facts: Facts, user: User, owner: User) -> Listed:
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


def said_by_others(user: User | OuterRef) -> Q:
    """Which messages can be unread: what others, the agent above all, have said to the end or are waiting for."""
    return is_said() & (Q(user=None) | ~Q(user=user))


def is_said() -> Q:
    """Which messages are said to the end, or wait for an answer."""
    unfinished = Q(status__in=(MessageStatus.QUEUED, MessageStatus.STREAMING))
    said = Q(type__in=(MessageType.TEXT, MessageType.ERROR)) & ~unfinished
    return Q(removed_at=None) & (said | Q(status=MessageStatus.WAITING, subsession__isnull=True))
