"""Deleting sessions that other people use, and restoring them from the page and the settings."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Membership, Session, SessionRole, User
from chat.services.people.sharing import open_to_workspace, share
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db


def delete(client: Client, *sessions: Session, **more: str) -> dict[str, object]:
    values = {"action": "delete", "session": [session.pk for session in sessions], **more}
    answer: dict[str, object] = client.post(reverse("apply-action"), values).json()
    return answer


@pytest.fixture
def own(client: Client, ana: User) -> Session:
    client.force_login(ana)
    return create_session(owner=ana, title="Plans")


def status(session: Session) -> str:
    return Session.objects.get(pk=session.pk).status


def test_session_of_one_person_is_deleted_at_once(client: Client, own: Session) -> None:
    assert delete(client, own)["ids"] == [own.pk]
    assert status(own) == Session.Status.DELETED


def test_deletion_that_others_notice_asks_first(client: Client, own: Session, ana: User, bo: User) -> None:
    """The question counts each person once, and only those of sessions that the user owns."""
    cleo = person("Cleo", own.workspace)
    other = create_session(owner=ana)
    theirs = create_session(owner=bo)
    for session in (own, other):
        share(session=session, user=bo, role=SessionRole.VIEWER, author=ana)
    share(session=theirs, user=ana, role=SessionRole.VIEWER, author=bo)
    share(session=theirs, user=cleo, role=SessionRole.VIEWER, author=bo)
    asked = delete(client, own, other, theirs)
    assert (asked["ids"], asked["undo"]) == ([], "")
    assert asked["asks"] == "1 other person loses access. You can restore it in the settings for 30 days."
    assert status(own) == Session.Status.ACTIVE
    assert delete(client, own, other, theirs, sure="yes")["ids"] == [own.pk, other.pk]
    assert (status(own), status(theirs)) == (Session.Status.DELETED, Session.Status.ACTIVE)


def test_deletion_of_a_session_that_the_workspace_can_open_asks_first(client: Client, own: Session, ana: User) -> None:
    person("Dana", own.workspace)
    person("Cleo", own.workspace)
    others = own.workspace.memberships.exclude(user=ana).count()
    open_to_workspace(session=own, author=ana, role=SessionRole.VIEWER)
    assert str(delete(client, own)["asks"]).startswith(f"{others} other people lose access.")


def test_users_without_access_are_not_counted(client: Client, own: Session, ana: User, bo: User) -> None:
    """Guests see only sessions to which they are added; former members and closed accounts see none."""
    guest, former, closed = (person(name, own.workspace) for name in ("Gus", "Fay", "Cleo"))
    for user in (former, closed):
        share(session=own, user=user, role=SessionRole.VIEWER, author=ana)
    open_to_workspace(session=own, author=ana, role=SessionRole.VIEWER)
    guest.memberships.update(role=Membership.Role.GUEST)
    former.memberships.all().delete()
    User.objects.filter(pk=closed.pk).update(is_active=False)
    assert str(delete(client, own)["asks"]).startswith("1 other person loses access.")


def test_owner_restores_a_session_from_its_address(client: Client, own: Session, bo: User) -> None:
    address = reverse("session", args=[own.pk])
    delete(client, own)
    page = client.get(address)
    assert page.status_code == 404
    assert "You deleted this session" in page.content.decode()
    restored = client.post(reverse("session-undelete", args=[own.pk]), follow=True)
    assert restored.redirect_chain == [(address, 302)]
    assert "Session restored" not in client.get(reverse("home")).content.decode()
    assert status(own) == Session.Status.ACTIVE
    delete(client, own)
    client.force_login(bo)
    assert "You deleted this session" not in client.get(address).content.decode()
    assert client.post(reverse("session-undelete", args=[own.pk])).status_code == 404


def test_settings_list_the_deleted_sessions(client: Client, own: Session) -> None:
    settings = reverse("settings")
    assert "Deleted sessions" not in client.get(settings).content.decode()
    delete(client, own)
    page = client.get(settings).content.decode()
    assert "Deleted sessions" in page
    assert reverse("session-undelete", args=[own.pk]) in page
    client.post(reverse("session-undelete", args=[own.pk]))
    assert "Deleted sessions" not in client.get(settings).content.decode()


def test_settings_list_a_subsession_that_was_deleted_alone(client: Client, own: Session, ana: User) -> None:
    """UI-11: as the question before its deletion says. With the caller's session, only that one is listed."""
    child = create_session(owner=ana, title="Find the key")
    Session.objects.filter(pk=child.pk).update(caller_session=own)
    delete(client, child)
    settings = reverse("settings")
    assert reverse("session-undelete", args=[child.pk]) in client.get(settings).content.decode()
    delete(client, own)
    page = client.get(settings).content.decode()
    assert reverse("session-undelete", args=[child.pk]) not in page
    assert reverse("session-undelete", args=[own.pk]) in page
