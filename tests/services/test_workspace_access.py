"""Sessions that are open to all members of their workspace (UI-23)."""

from __future__ import annotations

from datetime import UTC

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import reverse

from chat import access
from chat.access import role_in, roles, session_for
from chat.errors import Forbidden, NoSuchSession, ServiceError
from chat.models import Membership, MemoryNote, Session, SessionRole, User, UserSessionState
from chat.queries.memory import notes_in
from chat.queries.search import search
from chat.queries.session_list import listed_before, listing
from chat.queries.session_people import editors_in, people_in, people_of, writers_in
from chat.services.deletion.users import close_account
from chat.services.messages.sending import send_message
from chat.services.people import members, sharing
from chat.services.sessions import actions, user_state
from chat.services.sessions.lifecycle import configure, create_session
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    session = create_session(owner=ana, title="Plan")
    configure(session=session, author=ana, replies="mentions")
    return session


def open_to(session: Session, author: User, role: str) -> Session:
    sharing.open_to_workspace(session=session, author=author, role=role)
    return Session.objects.get(pk=session.pk)


def guest_of(session: Session, name: str, role: str) -> User:
    user = person(name)
    Membership.objects.create(workspace=session.workspace, user=user, role=Membership.Role.GUEST)
    let_in(session, user, role)
    return user


def listed(user: User) -> list[str]:
    return [row.id for group in listing(user, UTC).groups for row in group.rows]


def both(user: User, session: Session) -> SessionRole | None:
    """Return the user's role, after checking that the page and the live stream give the same."""
    role = role_in(user, session)
    assert roles([(user.pk, session.pk)]).get((user.pk, session.pk)) == role
    return role


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_members_get_the_role_and_no_others(session: Session, ana: User, bo: User, role: str) -> None:
    """UI-23: members get the role that the session gives. Guests, strangers and anonymous users get none."""
    editor, viewer = person("Ed", session.workspace), person("Vi", session.workspace)
    let_in(session, editor, "editor")
    let_in(session, viewer, "viewer")
    guest, stranger = guest_of(session, "Gil", "viewer"), person("Cem")
    other = guest_of(create_session(owner=ana), "Other guest", "editor")
    gone = person("Gone", session.workspace)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    session = open_to(session, ana, role)
    found = [both(user, session) for user in (ana, editor, viewer, bo, guest, other, stranger, gone)]
    assert found == ["owner", "editor", role, role, "viewer", None, None, None]
    assert session_for(bo, session.pk)[1] == role
    for user in (stranger, other, gone, AnonymousUser()):
        with pytest.raises(NoSuchSession):
            session_for(user, session.pk)
    if role == "viewer":
        with pytest.raises(Forbidden):
            session_for(bo, session.pk, SessionRole.EDITOR)
    session = open_to(session, ana, "")
    assert [both(user, session) for user in (ana, editor, viewer, bo)] == ["owner", "editor", "viewer", None]


def test_only_the_owner_opens_a_session(client: Client, session: Session, ana: User, bo: User) -> None:
    """UI-23: only the owner opens a session, in the dialog. Other users are refused as in the rest of the dialog."""
    address, dialog = (reverse(name, args=[session.pk]) for name in ("session-share-workspace", "session-share"))
    let_in(session, bo, "editor")
    assert client.post(address, {"role": "viewer"}).status_code == 302
    for user, role, status in (
        (bo, "viewer", 403),
        (person("Cem"), "viewer", 404),
        (ana, "owner", 422),
        (ana, "viewer", 200),
    ):
        client.force_login(user)
        answer = client.post(address, {"role": role})
        assert (user, answer.status_code) == (user, status)
    assert 'value="viewer" selected' in answer.content.decode()
    client.force_login(bo)
    assert "Anyone in Team can view" in client.get(dialog).content.decode()
    client.force_login(person("Di", session.workspace))
    assert client.get(reverse("session", args=[session.pk])).status_code == 200


def test_session_is_listed_once_it_was_opened(client: Client, session: Session, ana: User, bo: User) -> None:
    """UI-23: search finds the session before it was opened.

    Leaving removes it from the list, and closing from all lists.
    """
    send_message(session=session, author=ana, text="About the harvest")
    session = open_to(session, ana, "viewer")
    assert listed(bo) == []
    assert [hit.session_id for hit in search(bo, "harvest").messages] == [session.pk]
    client.force_login(bo)
    assert client.get(reverse("session", args=[session.pk])).status_code == 200
    assert listed(bo) == [session.pk]
    assert [each.role for each in listed_before(bo).rows] == ["viewer"]
    assert people_in([session.pk]) == {ana.pk, bo.pk}
    actions.leave(user=bo, session_id=session.pk)
    assert (listed(bo), role_in(bo, session)) == ([], "viewer")
    user_state.mark_all_read(session_id=session.pk, revisions={ana.pk: 1, bo.pk: session.revision})
    user_state.mark_read(session=session, user=bo, revision=session.revision)
    assert (listed(bo), listed(ana)) == ([], [session.pk])
    assert list(UserSessionState.objects.values_list("user", "read_revision")) == [(ana.pk, 1)]
    user_state.pin(session=session, user=bo)
    session = open_to(session, ana, "")
    assert listed(bo) == []


def test_leaving_takes_sessions_below_along(client: Client, session: Session, ana: User, bo: User) -> None:
    """UI-23: a member who leaves an open session leaves the sessions of its agents, too."""
    child = create_session(owner=ana, title="Task")
    Session.objects.filter(pk=child.pk).update(caller_session=session)
    session = open_to(session, ana, "editor")
    client.force_login(bo)
    for each in (session, child):
        assert client.get(reverse("session", args=[each.pk])).status_code == 200
    assert editors_in([child.pk]) == {(ana.pk, child.pk), (bo.pk, child.pk)}
    actions.leave(user=bo, session_id=session.pk)
    assert (listed(bo), editors_in([child.pk])) == ([], {(ana.pk, child.pk)})


def test_session_that_a_user_has_left_stays_out_of_their_list(session: Session, ana: User, bo: User) -> None:
    """UI-23: if the owner opens it to the workspace later, a member who has left it must open it again."""
    let_in(session, bo, "viewer")
    user_state.pin(session=session, user=bo)
    actions.leave(user=bo, session_id=session.pk)
    open_to(session, ana, "viewer")
    assert listed(bo) == []


def test_editors_by_the_workspace_count_as_editors(session: Session, ana: User, bo: User) -> None:
    """UI-23, RUN-17: members with the editor role count, so the agent answers mentions only.

    Users who have opened the session can approve.
    """
    configure(session=session, author=ana, replies="auto")
    session = open_to(session, ana, "editor")
    assert (writers_in(session.pk), session.replies) == (2, "mentions")
    assert editors_in([session.pk]) == {(ana.pk, session.pk)}
    user_state.take_into_list(session=session, user=bo)
    assert editors_in([session.pk]) == {(ana.pk, session.pk), (bo.pk, session.pk)}
    session = open_to(session, ana, "")
    assert (writers_in(session.pk), session.replies, editors_in([session.pk])) == (1, "all", {(ana.pk, session.pk)})


def test_members_can_be_mentioned(session: Session, ana: User, bo: User) -> None:
    """UI-23, LIVE-07: a mention of a member brings the session into their list."""
    session = open_to(session, ana, "viewer")
    assert set(people_of(session)) == {ana, bo}
    assert [member.user for member in sharing.mentionable(session, ana)] == [ana, bo]
    send_message(session=session, author=ana, text="@Bo, look")
    assert listed(bo) == [session.pk]
    assert UserSessionState.objects.filter(user=bo, mentioned_revision__gt=0).exists()


def test_owner_with_a_closed_account_is_not_offered(session: Session, ana: User, bo: User) -> None:
    """UI-23, LIVE-07: until the erasure of their data, the account's sessions still have this owner."""
    let_in(session, bo, "viewer")
    close_account(ana, None)
    session.refresh_from_db()
    assert [member.user for member in sharing.mentionable(session, bo)] == [bo]
    owner, other = sharing.present_and_former(session)
    assert (owner.has_access, other.has_access) == (False, True)


def test_guests_do_not_see_the_members_of_the_workspace(session: Session, ana: User, bo: User) -> None:
    """UI-23: a guest can mention the users with a share, and the members who have written in the session."""
    cleo, guest = person("Cleo", session.workspace), guest_of(session, "Gus", "viewer")
    session = open_to(session, ana, "editor")

    def offered(viewer: User) -> set[User]:
        return {member.user for member in sharing.mentionable(session, viewer)}

    assert (offered(guest), offered(bo)) == ({ana, guest}, {ana, bo, cleo, guest})
    send_message(session=session, author=bo, text="Hello")
    assert offered(guest) == {ana, bo, guest}


def test_open_session_has_no_notes_of_its_owner(session: Session, ana: User) -> None:
    """UI-23, CTX-08: the owner's notes are not used in a session that is open to the workspace, because other users
    would read what the agent says about them."""
    MemoryNote.objects.create(user=ana, text="Likes tea", made_by=ana, accepted=True)
    assert len(notes_in(session)) == 1
    assert notes_in(open_to(session, ana, "viewer")) == []


def test_owner_who_leaves_the_workspace_takes_the_session_along(session: Session, ana: User, bo: User) -> None:
    """UI-23: when the owner leaves the workspace, its members lose access to the session, and the owner cannot open it
    to them again."""
    Membership.objects.filter(user=bo).update(role=Membership.Role.OWNER)
    session = open_to(session, ana, "editor")
    members.remove(author=bo, workspace_id=session.workspace_id, user_id=ana.pk)
    assert (role_in(ana, session), role_in(bo, session)) == ("owner", None)
    with pytest.raises(ServiceError):
        open_to(session, ana, "viewer")
    assert both(bo, session) is None
    UserSessionState.objects.create(user=bo, session=session)
    let_in(session, bo, "viewer")
    assert [each.role for each in listed_before(bo).rows] == ["viewer"]
    assert open_to(session, ana, "").workspace_role == ""


def test_sessions_below_follow(session: Session, ana: User, bo: User) -> None:
    """UI-23: a subsession has the access of its parent session and no setting of its own."""
    child = create_session(owner=ana, title="Task")
    Session.objects.filter(pk=child.pk).update(caller_session=session)
    open_to(session, ana, "viewer")
    child = Session.objects.get(pk=child.pk)
    assert (child.workspace_role, access.role_in(bo, child)) == ("viewer", "viewer")
    with pytest.raises(ServiceError):
        open_to(child, ana, "editor")
