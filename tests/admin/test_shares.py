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

from chat.models import Invitation, Membership, Session, User
from chat.services.people import sharing
from tests.admin.conftest import signed_in
from tests.admin.pages import soup_of

pytestmark = pytest.mark.django_db


def working(keeper: Client) -> list[str]:
    """Return the list's status of each, the newest first."""
    page = soup_of(keeper.get(reverse("admin:chat_invitation_changelist")))
    return [str(mark["alt"]) for mark in page.select(".field-works img")]


def test_list_says_which_still_let_somebody_in(staff_with: Callable[..., User], ana: User, session: Session) -> None:
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
