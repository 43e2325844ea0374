"""Actions of lists on too many rows, and on rows that another page has removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import SecurityEvent, SignInLink, User, Worker, Workspace
from chat.services.people.security_log import Kind
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import said
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
PEOPLE = reverse("admin:chat_user_changelist")
WORKSPACES = reverse("admin:chat_workspace_changelist")


@pytest.fixture
def root(db: None) -> Client:
    """A superuser's client."""
    return signed_in(User.objects.create_superuser("root", display_name="Root"))


def act(client: Client, page: str, action: str, *pks: object, **more: str) -> Any:
    data = {"action": action, "_selected_action": [str(pk) for pk in pks], **more}
    return client.post(page, data, follow=True)


def act_on_all(client: Client, page: str, action: str) -> Any:
    """Apply an action to all rows of a list, as after “Select all …”."""
    return act(client, page, action, 1, select_across="1")


def add_people(count: int) -> list[User]:
    return User.objects.bulk_create(User(username=f"user{number}") for number in range(count))


@pytest.mark.parametrize("action", ["sign_in_link", "sign_out", "reset_second_factor"])
def test_too_many_people_are_refused(root: Client, action: str) -> None:
    """An action on more people than a page of the list shows changes no one, because its page reports each person."""
    add_people(50)
    before = SecurityEvent.objects.count()
    page = said(act_on_all(root, PEOPLE, action))
    assert "Choose at most 50 at a time." in page
    assert "user7 is" not in page
    assert SecurityEvent.objects.count() == before
    assert not SignInLink.objects.exists()


def test_links_before_the_limit_are_shown_in_the_list(root: Client, settings: LazySettings) -> None:
    """If the rate limit ends the creation of links, the list shows those that were created, and the reason."""
    settings.LIMITS = "sign_in_links=2/hour"
    people = add_people(4)
    response = act(root, PEOPLE, "sign_in_link", *(user.pk for user in people))
    page = said(response)
    assert response.status_code == 200
    assert page.count("/accounts/link/") == 2
    assert "Add person" in page
    assert "too many" in page.lower()
    assert SecurityEvent.objects.filter(kind=Kind.SIGN_IN_LINK_MADE.value).count() == 2


def test_too_many_rows_are_not_deleted(root: Client) -> None:
    """The confirmation could not be sent: Django refuses forms with a thousand fields."""
    Workspace.objects.bulk_create(Workspace(name=f"Team {number}") for number in range(101))
    page = said(act_on_all(root, WORKSPACES, "delete_selected"))
    assert "Choose at most 100 at a time." in page
    assert "Are you sure" not in page


def test_deletion_of_deleted_rows_says_so(root: Client) -> None:
    """A confirmation that was open while another page deleted the rows says that they are gone."""
    pk = Workspace.objects.create(name="Old team").pk
    assert "Old team" in said(act(root, WORKSPACES, "delete_selected", pk))
    Workspace.objects.filter(pk=pk).delete()
    page = said(act(root, WORKSPACES, "delete_selected", pk, post="yes"))
    assert "The selected rows are no longer in this list." in page


def test_confirmation_says_that_it_is_for_the_first_rows_only(root: Client) -> None:
    """OPS-08: a confirmation lists at most 50 rows."""
    until = timezone.now() + timedelta(minutes=1)
    Worker.objects.bulk_create(Worker(id=f"w{number}", lease_until=until) for number in range(51))
    page = said(act_on_all(root, reverse("admin:chat_worker_changelist"), "drain"))
    assert "Drain these workers?" in page
    assert "You can change 50 rows at a time. These are the first ones." in page


def test_action_on_rows_that_left_the_list_says_so(root: Client, ana: User) -> None:
    """A row that another page has changed may no longer match the filter of the list."""
    session = create_session(owner=ana)
    active = f"{reverse('admin:chat_session_changelist')}?status=active"
    assert "Updated 1 session." in said(act(root, active, "archive", session.pk))
    assert "The selected rows are no longer in this list." in said(act(root, active, "archive", session.pk))
    staff = User.objects.create_user("mia", is_staff=True)
    people = f"{PEOPLE}?is_staff__exact=0"
    assert "The selected rows are no longer in this list." in said(act(root, people, "sign_out", staff.pk))
