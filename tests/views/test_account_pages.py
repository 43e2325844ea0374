"""Sign in and out, with a password, a link and an invitation."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event, Semaphore
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.test import Client, RequestFactory, override_settings
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.access import role_in
from chat.limits.rates import RATES, RateLimited
from chat.models import LoginSession, Session, SessionRole, Share, User
from chat.origin import address_of
from chat.security import password_hashing
from chat.services.people import accounts, login_throttle, sharing
from tests.support.second_factors import code_of, give_app

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
PASSWORD = "correct horse"


def signed_in_user(client: Client) -> str | None:
    return client.session.get("_auth_user_id")


def focused_field(response: Any) -> tuple[str, str]:
    """Return the name of the field that has the focus, and its description."""
    page = BeautifulSoup(response.content, "html.parser")
    field = page.select("[autofocus]")[0]
    described = [page.find(id=each) for each in str(field.get("aria-describedby", "")).split()]
    return str(field.get("name", field.name)), " ".join(" ".join(part.stripped_strings) for part in described if part)


@pytest.fixture
def invitation(session: Session, ana: User) -> str:
    token = sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]
    return reverse("join", args=[token])


# --- with a password ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "leads_to"),
    [("/sessions/s_1/", "/sessions/s_1/"), ("", "/"), ("https://evil.example/", "/"), ("//evil.example", "/")],
)
def test_sign_in_leads_where_one_wanted_to_go(client: Client, ana: User, target: str, leads_to: str) -> None:
    """The page redirects to `next`, but never to another site."""
    values = {"username": ana.username, "password": PASSWORD, "next": target}
    response = client.post(reverse("sign-in"), values)
    assert (response.status_code, response.headers["Location"]) == (302, leads_to)
    assert signed_in_user(client) == str(ana.pk)


def test_wrong_password_is_reported_and_its_field_gets_the_focus(client: Client, ana: User) -> None:
    response = client.post(reverse("sign-in"), {"username": ana.username, "password": "no"})
    html = response.content.decode()
    assert "Wrong user name or password" in html
    assert re.findall(r'name="(\w+)"[^>]*autofocus', html) == ["password"]
    assert re.findall(r'name="(\w+)"[^>]*autofocus', client.get(reverse("sign-in")).content.decode()) == ["username"]
    assert signed_in_user(client) is None


def test_reason_of_a_refused_sign_in_describes_the_focused_field(client: Client, ana: User) -> None:
    """Screen readers do not announce alerts that are on the page when it loads."""
    page = reverse("sign-in")
    wrong = {"username": ana.username, "password": "no"}
    assert focused_field(client.post(page, wrong)) == ("password", "Wrong user name or password.")
    for _ in range(RATES["sign_ins_of_name"].amount):
        client.post(page, wrong)
    name, reason = focused_field(client.post(page, wrong))
    assert (name, "Try again in " in reason) == ("password", True)
    assert focused_field(client.get(page)) == ("username", "")
    name, reason = focused_field(client.get(f"{page}?signed_out=draft"))
    assert (name, "Your draft is kept in this browser." in reason) == ("username", True)


def test_who_is_wrong_too_often_waits(client: Client, ana: User, bo: User) -> None:
    """Wrong passwords are limited per name and address; during the wait, even the right password is refused."""
    page = reverse("sign-in")
    for _ in range(RATES["sign_ins_of_name"].amount):
        client.post(page, {"username": "ana", "password": "no"})
    html = client.post(page, {"username": "ANA", "password": PASSWORD}).content.decode()
    assert ("Try again in " in html, signed_in_user(client)) == (True, None)
    assert client.post(page, {"username": "bo", "password": PASSWORD}).status_code == 302
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert elsewhere.post(page, {"username": "ana", "password": PASSWORD}).status_code == 302


def test_admin_has_no_sign_in_page_of_its_own(client: Client, ana: User) -> None:
    """LIVE-06: the admin uses the sign-in page with its limits and second step; without rights, it answers 403."""
    User.objects.create_superuser("staff", password=PASSWORD)
    credentials = {"username": "staff", "password": PASSWORD}
    answer = client.post(f"{reverse('admin:login')}?next=/admin/chat/", credentials)
    assert answer.headers["Location"] == f"{reverse('sign-in')}?next=/admin/chat/"
    assert signed_in_user(client) is None
    assert client.post(answer.headers["Location"], {**credentials, "next": "/admin/"}).headers["Location"] == "/admin/"
    assert client.get(f"{reverse('admin:login')}?next=//evil.example").headers["Location"] == "/admin/"
    client.force_login(ana)
    assert client.get(reverse("admin:login")).status_code == 403


def wrong(client: Client, username: str = "ana") -> bool:
    """Send a wrong password; return whether the server checked it."""
    html = client.post(reverse("sign-in"), {"username": username, "password": "no"}).content.decode()
    return "Wrong user name or password" in html


def test_guesses_of_many_names_from_one_network_end(client: Client, ana: User, settings: Settings) -> None:
    """Wrong passwords for any names count together per network; for IPv6, a network is a /64."""
    settings.LIMITS = "sign_ins=3/minute"
    clients = [Client(REMOTE_ADDR=f"2001:db8:1:2::{number:x}") for number in range(5)]
    assert [wrong(each, f"name{number}") for number, each in enumerate(clients)] == [True, True, True, False, False]
    clients[0].post(reverse("sign-in"), {"username": "ana", "password": PASSWORD})
    assert signed_in_user(clients[0]) is None
    assert Client().post(reverse("sign-in"), {"username": "ana", "password": PASSWORD}).status_code == 302


def test_guesses_of_one_name_from_many_networks_are_delayed(ana: User) -> None:
    """The user can still sign in with a browser that they have used before, and with a link."""
    page, known = reverse("sign-in"), Client()
    known.post(page, {"username": "ana", "password": PASSWORD})
    known.post(reverse("sign-out"))
    clients = [Client(REMOTE_ADDR=f"192.0.2.{number}") for number in range(login_throttle.FREE_GUESSES + 3)]
    looked_at = [wrong(each, name) for each, name in zip(clients, ["ana", "ANA"] * len(clients), strict=False)]
    assert looked_at == [True] * login_throttle.FREE_GUESSES + [False] * 3
    assert known.post(page, {"username": "Ana", "password": "no"}).status_code == 200
    assert known.post(page, {"username": "ana", "password": PASSWORD}).status_code == 302
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    assert clients[0].post(link).status_code == 302


def test_known_browser_has_a_limit_of_its_own(ana: User) -> None:
    """The cookie gives a separate limit to the names that have signed in with it; a changed cookie gives none."""
    page, known = reverse("sign-in"), Client()
    known.post(page, {"username": "ana", "password": PASSWORD})
    known.post(reverse("sign-out"))
    most = RATES["sign_ins_of_name"].amount
    assert [wrong(known) for _ in range(most + 1)] == [True] * most + [False]
    forged = Client()
    forged.cookies["parley_browser"] = "x" + known.cookies["parley_browser"].value
    assert [wrong(forged) for _ in range(most + 1)] == [True] * most + [False]


def test_guesses_at_the_same_time_are_all_counted() -> None:
    """Concurrent attempts do not exceed the limit: each is counted before its password is checked."""

    def guess(number: int) -> bool:
        try:
            login_throttle.begin(username="ana", request=RequestFactory().get("/", REMOTE_ADDR=f"192.0.2.{number}"))
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        admitted = list(threads.map(guess, range(40)))
    assert admitted.count(True) == login_throttle.FREE_GUESSES


def test_right_password_makes_up_for_wrong_ones(client: Client, ana: User) -> None:
    page = reverse("sign-in")
    few = RATES["sign_ins_of_name"].amount - 1
    for _ in range(2):
        assert all(wrong(client) for _ in range(few))
        assert client.post(page, {"username": "ana", "password": PASSWORD}).status_code == 302
        client.logout()


def test_right_password_makes_up_for_wrong_ones_in_a_known_browser(ana: User) -> None:
    """The right password resets the count of the known browser."""
    page, known = reverse("sign-in"), Client()
    for _ in range(3):
        assert known.post(page, {"username": "ana", "password": PASSWORD}).status_code == 302
        known.post(reverse("sign-out"))
        assert all(wrong(known) for _ in range(RATES["sign_ins_of_name"].amount - 1))


def test_links_are_not_guessed(client: Client, settings: Settings) -> None:
    settings.LIMITS = "links=2/minute"
    answers = [client.get(reverse("sign-in-link", args=["no"])).status_code for _ in range(3)]
    assert answers == [410, 410, 429]


def test_accounts_from_one_network_are_limited(session: Session, ana: User, settings: Settings) -> None:
    settings.LIMITS = "joins=1/hour"
    answers = []
    for name in ("cleo", "dora"):
        token = sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]
        values = {"display_name": name, "username": name, "password": "nine lives 9"}
        answers.append(Client().post(reverse("join", args=[token]), values))
    assert [answer.status_code for answer in answers] == [302, 429]
    assert "Try again in 60 minutes" in answers[1].content.decode()


def test_refused_forms_for_an_account_are_limited(
    client: Client, session: Session, ana: User, settings: Settings
) -> None:
    """A form is refused if the user name exists, so that names could be tried without end."""
    settings.LIMITS = "join_forms=2/minute"
    page = reverse("join", args=[sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]])
    values = {"display_name": "Ana", "username": "ana", "password": "nine lives 9"}
    assert [client.post(page, values).status_code for _ in range(2)] == [422, 422]
    limited = client.post(page, values)
    shown = limited.content.decode()
    assert limited.status_code == 429
    assert "Try again in" in shown
    assert 'value="ana"' in shown
    assert "is taken" not in shown
    assert client.get(page).status_code == 200


def test_passwords_that_wait_too_long_for_their_turn_are_refused(
    client: Client, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of passwords that are hashed in parallel is bounded; Retry-After has the seconds to wait."""
    monkeypatch.setattr(password_hashing, "PATIENCE_SECONDS", 0.01)
    with override_settings(PASSWORD_HASHERS=["chat.security.password_hashing.BoundedHasher"]), ExitStack() as others:
        for _ in range(password_hashing.AT_ONCE):
            others.enter_context(password_hashing.hashing())
        answer = client.post(reverse("sign-in"), {"username": "unknown", "password": "x"})
    assert (answer.status_code, answer["Retry-After"]) == (429, "5")


def test_many_guesses_from_one_network_do_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network can have a few waiting hashes. More are refused immediately, and another network gets the next turn."""
    began, order = Semaphore(0), list[str]()

    class Noticed(Event):
        def wait(self, timeout: float | None = None) -> bool:
            began.release()
            return super().wait(timeout)

    monkeypatch.setattr(password_hashing, "Event", Noticed)
    turns = password_hashing.Turns()

    def guess(network: str) -> None:
        turns.take(network)
        order.append(network)
        turns.give_back(network)

    for _ in range(password_hashing.AT_ONCE):
        turns.take("guessing")
    with ThreadPoolExecutor(password_hashing.MAX_WAITING + 2) as threads:
        guesses = [threads.submit(guess, "guessing") for _ in range(password_hashing.MAX_WAITING)]
        for _ in guesses:
            assert began.acquire(timeout=20)
        with pytest.raises(password_hashing.HashersBusy):
            turns.take("guessing")
        others = [threads.submit(guess, "office") for _ in range(2)]
        for _ in others:
            assert began.acquire(timeout=20)
        turns.give_back("guessing")
        for done in (*guesses, *others):
            done.result(20)
    assert order[:3] == ["office", "guessing", "office"]
    assert order.count("guessing") == password_hashing.MAX_WAITING
    turns.take("office")  # the turn is free again


@pytest.mark.parametrize(("https", "address"), [(True, "203.0.113.9"), (False, "127.0.0.1")])
def test_address_behind_a_proxy_is_the_one_that_the_proxy_reports(
    settings: Settings, https: bool, address: str
) -> None:
    """Addresses that the client itself put into the header come before the proxy's entry and are ignored."""
    settings.HTTPS = https
    request = RequestFactory().get("/", HTTP_X_FORWARDED_FOR="10.0.0.1, 203.0.113.9")
    assert address_of(request) == address


@pytest.mark.parametrize(
    ("proxies", "header", "address"),
    [
        (1, "10.0.0.1, 203.0.113.9", "203.0.113.9"),
        (2, "10.0.0.1, 203.0.113.9:50123, 198.51.100.7", "203.0.113.9"),
        (2, "203.0.113.9,198.51.100.7", "203.0.113.9"),
        (3, "203.0.113.9, 198.51.100.7", "203.0.113.9"),
        (3, "203.0.113.9", "203.0.113.9"),
        (2, "", "127.0.0.1"),
    ],
)
def test_address_behind_several_proxies_is_the_one_that_the_first_reports(
    settings: Settings, proxies: int, header: str, address: str
) -> None:
    """A header with fewer addresses than PROXIES gives its first one."""
    settings.HTTPS, settings.PROXIES = True, proxies
    assert address_of(RequestFactory().get("/", HTTP_X_FORWARDED_FOR=header)) == address


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("203.0.113.9:50123", "203.0.113.9"),
        ("[2001:db8::1]:50123", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:203.0.113.9", "::ffff:203.0.113.9"),
    ],
)
def test_port_of_the_client_is_no_part_of_its_address(settings: Settings, entry: str, address: str) -> None:
    """Azure's and AWS's load balancers can add the port. Each connection would otherwise count as another network."""
    settings.HTTPS = True
    request = RequestFactory().get("/", HTTP_X_FORWARDED_FOR=f"10.0.0.1, {entry}")
    assert address_of(request) == address


def test_part_of_a_page_leads_to_sign_in_when_the_login_is_over(client: Client) -> None:
    """Otherwise the sign-in form would be swapped into the middle of a list."""
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/sessions/s_1/?x=1"}
    response = client.get(reverse("home"), headers=headers)
    assert (response.status_code, response.headers["HX-Redirect"]) == (
        401,
        "/accounts/sign-in/?next=%2Fsessions%2Fs_1%2F",
    )


def test_sign_out_needs_a_form(signed_in: SignIn, ana: User) -> None:
    """A link or an image on another site cannot sign a user out."""
    client = signed_in(ana)
    assert client.get(reverse("sign-out")).status_code == 405
    assert client.post(reverse("sign-out")).headers["Location"] == reverse("sign-in")
    assert signed_in_user(client) is None


def test_form_from_elsewhere_is_refused_in_words(ana: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ana)
    response = client.post(reverse("new-session"))
    assert (response.status_code, "This form has expired" in response.content.decode()) == (403, True)
    answer = client.post(reverse("new-session"), headers={"Accept": "application/json"})
    assert (answer.status_code, "Reload it" in answer.json()["message"]) == (403, True)


# --- with a link -------------------------------------------------------------------------------------------------


def test_link_signs_in_and_leads_home(client: Client, ana: User) -> None:
    """The printed link leads to the home page; it creates no session that might stay empty."""
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


def test_start_leaves_a_link_that_was_made_before_it(ana: User) -> None:
    """A start keeps only the last earlier link, so restarts do not collect links. The command ends all earlier ones."""
    made = accounts.sign_in_link(user=ana)
    started = [accounts.sign_in_link(user=ana, keeps_last=True) for _ in range(2)]
    assert [accounts.link_owner(token) for token in (made, *started)] == [None, ana, ana]
    assert accounts.redeem(started[0]) == ana
    assert accounts.redeem(started[1]) is None
    last = accounts.sign_in_link(user=ana, keeps_last=True)
    accounts.sign_in_link(user=ana)
    assert accounts.link_owner(last) is None


LOOKING: list[dict[str, str]] = [{}, {"Sec-Purpose": "prefetch"}, {"User-Agent": "Slackbot-LinkExpanding 1.0"}]


@pytest.mark.parametrize("act", ["password", "elsewhere"])
def test_link_ends_when_its_person_wants_to_be_alone(signed_in: SignIn, ana: User, act: str) -> None:
    """LIVE-06: a new password and signing out other devices both end a sign-in link that staff may have made."""
    ana.set_password("long and old 1")
    ana.save()
    client, token = signed_in(ana), accounts.sign_in_link(user=ana)
    words = {"old_password": "long and old 1", "new_password1": "long and new 2", "new_password2": "long and new 2"}
    assert client.post(reverse("settings"), {"part": act, **words}).status_code == 302
    assert accounts.link_owner(token) is None
    assert accounts.redeem(token) is None


@pytest.mark.parametrize("headers", LOOKING)
def test_link_that_is_only_looked_at_stays_good(ana: User, headers: dict[str, str]) -> None:
    """Previews, mail scanners and prefetching browsers request the page; only pressing its button uses the link up."""
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
    """A form on another site cannot press the link's button."""
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    client = Client(enforce_csrf_checks=True)
    assert client.post(link).status_code == 403
    assert accounts.link_owner(link.rpartition("/")[2]) == ana


def test_link_of_another_person_ends_the_login_that_was(client: Client, ana: User, bo: User) -> None:
    """The page announces it first; no data of the first user's session is left in the second one's."""
    client.force_login(bo)
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    assert "You’re signed in as Bo." in client.get(link).content.decode()
    assert client.get("/").status_code == 200
    secret = give_app(ana)
    assert client.post(link).headers["Location"] == reverse("second-step")
    assert not LoginSession.objects.filter(user=bo).exists()
    client.post(reverse("second-step"), {"code": code_of(secret)})
    assert signed_in_user(client) == str(ana.pk)


# --- with an invitation ------------------------------------------------------------------------------------------


def test_invitation_creates_an_account_and_opens_the_session(client: Client, session: Session, invitation: str) -> None:
    """An invitation creates the account, the membership and the share, and opens the session."""
    assert "Ana invited you" in client.get(invitation).content.decode()
    values = {"display_name": "Cleo", "username": "cleo", "password": "nine lives 9"}
    response = client.post(invitation, values)
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    cleo = User.objects.get(username="cleo")
    assert signed_in_user(client) == str(cleo.pk)
    assert role_in(cleo, session) == SessionRole.EDITOR


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"password": "a"}, "too short"), ({"username": "ana"}, "is taken"), ({"display_name": ""}, "required")],
)
def test_refused_account_is_explained(client: Client, invitation: str, changes: dict[str, str], words: str) -> None:
    values = {"display_name": "Cleo", "username": "cleo", "password": "nine lives 9", **changes}
    response = client.post(invitation, values)
    assert (response.status_code, words in response.content.decode()) == (422, True)
    assert signed_in_user(client) is None


def test_all_problems_of_a_new_account_are_shown_each_at_its_field(client: Client, invitation: str) -> None:
    response = client.post(invitation, {"display_name": "", "username": "Ana", "password": "short"})
    form = response.context["form"]
    assert {name: " ".join(errors)[:38] for name, errors in form.errors.items()} == {
        "display_name": "This field is required.",
        "username": "The user name “Ana” is taken.",
        "password": "This password is too short. It must co",
    }
    assert 'id="id_username_error"' in response.content.decode()


def test_first_refused_field_of_a_new_account_has_the_focus(client: Client, invitation: str, ana: User) -> None:
    values = {"display_name": "Ana", "username": ana.username, "password": "a"}
    name, reason = focused_field(client.post(invitation, values))
    assert (name, "taken" in reason) == ("username", True)
    assert not BeautifulSoup(client.get(invitation).content, "html.parser").select("[autofocus]")


def test_signed_in_person_joins_with_one_button(signed_in: SignIn, bo: User, session: Session, invitation: str) -> None:
    client = signed_in(bo)
    html = client.get(invitation).content.decode()
    assert ("Join as Bo" in html, 'name="password"' in html) == (True, False)
    assert not Share.objects.exists()
    response = client.post(invitation)
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    assert role_in(bo, session) == SessionRole.EDITOR


def test_invitation_that_is_over_says_so(client: Client, session: Session, ana: User, invitation: str) -> None:
    sharing.revoke_invitations(session=session, author=ana)
    for response in (client.get(invitation), client.post(invitation)):
        assert (response.status_code, "no longer works" in response.content.decode()) == (410, True)
