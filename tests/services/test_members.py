"""Roles in a workspace: who may change them, and that a workspace keeps an owner."""

from __future__ import annotations

import pytest

from chat.access import may, role_in, workspace_where, workspaces_where
from chat.errors import Forbidden, NoSuchWorkspace
from chat.models import Membership, SecurityEvent, Session, SessionRole, User, Workspace
from chat.permissions import PERMISSIONS, Permission
from chat.services.people import members, sharing
from chat.services.sessions.lifecycle import create_session
from tests.support.members import code_of, role_of
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def olga(workspace: Workspace) -> User:
    return member("Olga", workspace, Role.OWNER)


@pytest.fixture
def adam(workspace: Workspace) -> User:
    return member("Adam", workspace, Role.ADMIN)


def member(name: str, workspace: Workspace, role: Role) -> User:
    user = person(name, workspace)
    user.memberships.update(role=role)
    return user


def change(author: User, user: User, workspace: Workspace, role: str) -> Membership:
    return members.change_role(author=author, workspace_id=workspace.pk, user_id=user.pk, role=role)


def test_roles_permit_what_the_table_says(workspace: Workspace, olga: User, adam: User, ana: User) -> None:
    """LIVE-06: the permissions are those of the table in docs/users.md, which needs a row for each role."""
    assert set(PERMISSIONS) == set(Role)
    assert all(may(user, each, workspace.pk) for user in (olga, adam) for each in Permission)
    own = {
        Permission.INVITE,
        Permission.SEE_MEMBERS,
        Permission.MAKE_AGENTS,
        Permission.ADD_KNOWLEDGE,
    }
    assert {each for each in Permission if may(ana, each, workspace.pk)} == own
    zoe = person("Zoe")
    assert not any(may(zoe, each, workspace.pk) for each in Permission)
    assert list(workspaces_where(adam, Permission.MANAGE_RULES)) == [workspace]
    with pytest.raises(Forbidden):
        workspace_where(ana, Permission.SEE_USAGE, workspace.pk)
    with pytest.raises(NoSuchWorkspace):
        workspace_where(person("Yan"), Permission.SEE_USAGE, workspace.pk)


def test_admins_change_all_but_owners(workspace: Workspace, olga: User, adam: User, ana: User) -> None:
    """LIVE-06: admins change all members except owners, and make no owners. The security log records each change."""
    assert change(adam, ana, workspace, "admin").role == "admin"
    event = SecurityEvent.objects.get(kind="member_changed")
    assert (event.actor_id, event.person_id, event.details) == (adam.pk, ana.pk, {"before": "member", "role": "admin"})
    change(adam, ana, workspace, "member")
    assert code_of(lambda: change(adam, ana, workspace, "owner")) == "forbidden"
    assert code_of(lambda: change(adam, olga, workspace, "member")) == "forbidden"
    assert code_of(lambda: members.remove(author=adam, workspace_id=workspace.pk, user_id=olga.pk)) == "forbidden"
    assert code_of(lambda: change(ana, adam, workspace, "member")) == "forbidden"
    assert code_of(lambda: change(ana, ana, workspace, "admin")) == "forbidden"
    assert code_of(lambda: change(olga, ana, workspace, "guest")) == "invalid"
    assert code_of(lambda: change(olga, person("Zoe"), workspace, "admin")) == "no_such_member"
    assert code_of(lambda: change(person("Yan"), ana, workspace, "admin")) == "no_such_workspace"
    assert (role_of(ana, workspace), role_of(olga, workspace)) == ("member", "owner")


@pytest.mark.both_databases
def test_the_last_owner_stays(workspace: Workspace, olga: User, ana: User) -> None:
    """LIVE-06: the last owner stays until another member is an owner too.

    Owners with inactive accounts do not count.
    """
    sleeping = member("Sam", workspace, Role.OWNER)
    User.objects.filter(pk=sleeping.pk).update(is_active=False)
    assert code_of(lambda: change(olga, olga, workspace, "member")) == "last_owner"
    assert code_of(lambda: members.remove(author=olga, workspace_id=workspace.pk, user_id=olga.pk)) == "last_owner"
    change(olga, ana, workspace, "owner")
    change(olga, olga, workspace, "member")
    assert (role_of(olga, workspace), role_of(ana, workspace)) == ("member", "owner")


def test_a_removal_can_be_undone(workspace: Workspace, adam: User, ana: User, bo: User) -> None:
    """LIVE-06: a removed member loses shared sessions and keeps their own. Undo restores the membership and the
    shares."""
    shared = create_session(owner=bo, workspace=workspace)
    own = create_session(owner=ana, workspace=workspace)
    sharing.share(session=shared, author=bo, user=ana, role="editor")
    removed = members.remove(author=adam, workspace_id=workspace.pk, user_id=ana.pk)
    assert (role_in(ana, shared), role_in(ana, own)) == (None, SessionRole.OWNER)

    def undo(author: User, token: str) -> Membership:
        return members.bring_back(author=author, workspace_id=workspace.pk, undo=token)

    assert code_of(lambda: undo(bo, removed.undo)) == "forbidden"
    assert code_of(lambda: undo(adam, removed.undo[:-1])) == "too_late"
    assert undo(adam, removed.undo).role == "member"
    assert role_in(ana, shared) == SessionRole.EDITOR
    assert undo(adam, removed.undo).user == ana  # a second time, without effect


def test_undo_makes_a_guest_a_member_again(workspace: Workspace, adam: User, ana: User, bo: User) -> None:
    """A removed member has accepted an invitation to one session before the removal is undone."""
    session = create_session(owner=bo, workspace=workspace)
    removed = members.remove(author=adam, workspace_id=workspace.pk, user_id=ana.pk)
    sharing.accept(token=sharing.invite(session=session, author=bo, role="editor")[1], user=ana)
    assert role_of(ana, workspace) == "guest"
    assert members.bring_back(author=adam, workspace_id=workspace.pk, undo=removed.undo).role == "member"
    assert (role_of(ana, workspace), role_in(ana, session)) == ("member", SessionRole.EDITOR)


def test_links_that_a_removed_member_may_know_end(workspace: Workspace, adam: User, ana: User, bo: User) -> None:
    """LIVE-06: removing a member revokes the links to sessions shared with them, so they cannot return as a guest."""
    shared, other = create_session(owner=bo, workspace=workspace), create_session(owner=bo, workspace=workspace)
    sharing.share(session=shared, author=bo, user=ana, role="editor")
    known, unknown = (sharing.invite(session=each, author=bo, role="editor", uses=5)[1] for each in (shared, other))
    members.remove(author=adam, workspace_id=workspace.pk, user_id=ana.pk)
    assert code_of(lambda: sharing.accept(token=known, user=ana)) == "no_such_invitation"
    assert role_of(ana, workspace) is None
    assert sharing.invitation_for(unknown).session == other


def test_members_may_leave(workspace: Workspace, ana: User, olga: User) -> None:
    """LIVE-06: a member may leave by removing themselves, without the permission to manage members."""
    members.remove(author=ana, workspace_id=workspace.pk, user_id=ana.pk)
    assert role_of(ana, workspace) is None


def test_a_guest_can_get_any_role(workspace: Workspace, olga: User, ana: User) -> None:
    """LIVE-06: a guest becomes a member or gets a higher role, or is removed together with their shares."""
    session: Session = create_session(owner=ana, workspace=workspace)
    guests = []
    for name in ("gil", "gus"):
        guest = User.objects.create_user(name, can_own_workspace=False)
        sharing.accept(token=sharing.invite(session=session, author=ana, role="viewer")[1], user=guest)
        guests.append(guest)
    change(olga, guests[0], workspace, "admin")
    assert role_of(guests[0], workspace) == "admin"
    assert members.remove(author=olga, workspace_id=workspace.pk, user_id=guests[1].pk).undo == ""
    assert (role_of(guests[1], workspace), role_in(guests[1], session)) == (None, None)
