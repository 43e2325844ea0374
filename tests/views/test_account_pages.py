"""Coming in and going out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.models import LoginSession, Role, Session, Share, User
from chat.origin import address_of
from chat.services import accounts, attempts, sharing
from chat.services.access import role_in
from tests.support.second_factors import code_of, give_app

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _nobody_has_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(attempts, "WINDOW", 10**9)  # none ends while a test runs


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


def test_who_is_wrong_too_often_waits(client: Client, ana: User, bo: User) -> None:
    """Guessing passwords ends soon, for this name from this address; the right one does not help before its time."""
    page = reverse("sign-in")
    for _ in range(attempts.MOST):
        client.post(page, {"username": "ana", "password": "no"})
    html = client.post(page, {"username": "ANA", "password": PASSWORD}).content.decode()
    assert ("Try again in " in html, signed_in_user(client)) == (True, None)
    assert client.post(page, {"username": "bo", "password": PASSWORD}).status_code == 302
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert elsewhere.post(page, {"username": "ana", "password": PASSWORD}).status_code == 302


def test_admin_has_no_sign_in_page_of_its_own(client: Client, ana: User) -> None:
    """LIVE-06: limits and the second step cannot be avoided there; people without rights are told."""
    User.objects.create_superuser("staff", password=PASSWORD)
    credentials = {"username": "staff", "password": PASSWORD}
    answer = client.post(f"{reverse('admin:login')}?next=/admin/chat/", credentials)
    assert answer.headers["Location"] == f"{reverse('sign-in')}?next=/admin/chat/"
    assert signed_in_user(client) is None
    assert client.post(answer.headers["Location"], {**credentials, "next": "/admin/"}).headers["Location"] == "/admin/"
    assert client.get(f"{reverse('admin:login')}?next=//evil.example").headers["Location"] == "/admin/"
    client.force_login(ana)
    assert client.get(reverse("admin:login")).status_code == 403


def test_who_tries_one_name_after_another_waits_as_well(client: Client, ana: User) -> None:
    """However many names: the failures of an address are counted, and those of a name are not pushed out by others."""
    for number in range(attempts.MOST_OF_ADDRESS):
        assert attempts.begin(username=f"name{number}", address="127.0.0.1") == 0
    client.post(reverse("sign-in"), {"username": "ana", "password": PASSWORD})
    assert signed_in_user(client) is None


def test_tries_at_the_same_time_are_all_counted() -> None:
    """Whoever sends a hundred at once has no hundred guesses: each is counted before its password is looked at."""
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(lambda _: attempts.begin(username="ana", address="192.0.2.1"), range(40)))
    assert waits.count(0) == attempts.MOST


def test_right_password_makes_up_for_wrong_ones(client: Client, ana: User) -> None:
    page = reverse("sign-in")
    for wrong in (attempts.MOST - 1, attempts.MOST - 1):
        for _ in range(wrong):
            client.post(page, {"username": "ana", "password": "no"})
        assert client.post(page, {"username": "ana", "password": PASSWORD}).status_code == 302
        client.logout()


@pytest.mark.parametrize(("https", "told"), [(True, "203.0.113.9"), (False, "127.0.0.1")])
def test_address_behind_a_proxy_is_the_one_that_the_proxy_tells(settings: Settings, https: bool, told: str) -> None:
    """What somebody writes into the header themselves stands before it."""
    settings.HTTPS = https
    request = RequestFactory().get("/", HTTP_X_FORWARDED_FOR="10.0.0.1, 203.0.113.9")
    assert address_of(request) == told


def test_part_of_a_page_leads_to_sign_in_when_the_login_is_over(client: Client) -> None:
    """The form would otherwise stand in the middle of a list."""
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/sessions/s_1/?x=1"}
    response = client.get(reverse("home"), headers=headers)
    assert (response.status_code, response.headers["HX-Redirect"]) == (
        401,
        "/accounts/sign-in/?next=%2Fsessions%2Fs_1%2F",
    )


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
    told = client.post(reverse("new-session"), headers={"Accept": "application/json"})
    assert (told.status_code, "Load it again" in told.json()["message"]) == (403, True)


# --- with a link -------------------------------------------------------------------------------------------------


def test_link_signs_in_and_leads_home(client: Client, ana: User) -> None:
    """The printed link lands where one begins by typing; no session is made that nobody writes in."""
    response = client.post(reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)]))
    assert response.headers["Location"] == reverse("home")
    assert not Session.objects.exists()
    assert signed_in_user(client) == str(ana.pk)
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize(("target", "followed"), [("/admin/", True), ("//evil.example/", False)])
def test_link_leads_to_next(client: Client, ana: User, target: str, followed: bool) -> None:
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    response = client.post(f"{link}?next={target}")
    assert response.headers["Location"] == (target if followed else reverse("home"))


def test_used_link_says_how_to_get_another(client: Client, ana: User) -> None:
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    client.post(link)
    response = Client().get(link)
    assert (response.status_code, "make link" in response.content.decode()) == (410, True)


LOOKING: list[dict[str, str]] = [{}, {"Sec-Purpose": "prefetch"}, {"User-Agent": "Slackbot-LinkExpanding 1.0"}]


@pytest.mark.parametrize("headers", LOOKING)
def test_link_that_is_only_looked_at_stays_good(ana: User, headers: dict[str, str]) -> None:
    """Previews, mail scanners and prefetching browsers look; only a person presses the button."""
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    scanner = Client(headers=headers)
    for look in (scanner.get, scanner.head, scanner.get):
        assert look(link).status_code == 200
    assert "Sign in as Ana" in scanner.get(link).content.decode()
    assert signed_in_user(scanner) is None
    assert not LoginSession.objects.filter(user=ana).exists()
    client = Client()
    assert client.post(link).status_code == 302
    assert signed_in_user(client) == str(ana.pk)


def test_link_needs_a_form_of_this_site(ana: User) -> None:
    """No other page can press its button."""
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    client = Client(enforce_csrf_checks=True)
    assert client.post(link).status_code == 403
    assert accounts.link_owner(link.rpartition("/")[2]) == ana


def test_link_of_another_person_ends_the_login_that_was(client: Client, ana: User, bo: User) -> None:
    """The page says so before; nothing of the first person's session is left in the second one's."""
    client.force_login(bo)
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    assert "You are signed in as Bo." in client.get(link).content.decode()
    assert client.get("/").status_code == 200
    secret = give_app(ana)
    assert client.post(link).headers["Location"] == reverse("second-step")
    assert not LoginSession.objects.filter(user=bo).exists()
    client.post(reverse("second-step"), {"code": code_of(secret)})
    assert signed_in_user(client) == str(ana.pk)


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
