"""The share dialog and the owner's changes in it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.access import role_in
from chat.models import Invitation, Membership, Session, SessionRole, User
from chat.services.people import sharing
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
TOKEN = r'name="csrfmiddlewaretoken" value="[^"]*"'
ACTIONS = tuple(f"session-share-{what}" for what in ("member", "remove", "invite", "revoke", "end"))


def test_dialog_shows_who_is_in(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    let_in(session, bo, "viewer")
    person("Cleo", session.workspace)
    html = signed_in(ana).get(reverse("session-share", args=[session.pk])).content.decode()
    inside, outside = re.sub(TOKEN, "", html).split("Add someone")
    assert ("Ana" in inside, "Role of Bo" in inside, "Cleo" in inside) == (True, True, False)
    assert ("Cleo" in outside, ">Bo<" in inside, ">Bo<" in outside) == (True, True, False)


def test_users_without_access_are_no_members(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    """The owner sees that a former member has no access, and can remove the share. Other users do not see them."""
    cleo, dana = person("Cleo", session.workspace), person("Dana", session.workspace)
    for user in (bo, cleo, dana):
        let_in(session, user, "editor")
    cleo.memberships.all().delete()
    User.objects.filter(pk=dana.pk).update(is_active=False)
    assert [member.user for member in sharing.members(session)] == [ana, bo]
    dialog, listed = (
        signed_in(user).get(reverse("session-share", args=[session.pk])).content.decode() for user in (ana, bo)
    )
    assert ("2 people in this session" in dialog, "2 people in this session" in listed) == (True, True)
    assert (dialog.count("No access"), "Role of Cleo" in dialog, "Remove Cleo" in dialog) == (2, False, True)
    assert ("Cleo" in listed, "Dana" in listed) == (False, False)


@pytest.mark.parametrize(("role", "is_offered"), [("owner", True), ("admin", True), ("member", False)])
def test_who_invites_members_is_led_to_it(
    signed_in: SignIn, ana: User, session: Session, role: str, is_offered: bool
) -> None:
    """UI-20: owners and admins see a link from the share dialog to the invitations for the workspace."""
    Membership.objects.filter(user=ana).update(role=role)
    html = signed_in(ana).get(reverse("session-share", args=[session.pk])).content.decode()
    address = reverse("workspace-settings", args=[session.workspace_id])
    assert (f'href="{address}#members"' in html) == is_offered


def test_owner_lets_in_changes_and_removes(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    client = signed_in(ana)
    roles = []
    for action, values in (("member", {"role": "viewer"}), ("member", {"role": "editor"}), ("remove", {})):
        response = client.post(reverse(f"session-share-{action}", args=[session.pk]), {"user": "bo", **values})
        assert response.status_code == 200
        roles.append(role_in(bo, session))
    assert roles == [SessionRole.VIEWER, SessionRole.EDITOR, None]


def test_viewers_who_can_edit_by_the_workspace_are_pointed_out(
    signed_in: SignIn, ana: User, bo: User, session: Session
) -> None:
    """UI-23: a session that is open to the workspace reduces no access, and a share does not reduce this one."""
    let_in(session, bo, "viewer")
    client = signed_in(ana)
    for role, is_said in (("editor", True), ("viewer", False)):
        html = client.post(reverse("session-share-workspace", args=[session.pk]), {"role": role}).content.decode()
        assert ("Viewers below who are members can edit" in html) == is_said
    assert role_in(bo, session) == SessionRole.VIEWER


def test_removal_says_that_links_have_ended(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    """The links of the session end with a removal, also one that was just sent to another user."""
    client = signed_in(ana)
    for count, words in ((0, ""), (1, "1 invitation link was revoked."), (2, "2 invitation links were revoked.")):
        let_in(session, bo, "viewer")
        for _link in range(count):
            sharing.invite(session=session, author=ana, role="viewer")
        html = client.post(reverse("session-share-remove", args=[session.pk]), {"user": "bo"}).content.decode()
        assert (words in html, "revoked" in html) == (True, bool(count))


def test_invitation_link_works_once_it_is_shown(signed_in: SignIn, ana: User, session: Session) -> None:
    response = signed_in(ana).post(reverse("session-share-invite", args=[session.pk]), {"role": "viewer"})
    link = response.content.decode().split('readonly value="')[1].split('"')[0]
    assert link.startswith("http://testserver/join/")
    assert sharing.invitation_for(link.rsplit("/", 1)[1]).role == "viewer"


def test_invitation_link_leads_to_the_public_address(
    signed_in: SignIn, ana: User, session: Session, settings: Settings
) -> None:
    """Behind a proxy, other users may be unable to reach the request's own host."""
    settings.PUBLIC_URL = "https://chat.example.org"
    response = signed_in(ana).post(reverse("session-share-invite", args=[session.pk]), {"role": "viewer"})
    assert 'readonly value="https://chat.example.org/join/' in response.content.decode()


@pytest.mark.parametrize("action", ["session-share-member", "session-share-remove"])
@pytest.mark.parametrize("name", ["unknown", "b\0o", "", "x" * 1000])
def test_unknown_name_is_answered_as_a_strangers(
    signed_in: SignIn, ana: User, session: Session, action: str, name: str
) -> None:
    """The answer does not reveal which user names exist; no name causes an error."""
    person("Stranger")
    client = signed_in(ana)
    answers = [
        client.post(reverse(action, args=[session.pk]), {"user": user, "role": "viewer"}) for user in ("stranger", name)
    ]
    assert answers[0].status_code == answers[1].status_code
    assert re.sub(TOKEN, "", answers[0].content.decode()) == re.sub(TOKEN, "", answers[1].content.decode())


def test_all_links_are_ended_together(signed_in: SignIn, ana: User, session: Session) -> None:
    for role in (SessionRole.VIEWER, SessionRole.EDITOR):
        sharing.invite(session=session, author=ana, role=role)
    client = signed_in(ana)
    assert "Revoke all links" in client.get(reverse("session-share", args=[session.pk])).content.decode()
    html = client.post(reverse("session-share-revoke", args=[session.pk])).content.decode()
    assert ("no longer work" in html, Invitation.objects.exists()) == (True, False)


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("member", {"user": "bo", "role": "owner"}),
        ("member", {"user": "ana", "role": "viewer"}),
        ("invite", {"role": ""}),
    ],
)
def test_refusal_is_shown_in_the_dialog(
    signed_in: SignIn, ana: User, bo: User, session: Session, action: str, values: dict[str, str]
) -> None:
    response = signed_in(ana).post(reverse(f"session-share-{action}", args=[session.pk]), values)
    assert (response.status_code, 'class="errors"' in response.content.decode()) == (422, True)


@pytest.mark.parametrize(("role", "status"), [("editor", 403), ("viewer", 403), (None, 404)])
@pytest.mark.parametrize("action", ACTIONS)
def test_only_the_owner_shares(
    signed_in: SignIn, bo: User, session: Session, action: str, role: str | None, status: int
) -> None:
    """Members may not share; strangers do not learn that the session exists."""
    if role:
        let_in(session, bo, role)
    client = signed_in(bo)
    values = {"user": "bo", "role": "editor"}
    assert client.post(reverse(action, args=[session.pk]), values).status_code == status
    assert client.get(reverse(action, args=[session.pk])).status_code == 405
    assert (Invitation.objects.count(), role_in(bo, session)) == (0, role)


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_members_see_who_is_in_and_can_leave(
    signed_in: SignIn, ana: User, bo: User, session: Session, role: str
) -> None:
    """LIVE-06: members see who else reads the session; all that they can change is to leave."""
    let_in(session, bo, role)
    client = signed_in(bo)
    html = client.get(reverse("session-share", args=[session.pk])).content.decode()
    shown = [words in html for words in ("Ana", "Bo", "Leave this session", "Role of", "Invite by link")]
    assert shown == [True, True, True, False, False]
    client.post(reverse("apply-action"), {"action": "leave", "session": session.pk})
    assert role_in(bo, session) is None


@pytest.mark.parametrize(
    ("workspace_role", "is_guest", "words"),
    [
        ("", False, "You’ll lose access until you’re invited again."),
        ("viewer", False, "You can still open it by its link."),
        ("viewer", True, "You’ll lose access until you’re invited again."),
    ],
)
def test_members_see_whether_leaving_ends_their_access(
    signed_in: SignIn, bo: User, session: Session, workspace_role: str, is_guest: bool, words: str
) -> None:
    """UI-23: members can still open a session that is open to their workspace after they have left it."""
    let_in(session, bo, "viewer")
    Session.objects.filter(pk=session.pk).update(workspace_role=workspace_role)
    if is_guest:
        Membership.objects.filter(user=bo).update(role=Membership.Role.GUEST)
    html = signed_in(bo).get(reverse("session-share", args=[session.pk])).content.decode()
    texts = ("You’ll lose access until you’re invited again.", "You can still open it by its link.")
    assert [text for text in texts if text in html] == [words]


def test_owner_cannot_leave(signed_in: SignIn, ana: User, session: Session) -> None:
    response = signed_in(ana).post(reverse("apply-action"), {"action": "leave", "session": session.pk})
    assert (response.status_code, "You own this session" in response.json()["message"]) == (422, True)


def test_one_link_is_ended_and_the_others_stay(signed_in: SignIn, ana: User, session: Session) -> None:
    tokens = [sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)[1] for _ in range(2)]
    ended = sharing.invitation_for(tokens[0])
    signed_in(ana).post(reverse("session-share-end", args=[session.pk]), {"invitation": str(ended.pk)})
    assert [link.pk for link in sharing.invitations(session)] == [sharing.invitation_for(tokens[1]).pk]


@pytest.mark.parametrize("number", ["", "x", "9" * 40, "²"])
def test_odd_link_numbers_end_nothing(signed_in: SignIn, ana: User, session: Session, number: str) -> None:
    sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)
    signed_in(ana).post(reverse("session-share-end", args=[session.pk]), {"invitation": number})
    assert len(sharing.invitations(session)) == 1
