"""Guests: users with access to one session of a workspace by an invitation link, and to nothing else in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.access import may_begin_sessions, person_for, session_for, sessions_of, workspace_for
from chat.errors import NoSuchWorkspace, NotForGuests, ServiceError
from chat.models import Invitation, Membership, SecurityEvent, Session, SessionRole, Share, User, Workspace
from chat.queries import offers
from chat.services.people import accounts, guests, joining, sharing, workspace_invitations
from chat.services.people.workspaces import current_workspace, listed_workspaces
from chat.services.sessions import actions
from chat.services.sessions.lifecycle import create_session
from chat.transfer.importing.files import import_file
from tests.support.members import code_of, role_of
from tests.support.testing_node import ScriptedRegistry, person

pytestmark = pytest.mark.django_db
WorkspaceRole = Membership.Role


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


@pytest.fixture
def guest(session: Session, ana: User) -> User:
    """A user whose account was created by an invitation."""
    token = sharing.invite(session=session, author=ana, role="editor")[1]
    user, _session = accounts.register(token=token, username="gil", display_name="Gil", password="correct horse")
    return user


def test_invited_users_are_guests(session: Session, guest: User, ana: User, bo: User, workspace: Workspace) -> None:
    """LIVE-06: guests see the session and its users, and cannot start sessions."""
    other = create_session(owner=bo)
    assert role_of(guest, workspace) == "guest"
    assert list(sessions_of(guest)) == [session]
    assert [person_for(guest, user.pk) for user in (ana, bo)] == [ana, None]
    assert person_for(bo, guest.pk) == guest
    with pytest.raises(NoSuchWorkspace):
        workspace_for(guest, workspace.pk)
    with pytest.raises(NotForGuests):
        current_workspace(guest)
    assert not may_begin_sessions(guest)
    assert listed_workspaces(guest).mine == ()
    assert (list(sessions_of(guest).filter(pk=other.pk)), Workspace.objects.count()) == ([], 1)


def test_guests_know_the_models_of_their_sessions(session: Session, guest: User, ana: User) -> None:
    """Guests get the models of their sessions, and neither other models nor agents."""
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    known = offers.models_for(ana)
    assert [choice.model for choice in known] == ["one", "two"]
    Session.objects.filter(pk=session.pk).update(provider=known[1].provider, model=known[1].model)
    assert (offers.models_for(guest), offers.agents_for(guest)) == ([known[1]], [])
    assert len(offers.agents_for(ana)) > 0


def test_membership_of_guests_ends_with_their_last_session(session: Session, guest: User, ana: User) -> None:
    """LIVE-06: a guest's membership ends with their last session in any way, and they can start nothing afterwards."""
    second, third = create_session(owner=ana), create_session(owner=ana)
    for each in (second, third):
        sharing.share(session=each, author=ana, user=guest, role="viewer")
    sharing.unshare(session=session, author=ana, user=guest)
    actions.leave(user=guest, session_id=second.pk)
    assert role_of(guest, third.workspace) == "guest"
    sharing.unshare(session=third, author=ana, user=guest)
    assert role_of(guest, third.workspace) is None
    assert not may_begin_sessions(guest)
    assert code_of(lambda: current_workspace(guest)) == "forbidden"


def test_members_stay_members(session: Session, ana: User, bo: User, workspace: Workspace) -> None:
    """An invitation link does not turn members into guests, and their membership does not end with a share."""
    token = sharing.invite(session=session, author=ana, role="viewer")[1]
    sharing.accept(token=token, user=bo)
    assert role_of(bo, workspace) == "member"
    actions.leave(user=bo, session_id=session.pk)
    assert role_of(bo, workspace) == "member"


def test_old_shares_do_not_come_back_with_an_invitation(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: a former member who is invited to one session does not get their earlier shares back."""
    old = create_session(owner=ana)
    sharing.share(session=old, author=ana, user=bo, role="editor")
    Membership.objects.filter(user=bo).delete()
    sharing.accept(token=sharing.invite(session=session, author=ana, role="viewer")[1], user=bo)
    assert list(sessions_of(bo)) == [session]


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_former_member_comes_back_into_a_session_that_was_shared_with_them(
    session: Session, ana: User, bo: User, workspace: Workspace, role: str
) -> None:
    """LIVE-06: the share of a former member gives no access, so it does not use up their invitation either."""
    sharing.share(session=session, author=ana, user=bo, role="editor")
    Membership.objects.filter(user=bo).delete()
    assert sharing.accept(token=sharing.invite(session=session, author=ana, role=role)[1], user=bo) == session
    assert (role_of(bo, workspace), session_for(bo, session.pk)[1]) == ("guest", role)


def test_owner_of_a_workspace_can_be_a_guest_in_another(session: Session, ana: User) -> None:
    """A workspace's owner can be a guest in another one.

    They start sessions in their own and see the shared session.
    """
    cy = person("Cy")
    sharing.accept(token=sharing.invite(session=session, author=ana, role="viewer")[1], user=cy)
    own = create_session(owner=cy)
    assert own.workspace != session.workspace
    workspaces = listed_workspaces(cy)
    assert [workspace.id for workspace in workspaces.mine] == [own.workspace_id]
    assert workspaces.within is None  # with one workspace, the list has all sessions
    assert set(sessions_of(cy)) == {own, session}


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_managers_make_guests_members(guest: User, bo: User, workspace: Workspace, role: str) -> None:
    """Only owners and admins of the workspace make guests members."""
    who: dict[str, Any] = {"workspace_id": workspace.pk, "user_id": guest.pk}
    assert list(guests.guests_managed_by(bo)) == []
    assert code_of(lambda: guests.make_member(author=bo, **who)) == "no_such_workspace"
    Membership.objects.filter(user=bo).update(role=role)
    assert [(each.user, each.session_count) for each in guests.guests_managed_by(bo)] == [(guest, 1)]
    guests.make_member(author=bo, **who)
    assert (role_of(guest, workspace), current_workspace(guest)) == ("member", workspace)
    assert code_of(lambda: guests.make_member(author=bo, **who)) == "not_a_guest"
    assert code_of(lambda: guests.remove(author=bo, **who)) == "not_a_guest"


def test_managers_remove_guests(guest: User, bo: User, workspace: Workspace) -> None:
    """LIVE-06: a removed guest loses all shared sessions, and the links to the workspace, which they may know, are
    revoked."""
    Membership.objects.filter(user=bo).update(role="admin")
    _, token = workspace_invitations.invite(author=bo, workspace_id=workspace.pk)
    guests.remove(author=bo, workspace_id=workspace.pk, user_id=guest.pk)
    assert (role_of(guest, workspace), Share.objects.filter(user=guest).exists()) == (None, False)
    assert workspace_invitations.invitation_for(token) is None


def test_removed_guest_cannot_come_back_by_their_link(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: removing a guest revokes the links to their sessions, because they may have one.

    Links to other sessions stay.
    """
    Membership.objects.filter(user=bo).update(role="admin")
    gil, other = User.objects.create_user("gil", can_own_workspace=False), create_session(owner=ana)
    token = sharing.invite(session=session, author=ana, role="viewer", uses=5)[1]
    kept = sharing.invite(session=other, author=ana, role="viewer")[1]
    sharing.accept(token=token, user=gil)
    guests.remove(author=bo, workspace_id=session.workspace_id, user_id=gil.pk)
    assert code_of(lambda: sharing.accept(token=token, user=gil)) == "no_such_invitation"
    assert role_of(gil, session.workspace) is None
    assert sharing.invitation_for(kept).session == other
    assert SecurityEvent.objects.filter(kind="invitation_ended", actor=bo, details__count=1).count() == 1


def test_guests_cannot_invite(session: Session, guest: User, ana: User) -> None:
    """LIVE-06: guests cannot invite, not even to sessions that they own from an earlier membership, and their links
    end."""
    token = sharing.invite(session=session, author=ana, role="viewer")[1]
    Membership.objects.filter(user=ana).update(role=WorkspaceRole.GUEST)
    assert code_of(lambda: sharing.invitation_for(token)) == "no_such_invitation"
    assert list(sharing.candidates(session)) == []
    for act in (
        lambda: sharing.invite(session=session, author=ana, role="viewer"),
        lambda: sharing.share(session=session, author=ana, user=guest, role="viewer"),
    ):
        assert code_of(act) == "no_such_workspace"


def test_guests_import_nothing(guest: User) -> None:
    """Guests cannot import, because an import makes sessions."""
    file = BytesIO(b'{"format": "parley.session", "version": 1, "session": {}, "messages": []}')
    assert code_of(lambda: import_file(owner=guest, file=file)) == "forbidden"


def test_links_are_for_so_many_people(session: Session, ana: User) -> None:
    """A link is valid for one user by default. A user who already has access does not use it up."""
    cy, dee, eve = (person(name) for name in ("Cy", "Dee", "Eve"))
    token = sharing.invite(session=session, author=ana, role="viewer")[1]
    sharing.accept(token=token, user=cy)
    assert code_of(lambda: sharing.accept(token=token, user=dee)) == "no_such_invitation"
    assert sharing.invitations(session) == []
    token = sharing.invite(session=session, author=ana, role="viewer", uses=2)[1]
    for user in (cy, ana, dee, dee):
        sharing.accept(token=token, user=user)
    assert [link.uses_left for link in sharing.invitations(session)] == [1]
    sharing.accept(token=token, user=eve)
    assert sharing.session_by_used_link(token, eve) == session
    assert sharing.session_by_used_link(token, person("Fay")) is None


@pytest.mark.parametrize("uses", [0, -1, 101])
def test_links_are_for_a_number_of_people(session: Session, ana: User, uses: int) -> None:
    """An invitation link has a valid number of uses (MSG-12)."""
    assert code_of(lambda: sharing.invite(session=session, author=ana, role="viewer", uses=uses)) == "invalid"


def test_links_from_before_have_no_limit(session: Session, ana: User) -> None:
    """Links from earlier versions have no limit of uses, and still expire after a week."""
    token = sharing.invite(session=session, author=ana, role="viewer")[1]
    Invitation.objects.update(max_uses=None)
    for name in ("Cy", "Dee", "Eve"):
        sharing.accept(token=token, user=person(name))
    assert [(link.uses, link.uses_left) for link in sharing.invitations(session)] == [(3, None)]


def test_links_raise_a_role_once(session: Session, ana: User) -> None:
    """LIVE-06: a viewer becomes an editor by a second link, which counts as used. A link never lowers a role."""
    cy = person("Cy")
    for role in ("viewer", "editor", "viewer"):
        sharing.accept(token=sharing.invite(session=session, author=ana, role=role)[1], user=cy)
    assert Share.objects.get(user=cy).role == SessionRole.EDITOR
    assert list(Invitation.objects.order_by("pk").values_list("uses", flat=True)) == [1, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_share_the_last_use(session: Session, ana: User) -> None:
    """LIVE-06: if three users use the last use of a link at the same time, one of them gets access."""
    people = [person(name) for name in ("Cy", "Dee", "Eve")]
    token = sharing.invite(session=session, author=ana, role="viewer")[1]

    def join(user: User) -> bool:
        try:
            sharing.accept(token=token, user=user)
        except ServiceError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(join, people)) == 1
    assert Share.objects.filter(session=session).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_take_names_that_look_the_same(
    session: Session, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second name is refused, because readers could not tell the two users apart."""
    names, together, accept = ("ape", "\u0430\u0440\u0435"), Barrier(2), joining.accept  # the second is Cyrillic
    tokens = [sharing.invite(session=session, author=ana, role="viewer")[1] for _name in names]

    def wait_and_accept(**values: Any) -> Any:
        with suppress(BrokenBarrierError):
            together.wait(timeout=0.5)  # both users are added now, or the other one must wait
        return accept(**values)

    def register(token: str, name: str) -> bool:
        try:
            accounts.register(token=token, username=name, display_name="Gil", password="correct horse")
        except ServiceError:
            return False
        finally:
            connection.close()
        return True

    monkeypatch.setattr(joining, "accept", wait_and_accept)
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(register, tokens, names)) == 1


def test_pages_offer_guests_only_what_they_may_do(session: Session, guest: User, client: Client) -> None:
    """Pages do not offer guests a new session, an import, a fork or the choice of a model."""
    client.force_login(guest)
    home, page = (client.get(address).content.decode() for address in ("/", f"/sessions/{session.pk}/"))
    for html in (home, page):
        assert 'id="new-session"' not in html
    assert 'id="begin"' not in home
    assert "Plan" in home
    assert 'data-guest="yes"' in page
    assert 'data-action="model"' not in page
    assert 'id="composer"' in page


def test_used_invitation_leads_its_guest_to_the_session(
    session: Session, ana: User, guest: User, client: Client
) -> None:
    """A guest who follows a used link again, for example from the mail, gets to the session."""
    token = sharing.invite(session=session, author=ana, role="viewer")[1]
    sharing.accept(token=token, user=person("Cy"))
    address = f"/join/{token}"
    assert client.get(address).status_code == 410
    client.force_login(guest)
    answer = client.get(address)
    assert (answer.status_code, answer["Location"]) == (302, f"/sessions/{session.pk}/")
