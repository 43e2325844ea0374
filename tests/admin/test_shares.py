"""Invitations in the admin: which of them still work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chat.models import Invitation, Membership, SecurityEvent, Session, SessionRun, Share, User
from chat.services.people import sharing
from tests.admin.pages import soup_of
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db


def working(keeper: Client) -> list[str]:
    """Return the list's status of each invitation, the newest first."""
    page = soup_of(keeper.get(reverse("admin:chat_invitation_changelist")))
    return [str(mark["alt"]) for mark in page.select(".field-works img")]


def test_list_shows_which_invitations_are_still_valid(
    staff_with: Callable[..., User], ana: User, session: Session
) -> None:
    """LIVE-06: expired invitations, and those of users who left the workspace, do not. Queries are constant."""
    keeper = signed_in(staff_with("view_invitation"))
    for _ in range(2):
        sharing.invite(session=session, author=ana, role="viewer")
    Invitation.objects.filter(pk=Invitation.objects.earliest("pk").pk).update(expires_at=timezone.now() - timedelta(1))
    with CaptureQueriesContext(connection) as few:
        assert working(keeper) == ["True", "False"]
    sharing.invite(session=session, author=ana, role="viewer")
    with CaptureQueriesContext(connection) as many:
        assert working(keeper) == ["True", "True", "False"]
    assert len(many) == len(few)
    Membership.objects.filter(user=ana).delete()
    assert working(keeper) == ["False"] * 3


def shared_with_a_guest(session: Session, owner: User) -> tuple[User, Session]:
    """Share a session and a subsession of it with a new guest."""
    child = Session.objects.create(owner=owner, workspace=session.workspace, caller_session=session)
    SessionRun.objects.create(session=child)
    guest = User.objects.create_user("guest")
    sharing.accept(token=sharing.invite(session=session, author=owner, role="viewer")[1], user=guest)
    return guest, child


@pytest.mark.parametrize("at_once", [False, True])
def test_deleting_a_share_ends_access_as_on_the_page(ana: User, session: Session, at_once: bool) -> None:
    """LIVE-06, RUN-18: the share of the subsession, guests' memberships and links end too, and the log has one
    entry."""
    guest, child = shared_with_a_guest(session, ana)
    sharing.invite(session=session, author=ana, role="viewer")
    share = Share.objects.get(session=session, user=guest)
    assert Share.objects.filter(session=child, user=guest).exists()
    root = signed_in(User.objects.create_superuser("root"))
    several = {"action": "delete_selected", "_selected_action": [share.pk], "post": "yes"}
    if at_once:
        root.post(reverse("admin:chat_share_changelist"), several)
    else:
        root.post(reverse("admin:chat_share_delete", args=[share.pk]), {"post": "yes"})
    assert not Share.objects.filter(user=guest).exists()
    assert not Membership.objects.filter(user=guest).exists()
    assert not sharing.invitations(session)
    assert SecurityEvent.objects.filter(kind="unshared", person=guest).count() == 1


def test_shares_that_follow_another_session_are_not_listed(ana: User, session: Session) -> None:
    """RUN-18: shares of subsessions are not listed, because the next change of the parent session would restore
    them."""
    _guest, child = shared_with_a_guest(session, ana)
    root = signed_in(User.objects.create_superuser("root"))
    listed = soup_of(root.get(reverse("admin:chat_share_changelist"))).select("#result_list tbody tr")
    assert len(listed) == 1
    address = reverse("admin:chat_share_delete", args=[Share.objects.get(session=child).pk])
    root.post(address, {"post": "yes"})
    assert Share.objects.filter(session=child).count() == 1
