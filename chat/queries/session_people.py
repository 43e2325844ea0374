"""The users of sessions, to notify them of changes. `chat.access` decides who may see a session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import F, Q, QuerySet

from chat.access import is_member, open_sessions, shares
from chat.models import Membership, Session, SessionRole, Share, User, UserSessionState


def writers_in(session_id: str) -> int:
    """Return how many people can write in a session."""
    owner = Session.objects.filter(pk=session_id, owner__is_active=True).order_by().values("owner")
    shared = shares().filter(session=session_id, role=SessionRole.EDITOR).values("user")
    opened = open_sessions().filter(pk=session_id, workspace_role=SessionRole.EDITOR).values("workspace")
    return owner.union(shared, _members_of(opened)).count()


def writers_in_each(session_ids: Iterable[str]) -> dict[str, int]:
    """Return how many people can write in each of many sessions, in three queries."""
    ids = list(session_ids)
    owners = Session.objects.filter(pk__in=ids, owner__is_active=True).order_by().values_list("pk", "owner_id")
    shared = shares().filter(session__in=ids, role=SessionRole.EDITOR).values_list("session_id", "user_id")
    opened = open_sessions().filter(pk__in=ids, workspace_role=SessionRole.EDITOR).order_by()
    workspaces = dict(opened.values_list("pk", "workspace_id"))
    members, writers = defaultdict[int, set[int]](set), defaultdict[str, set[int]](set)
    for workspace_id, user_id in _members_of(set(workspaces.values())).values_list("workspace_id", "user_id"):
        members[workspace_id].add(user_id)
    for session_id, user_id in owners.union(shared):
        writers[session_id].add(user_id)
    return {each: len(writers[each] | members[workspaces.get(each, 0)]) for each in ids}


def _members_of(workspaces: Iterable[Any]) -> QuerySet[Any]:
    """Return the ids of the active members of workspaces, without guests."""
    members = Membership.objects.filter(workspace__in=workspaces, user__is_active=True)
    return members.exclude(role=Membership.Role.GUEST).values("user")


def people_in(session_ids: Iterable[str]) -> set[int]:
    """Return the ids of all users with access to any of these sessions, even if it is deleted, in one query."""
    return {user_id for _session, user_id in listed_pairs(session_ids)}


def listed_pairs(session_ids: Iterable[str]) -> list[tuple[str, int]]:
    """Return pairs of session id and user id for all who have the sessions in their list, in one query.

    Deleted sessions are included.
    """
    ids = set(session_ids)
    owners = Session.objects.filter(pk__in=ids, owner__is_active=True).values_list("pk", "owner_id")
    invited = Share.objects.filter(session__in=ids, user__is_active=True)
    guests = invited.filter(user__memberships__workspace=F("session__workspace")).values_list("session_id", "user_id")
    return list(owners.union(guests, _entered_states(ids).values_list("session_id", "user_id")))


def _entered_states(session_ids: Iterable[str]) -> QuerySet[UserSessionState]:
    """Return the states of members who have opened sessions that are open to their workspace."""
    entered = UserSessionState.objects.filter(session__in=session_ids, user__is_active=True)
    return entered.filter(is_member("user", "session__workspace"), session__workspace_role__gt="")


def editors_in(session_ids: Iterable[str]) -> set[tuple[int, str]]:
    """Return pairs of user id and session id for users who may write in sessions of their lists, in one query.

    Deleted sessions are left out.
    """
    ids = set(session_ids)
    owners = Session.objects.filter(pk__in=ids, owner__is_active=True).exclude(status=Session.Status.DELETED)
    shared = shares().filter(session__in=ids, role=SessionRole.EDITOR)
    opened = open_sessions().filter(pk__in=ids, workspace_role=SessionRole.EDITOR)
    entered = _entered_states(ids).filter(session__in=opened.values("pk"))
    pairs = owners.order_by().values_list("owner_id", "pk")
    return set(pairs.union(shared.values_list("user_id", "session_id"), entered.values_list("user_id", "session_id")))


def people_of(session: Session) -> QuerySet[User]:
    """Return all users with access to a session that is not deleted, unordered."""
    return User.objects.filter(Q(pk=session.owner_id, is_active=True) | _are_admitted_to([session.pk]))


def others_in(user: User, session_ids: Iterable[str]) -> int:
    """Return how many other users can open the sessions among these that the user owns."""
    own = Session.objects.filter(pk__in=list(session_ids), owner=user).order_by().values_list("pk", flat=True)
    return User.objects.filter(_are_admitted_to(own)).exclude(pk=user.pk).count()


def _are_admitted_to(session_ids: Iterable[str]) -> Q:
    ids = list(session_ids)
    shared = shares().filter(session__in=ids).values("user")
    opened = _members_of(open_sessions().filter(pk__in=ids).values("workspace"))
    return Q(pk__in=shared) | Q(pk__in=opened)


def sessions_concerned(workspace_id: int, user_ids: Iterable[int], session_ids: Iterable[str]) -> dict[str, int]:
    """Return those of many sessions, with their owners' ids, that users can open by a role in the workspace or a share.

    These are the sessions that are open to the workspace, or that one of the users owns or has a share of.
    """
    users = list(user_ids)
    shared = Share.objects.filter(user__in=users).values("session")
    rows = Session.objects.filter(pk__in=list(session_ids), workspace=workspace_id).order_by()
    rows = rows.filter(Q(workspace_role__gt="") | Q(owner__in=users) | Q(pk__in=shared))
    return dict(rows.values_list("pk", "owner_id"))
