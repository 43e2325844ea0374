"""Coming in and going out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Role, Session, Share, User
from chat.services import accounts, sharing
from chat.services.access import role_in

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
PASSWORD = "correct horse"


def signed_in_user(client: Client) -> str | None:
    return client.session.get("_auth_user_id")


@pytest.fixture
def invitation(session: Session, ana: User) -> str:
    token = sharing.invite(session=session, author=ana, role=Role.EDITOR)
    return reverse("join", args=[token])


# --- with a password ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "leads_to"),
    [("/sessions/s_1/", "/sessions/s_1/"), ("", "/"), ("https://evil.example/", "/"), ("//evil.example", "/")],
)
def test_sign_in_leads_where_one_wanted_to_go(client: Client, ana: User, target: str, leads_to: str) -> None:
    """`next` is honoured, and never leads away."""
    values = {"username": ana.username, "password": PASSWORD, "next": target}
    response = client.post(reverse("sign-in"), values)
    assert (response.status_code, response.headers["Location"]) == (302, leads_to)
    assert signed_in_user(client) == str(ana.pk)


def test_wrong_password_is_told_in_words(client: Client, ana: User) -> None:
    response = client.post(reverse("sign-in"), {"username": ana.username, "password": "no"})
    assert "do not belong together" in response.content.decode()
    assert signed_in_user(client) is None


def test_sign_out_needs_a_form(signed_in: SignIn, ana: User) -> None:
    """A link or a picture elsewhere cannot sign anybody out."""
    client = signed_in(ana)
    assert client.get(reverse("sign-out")).status_code == 405
    assert client.post(reverse("sign-out")).headers["Location"] == reverse("sign-in")
    assert signed_in_user(client) is None


def test_form_from_elsewhere_is_refused_in_words(ana: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ana)
    response = client.post(reverse("new-session"))
    assert (response.status_code, "That form was too old" in response.content.decode()) == (403, True)


# --- with a link -------------------------------------------------------------------------------------------------


def test_link_signs_in_and_opens_a_fresh_session(client: Client, ana: User) -> None:
    """The printed link lands in a session, ready to type."""
    response = client.get(reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)]))
    session = Session.objects.get(owner=ana)
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    assert signed_in_user(client) == str(ana.pk)
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize(("target", "followed"), [("/admin/", True), ("//evil.example/", False)])
def test_link_leads_to_next(client: Client, ana: User, target: str, followed: bool) -> None:
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    response = client.get(link, {"next": target})
    assert (response.headers["Location"] == target) == followed
    assert Session.objects.exists() != followed


def test_used_link_says_how_to_get_another(client: Client, ana: User) -> None:
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    client.get(link)
    response = Client().get(link)
    assert (response.status_code, "make link" in response.content.decode()) == (410, True)


def test_link_that_is_only_looked_at_stays_good(client: Client, ana: User) -> None:
    """What previews links asks with HEAD."""
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    assert client.head(link).status_code == 405
    assert client.get(link).status_code == 302


# --- with an invitation ------------------------------------------------------------------------------------------


def test_somebody_new_joins_with_an_account(client: Client, session: Session, invitation: str) -> None:
    """An invitation makes account, membership and share, and opens the session."""
    assert "Ana invites you" in client.get(invitation).content.decode()
    values = {"display_name": "Cleo", "username": "cleo", "password": "nine lives 9"}
    response = client.post(invitation, values)
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    cleo = User.objects.get(username="cleo")
    assert signed_in_user(client) == str(cleo.pk)
    assert role_in(cleo, session) == Role.EDITOR


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"password": "a"}, "too short"), ({"username": "ana"}, "is taken"), ({"display_name": ""}, "required")],
)
def test_refused_account_is_explained(client: Client, invitation: str, changes: dict[str, str], words: str) -> None:
    values = {"display_name": "Cleo", "username": "cleo", "password": "nine lives 9", **changes}
    response = client.post(invitation, values)
    assert (response.status_code, words in response.content.decode()) == (422, True)
    assert signed_in_user(client) is None


def test_signed_in_person_joins_with_one_button(signed_in: SignIn, bo: User, session: Session, invitation: str) -> None:
    client = signed_in(bo)
    html = client.get(invitation).content.decode()
    assert ("Join as Bo" in html, 'name="password"' in html) == (True, False)
    assert not Share.objects.exists()
    response = client.post(invitation)
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    assert role_in(bo, session) == Role.EDITOR


def test_invitation_that_is_over_says_so(client: Client, session: Session, ana: User, invitation: str) -> None:
    sharing.revoke_invitations(session=session, author=ana)
    for response in (client.get(invitation), client.post(invitation)):
        assert (response.status_code, "no longer works" in response.content.decode()) == (410, True)
