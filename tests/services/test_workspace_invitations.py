"""Links that make users members of a workspace."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.errors import Forbidden, Invalid, NoSuchWorkspace
from chat.models import Membership, SecurityEvent, Share, User, Workspace, WorkspaceInvitation
from chat.services.people import accounts, joining, members, sharing
from chat.services.people import workspace_invitations as invitations
from chat.services.sessions.lifecycle import create_session
from tests.support.members import code_of, role_of
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def olga(workspace: Workspace) -> User:
    user = person("Olga", workspace)
    user.memberships.update(role=Role.OWNER)
    return user


@pytest.fixture
def zoe() -> User:
    """A user without a workspace."""
    return person("Zoe")


def made(author: User, workspace: Workspace, uses: int = 1) -> str:
    return invitations.invite(author=author, workspace_id=workspace.pk, uses=uses)[1]


def test_a_link_makes_so_many_people_members(workspace: Workspace, olga: User, zoe: User) -> None:
    """UI-20: users with or without an account can use a link. A second use by the same user does not count."""
    token = made(olga, workspace, 2)
    for _click in range(2):
        assert joining.accept(token=token, user=zoe) == workspace
    new, joined = accounts.register(token=token, username="yan", display_name="Yan", password="correct horse")
    assert joined == workspace
    assert (role_of(zoe, workspace), role_of(new, workspace)) == (Role.MEMBER, Role.MEMBER)
    assert code_of(lambda: joining.accept(token=token, user=person("Late"))) == "no_such_invitation"
    assert joining.by_used_link(token, zoe) == workspace
    assert joining.by_used_link(token, person("Other")) is None
    kinds = SecurityEvent.objects.filter(object_type="workspace").order_by("pk").values_list("kind", flat=True)
    used = ["invitation_used", "member_added"]
    assert list(kinds) == ["invitation_made", *used, *used]


def test_a_guest_becomes_a_member_and_keeps_what_is_shared(
    workspace: Workspace, olga: User, ana: User, zoe: User
) -> None:
    """UI-20: a guest becomes a member and keeps their shares. A link never lowers a member's role."""
    session = create_session(owner=ana, workspace=workspace)
    sharing.accept(token=sharing.invite(session=session, author=ana, role="viewer")[1], user=zoe)
    token = made(olga, workspace)
    joining.accept(token=token, user=olga)
    joining.accept(token=token, user=zoe)
    assert (role_of(zoe, workspace), role_of(olga, workspace)) == (Role.MEMBER, Role.OWNER)
    assert Share.objects.filter(user=zoe, session=session).exists()


def test_only_owners_and_admins_invite(workspace: Workspace, olga: User, ana: User, zoe: User) -> None:
    """LIVE-06: a link is valid as long as its maker may manage the members."""
    with pytest.raises(Forbidden):
        made(ana, workspace)
    with pytest.raises(NoSuchWorkspace):
        made(zoe, workspace)
    for uses in (0, -1, 101):
        with pytest.raises(Invalid):
            made(olga, workspace, uses)
    token = made(olga, workspace)
    Membership.objects.filter(user=olga).update(role=Role.MEMBER)
    assert code_of(lambda: joining.invitation_for(token)) == "no_such_invitation"
    with pytest.raises(Forbidden):
        invitations.end_invitation(author=olga, workspace_id=workspace.pk, invitation_id=1)


def test_links_end(workspace: Workspace, olga: User, ana: User, zoe: User) -> None:
    """LIVE-06: links end after a week, when they are revoked, and when a member who may know them is removed."""
    for end in (
        lambda: WorkspaceInvitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1)),
        lambda: invitations.end_invitation(
            author=olga, workspace_id=workspace.pk, invitation_id=WorkspaceInvitation.objects.latest("pk").pk
        ),
        lambda: members.remove(author=olga, workspace_id=workspace.pk, user_id=ana.pk),
    ):
        token = made(olga, workspace)
        end()
        assert code_of(lambda token=token: joining.accept(token=token, user=zoe)) == "no_such_invitation"  # type: ignore[misc]
    assert role_of(zoe, workspace) is None


def test_the_settings_make_and_revoke_links(workspace: Workspace, olga: User, ana: User, zoe: User) -> None:
    """UI-20: the link is shown once, to users who manage members, and leads into the workspace."""
    client, page = Client(), reverse("workspace-settings", args=[workspace.pk])
    client.force_login(olga)
    html = client.post(page, {"part": "invite", "uses": "5"}).content.decode()
    (link,) = [part.split('"')[0] for part in html.split('value="') if "/join/" in part.split('"')[0]]
    assert "For 5 people." in html
    again = client.get(page).content.decode()
    assert link not in again
    assert "5 of 5 uses left" in again
    for wrong in ("0", "x", "9" * 30, ""):
        assert client.post(page, {"part": "invite", "uses": wrong}).status_code == 422

    joiner = Client()
    assert "as a member" in joiner.get(link).content.decode()
    joiner.force_login(zoe)
    assert workspace.name in joiner.get(link).content.decode()
    assert joiner.post(link)["Location"] == reverse("workspace", args=[workspace.pk])
    assert role_of(zoe, workspace) == Role.MEMBER

    row = WorkspaceInvitation.objects.get()
    client.post(page, {"part": "end-invitation", "invitation": str(row.pk)})
    assert not WorkspaceInvitation.objects.exists()
    assert joiner.get(link).status_code == 410
    client.force_login(ana)
    assert "Invite people" not in client.get(page).content.decode()
