"""Two-step verification: set up, required at sign-in, removed, and required by a setting."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from allauth.mfa.models import Authenticator
from bs4 import BeautifulSoup, Tag
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from fido2.webauthn import AuthenticatorData
from pytest_django.fixtures import Settings

from chat.errors import ServiceError
from chat.limits import counters
from chat.models import LoginSession, SecurityEvent, Session, User
from chat.services.people import accounts, api_tokens, login_throttle, second_factor
from chat.services.people.security_log import Kind
from chat.sign_in.adapters import CONFIRMED_AT, MFAAdapter
from tests.support.second_factors import HOST, ORIGIN, SoftPasskey, code_of, give_app, give_codes

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse"
SIGN_IN, SECOND_STEP, PASSKEY_SIGN_IN = reverse("sign-in"), reverse("second-step"), reverse("passkey-sign-in")
TWO_STEP, ADD_APP, ADD_PASSKEY = reverse("two-step"), reverse("two-step-app"), reverse("two-step-passkey")


@pytest.fixture
def browser() -> Client:
    return Client(SERVER_NAME=HOST)


def user_of(client: Client) -> int | None:
    user_id = client.session.get("_auth_user_id")
    return int(user_id) if user_id else None


def sign_in(client: Client, user: User, **more: str) -> Any:
    return client.post(SIGN_IN, {"username": user.username, "password": PASSWORD, **more})


def signed_in(client: Client, user: User) -> Client:
    """Sign in through the sign-in page, which counts as a recent authentication."""
    sign_in(client, user)
    assert user_of(client) == user.pk
    return client


def soup(response: Any) -> BeautifulSoup:
    return BeautifulSoup(response.content, "html.parser")


def options_in(response: Any) -> dict[str, Any]:
    script = soup(response).find(id="passkey-options")
    assert isinstance(script, Tag)
    options: dict[str, Any] = json.loads(script.get_text())
    return options


def alert_in(response: Any) -> str:
    shown = [each for each in soup(response).select("[role=alert]") if not each.has_attr("hidden")]
    return " ".join(each.get_text(strip=True) for each in shown)


def kinds_of(user: User) -> list[str]:
    """Return the kinds of a user's entries in the security log, in order."""
    return list(SecurityEvent.objects.filter(person=user).order_by("pk").values_list("kind", flat=True))


def with_passkey(client: Client, name: str = "Laptop") -> SoftPasskey:
    """Add a passkey to the account of the signed-in user."""
    passkey = SoftPasskey()
    credential = passkey.create(options_in(client.get(ADD_PASSKEY)))
    answer = client.post(ADD_PASSKEY, {"name": name, "credential": credential})
    assert answer.status_code in (200, 302), alert_in(answer)
    return passkey


# --- setting it up -----------------------------------------------------------------------------------------------


def test_app_is_set_up_by_its_first_code(browser: Client, ana: User) -> None:
    """The QR code's secret is stored encrypted; ten recovery codes are shown once; other sign-ins end."""
    elsewhere = signed_in(Client(), ana)
    page = soup(signed_in(browser, ana).get(ADD_APP))
    key = page.select_one(".setup-key code")
    assert key is not None
    assert page.select_one(".qr-code svg path") is not None
    secret = key.get_text().replace(" ", "")
    assert "Invalid code" in alert_in(browser.post(ADD_APP, {"code": "12"}))

    done = browser.post(ADD_APP, {"code": code_of(secret)})

    codes = [each.get_text() for each in soup(done).select("#codes li")]
    assert (len(codes), all(len(code) == 8 for code in codes)) == (10, True)
    row = Authenticator.objects.get(user=ana, type="totp")
    assert secret not in json.dumps(row.data)
    assert not any(code in str(each.data) for code in codes for each in Authenticator.objects.all())
    assert not any(code in browser.get(TWO_STEP).content.decode() for code in codes)
    assert (user_of(browser), user_of(elsewhere)) == (ana.pk, None)
    assert kinds_of(ana)[-3:] == [
        Kind.SECOND_FACTOR_ADDED,
        Kind.SIGNED_OUT_ELSEWHERE,
        Kind.RECOVERY_CODES_MADE,
    ]


def test_secret_waits_encrypted_in_the_browser_s_session(browser: Client, ana: User) -> None:
    key = soup(signed_in(browser, ana).get(ADD_APP)).select_one(".setup-key code")
    assert key is not None
    assert key.get_text().replace(" ", "") not in str(dict(browser.session.items()))


@pytest.mark.parametrize(
    ("public_url", "host", "name"),
    [
        ("", "localhost", "Parley localhost"),
        ("", "localhost:9443", "Parley localhost 9443"),
        ("https://chat.example.org", "localhost", "Parley chat.example.org"),
    ],
)
def test_app_tells_servers_apart(
    ana: User, settings: Settings, monkeypatch: pytest.MonkeyPatch, public_url: str, host: str, name: str
) -> None:
    """An app replaces an entry with the same label: the user could no longer sign in to the other server."""
    settings.PUBLIC_URL = public_url
    urls: list[str] = []
    monkeypatch.setattr(MFAAdapter, "build_totp_svg", lambda self, url: urls.append(url))
    browser = signed_in(Client(SERVER_NAME=HOST), ana)
    assert browser.get(ADD_APP, headers={"Host": host}).status_code == 200
    [url] = map(urlsplit, urls)
    assert unquote(url.path) == f"/{name}:{ana.username}"
    assert parse_qs(url.query)["issuer"] == [name]


def test_second_app_is_refused(browser: Client, ana: User) -> None:
    signed_in(browser, ana)
    give_app(ana)
    key = soup(browser.get(ADD_APP)).select_one(".setup-key code")
    assert key is not None
    answer = browser.post(ADD_APP, {"code": code_of(key.get_text().replace(" ", ""))})
    assert (answer.status_code, "already" in alert_in(answer)) == (422, True)


def test_passkey_is_added_renamed_and_removed(browser: Client, ana: User) -> None:
    """Removing the last factor removes its recovery codes, and ends other sign-ins, which count as having passed it."""
    passkey = with_passkey(signed_in(browser, ana), "Laptop ")
    other = Client(SERVER_NAME=HOST)
    other.post(PASSKEY_SIGN_IN, {"credential": passkey.get(other.get(PASSKEY_SIGN_IN).json())})
    assert user_of(other) == ana.pk
    [factor] = second_factor.factors_of(ana).passkeys
    assert (factor.name, second_factor.factors_of(ana).codes_left) == ("Laptop", 10)
    browser.post(TWO_STEP, {"part": "rename", "id": str(factor.id), "name": "Work"})
    assert "Work" in browser.get(TWO_STEP).content.decode()
    browser.post(TWO_STEP, {"part": "remove", "id": str(factor.id)})
    assert not Authenticator.objects.exists()
    assert kinds_of(ana)[-2:] == [Kind.SECOND_FACTOR_REMOVED, Kind.SIGNED_OUT_ELSEWHERE]
    assert (user_of(browser), user_of(other)) == (ana.pk, None)
    assert browser.session[second_factor.PASSED] is False


def test_removal_of_the_last_factor_says_what_ends(browser: Client, ana: User) -> None:
    """UI-09: before the last factor is removed, the page says that the recovery codes end, and who is locked out.

    Its first sentence says whether two-step verification is on.
    """
    assert "Off. Add an app or a passkey" in signed_in(browser, ana).get(TWO_STEP).content.decode()
    with_passkey(browser)
    assert "Signing in takes a second step" in browser.get(TWO_STEP).content.decode()
    off, locked_out = "Two-step verification is then off", "You have no password: set one first"
    [factor] = second_factor.factors_of(ana).passkeys
    page = browser.get(TWO_STEP).content.decode()
    assert (off in page, locked_out in page) == (True, False)
    with_passkey(browser, "Phone")
    page = browser.get(TWO_STEP).content.decode()
    assert (off in page, locked_out in page) == (False, False)
    ana.set_unusable_password()
    ana.save()
    browser.force_login(ana)
    confirmation = browser.session
    confirmation[CONFIRMED_AT] = time.time()
    confirmation.save()
    Authenticator.objects.filter(pk=factor.id).delete()
    [factor] = second_factor.factors_of(ana).passkeys
    page = browser.get(TWO_STEP).content.decode()
    assert (off in page, locked_out in page) == (True, True)
    removed = browser.post(TWO_STEP, {"part": "remove", "id": str(factor.id)}, follow=True).content.decode()
    assert "Passkey removed. Two-step verification is now off." in removed


def test_refused_name_of_a_passkey_stays_in_its_form(browser: Client, ana: User) -> None:
    """UI-09: a refused rename leaves the form open, with the entered name."""
    with_passkey(signed_in(browser, ana))
    [factor] = second_factor.factors_of(ana).passkeys
    refused = browser.post(TWO_STEP, {"part": "rename", "id": str(factor.id), "name": "x" * 81})
    field = soup(refused).select_one("details[open] input[name=name]")
    assert field is not None
    assert (refused.status_code, field["value"], browser.get(TWO_STEP).content.decode().count("x" * 81)) == (
        422,
        "x" * 81,
        0,
    )


def test_recovery_codes_are_replaced(browser: Client, ana: User) -> None:
    signed_in(browser, ana)
    give_app(ana)
    old = give_codes(ana)
    new = [each.get_text() for each in soup(browser.post(TWO_STEP, {"part": "codes"})).select("#codes li")]
    assert len(set(old) | set(new)) == 20
    with pytest.raises(ServiceError):
        second_factor.check_code(user=ana, code=old[0])
    second_factor.check_code(user=ana, code=new[0])


HALF = '{"id": "eA", "rawId": "eA", "response": {"clientDataJSON": "e30"}}'


@pytest.mark.parametrize("wrong", ["", "{}", "[]", "null", "nonsense", '{"id": 1}', HALF, "[" * 5000, "9" * 10**5])
def test_odd_credentials_are_refused_in_words(browser: Client, ana: User, wrong: str) -> None:
    """MSG-12: invalid credentials get an error text, never an error page."""
    signed_in(browser, ana).get(ADD_PASSKEY)
    answer = browser.post(ADD_PASSKEY, {"name": "x", "credential": wrong})
    assert (answer.status_code, "Couldn’t add" in alert_in(answer)) == (422, True)
    browser.get(PASSKEY_SIGN_IN)
    stranger = Client(SERVER_NAME=HOST)
    stranger.get(PASSKEY_SIGN_IN)
    assert stranger.post(PASSKEY_SIGN_IN, {"credential": wrong}).headers["Location"] == SIGN_IN
    assert not Authenticator.objects.exists()


def test_key_without_a_pin_is_not_enough(browser: Client, ana: User) -> None:
    """A passkey also replaces the password, so it must verify the user."""
    signed_in(browser, ana)
    passkey = SoftPasskey(flags=AuthenticatorData.FLAG.UP)
    credential = passkey.create(options_in(browser.get(ADD_PASSKEY)))
    answer = browser.post(ADD_PASSKEY, {"name": "x", "credential": credential})
    assert answer.status_code == 422
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "192.0.2.7"])
def test_passkeys_are_not_offered_where_browsers_have_none(settings: Settings, ana: User, host: str) -> None:
    """Browsers have no passkeys at an IP address; the page names an address where they work."""
    settings.ALLOWED_HOSTS = ["*"]
    client = Client(SERVER_NAME=host)
    assert "passkey" not in client.get(SIGN_IN).content.decode()
    html = signed_in(client, ana).get(TWO_STEP).content.decode()
    assert ("http://localhost" in html, ADD_PASSKEY in html) == (True, False)


# --- confirming ----------------------------------------------------------------------------------------------------


def stale(client: Client) -> Client:
    """Make the user's last authentication an old one."""
    session = client.session
    session[CONFIRMED_AT] = 0
    session.save()
    return client


@pytest.mark.parametrize("address", [ADD_APP, ADD_PASSKEY, TWO_STEP])
def test_changes_ask_for_a_fresh_proof(browser: Client, ana: User, address: str) -> None:
    """Changes require a recent authentication; with the password, the user returns to where they were going."""
    stale(signed_in(browser, ana))
    asked = browser.post(address, {"part": "codes"})
    confirm = f"{reverse('confirm')}?next={address.replace('/', '%2F')}"
    assert asked.headers["Location"] == confirm
    wrong = browser.post(confirm, {"password": "no"})
    assert (wrong.status_code, alert_in(wrong)) == (422, "Wrong password.")
    right = browser.post(confirm, {"password": PASSWORD, "next": address})
    assert right.headers["Location"] == address
    assert browser.get(address).status_code == 200
    failed = SecurityEvent.objects.get(kind=Kind.SIGN_IN_FAILED)
    assert failed.details == {"method": "password", "step": "confirmation"}


def test_new_name_survives_the_confirmation(browser: Client, ana: User) -> None:
    """UI-09: after the confirmation, the form is open with the entered name. Before, the list had the old name."""
    with_passkey(signed_in(browser, ana))
    factor = Authenticator.objects.get(user=ana, type=Authenticator.Type.WEBAUTHN)
    session = browser.session
    session[CONFIRMED_AT] = 0
    session.save()
    change = {"part": "rename", "id": str(factor.pk), "name": "Work"}
    assert browser.post(TWO_STEP, change).headers["Location"].startswith(reverse("confirm"))
    assert factor.wrap().name == "Laptop"
    session = browser.session
    session[CONFIRMED_AT] = time.time()
    session.save()
    form = soup(browser.get(TWO_STEP)).select("details[open] input[name=name]")
    assert [(each["value"], each.has_attr("autofocus")) for each in form] == [("Work", True)]
    assert soup(browser.get(TWO_STEP)).select("details[open]") == []
    browser.post(TWO_STEP, change)
    assert [each.name for each in second_factor.factors_of(ana).passkeys] == ["Work"]


def test_with_a_second_factor_it_is_that_which_proves(browser: Client, ana: User) -> None:
    """A password alone, which may be stolen, removes no factor."""
    stale(signed_in(browser, ana))
    secret = give_app(ana)
    confirm = reverse("confirm")
    assert browser.post(confirm, {"password": PASSWORD}).status_code == 422
    assert browser.post(confirm, {"code": code_of(secret)}).headers["Location"] == TWO_STEP


def test_password_of_the_confirmation_is_not_guessed_at(browser: Client, ana: User) -> None:
    stale(signed_in(browser, ana))
    for _ in range(login_throttle.FREE_GUESSES):
        browser.post(reverse("confirm"), {"password": "no"})
    answer = browser.post(reverse("confirm"), {"password": PASSWORD})
    assert (answer.status_code, "Try again in" in alert_in(answer)) == (422, True)


def test_who_came_by_a_link_can_set_it_up(browser: Client, ana: User) -> None:
    """Without a password and a second factor there is nothing to authenticate with."""
    ana.set_unusable_password()
    ana.save()
    browser.post(reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)]))
    assert stale(browser).get(ADD_APP).status_code == 200


# --- signing in ----------------------------------------------------------------------------------------------------


def test_password_alone_does_not_sign_in_a_user_with_an_app(browser: Client, ana: User) -> None:
    """LIVE-06: pages, API and admin stay closed before the code; each code leads to `next`, once."""
    secret = give_app(ana)
    answer = sign_in(browser, ana, next="/settings/")
    assert answer.headers["Location"] == SECOND_STEP
    assert browser.get("/").headers["Location"].startswith(SIGN_IN)
    assert browser.get("/api/me").status_code == 401
    wrong = browser.post(SECOND_STEP, {"code": "000000"})
    assert (wrong.status_code, "Invalid code" in alert_in(wrong)) == (422, True)

    code = code_of(secret)
    assert "parley_browser" not in browser.cookies
    assert browser.post(SECOND_STEP, {"code": f" {code[:3]} {code[3:]} "}).headers["Location"] == "/settings/"
    assert "parley_browser" in browser.cookies  # set only after the last step

    assert user_of(browser) == ana.pk
    events = SecurityEvent.objects.filter(person=ana).order_by("pk")
    assert [(event.kind, event.details) for event in events] == [
        (Kind.SECOND_FACTOR_FAILED, {"method": "code"}),
        (Kind.SIGN_IN, {"method": "password + totp"}),
    ]
    other = Client()
    sign_in(other, ana)
    assert other.post(SECOND_STEP, {"code": code}).status_code == 422  # the code was used


@pytest.mark.parametrize(("step", "works"), [(-2, False), (-1, True), (1, True), (2, False)])
def test_code_counts_half_a_minute_early_and_late(ana: User, step: int, works: bool) -> None:
    code = code_of(give_app(ana), step=step)
    try:
        second_factor.check_code(user=ana, code=code)
    except ServiceError:
        assert not works
    else:
        assert works


def test_used_code_is_remembered_by_the_row(ana: User) -> None:
    """A used code, or an older one, is rejected, also by other processes and after the cache was cleared."""
    secret = give_app(ana)
    second_factor.check_code(user=ana, code=code_of(secret))
    counters.reset()
    for step in (0, -1):
        with pytest.raises(ServiceError):
            second_factor.check_code(user=ana, code=code_of(secret, step=step))


def test_recovery_code_signs_in_once(browser: Client, ana: User) -> None:
    give_app(ana)
    code = give_codes(ana)[3]
    sign_in(browser, ana)
    browser.post(SECOND_STEP, {"code": code})
    assert user_of(browser) == ana.pk
    assert second_factor.factors_of(ana).codes_left == 9
    other = Client()
    sign_in(other, ana)
    other.post(SECOND_STEP, {"code": code})
    assert user_of(other) is None


def test_reason_of_a_refused_code_describes_its_field(browser: Client, ana: User) -> None:
    """Screen readers do not announce alerts that are on the page when it loads."""
    give_app(ana)
    sign_in(browser, ana)
    refused = browser.post(SECOND_STEP, {"code": "000000"})
    field = soup(refused).find(id="code")
    assert isinstance(field, Tag)
    described = [soup(refused).find(id=each) for each in str(field["aria-describedby"]).split()]
    assert next(part.get_text() for part in described if part) == alert_in(refused)


def test_codes_are_not_guessed(browser: Client, ana: User) -> None:
    """Wrong codes are counted per user, from any number of addresses; other users are not affected."""
    secret = give_app(ana)
    for number in range(login_throttle.FREE_GUESSES):
        client = Client(REMOTE_ADDR=f"192.0.2.{number}")
        sign_in(client, ana)
        client.post(SECOND_STEP, {"code": "000000"})
    sign_in(browser, ana)
    answer = browser.post(SECOND_STEP, {"code": code_of(secret)})
    assert (answer.status_code, "Try again in" in alert_in(answer), user_of(browser)) == (422, True, None)


def test_link_does_not_replace_the_second_factor(browser: Client, ana: User) -> None:
    """A link helps a user who forgot the password, not someone who has stolen the link alone."""
    secret = give_app(ana)
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])
    assert browser.post(link).headers["Location"] == SECOND_STEP
    assert user_of(browser) is None
    browser.post(SECOND_STEP, {"code": code_of(secret)})
    assert user_of(browser) == ana.pk


def test_passkey_is_the_second_step(browser: Client, ana: User) -> None:
    passkey = with_passkey(signed_in(browser, ana))
    client = Client(SERVER_NAME=HOST)
    sign_in(client, ana)
    answer = client.post(SECOND_STEP, {"credential": passkey.get(options_in(client.get(SECOND_STEP)))})
    assert (answer.headers["Location"], user_of(client)) == ("/", ana.pk)


def test_passkey_signs_in_without_a_password(browser: Client, ana: User, bo: User) -> None:
    """A passkey needs no name or password and counts as both steps; its challenge is valid for one answer."""
    passkey = with_passkey(signed_in(browser, ana))
    client = Client(SERVER_NAME=HOST)
    credential = passkey.get(client.get(PASSKEY_SIGN_IN).json())
    answer = client.post(PASSKEY_SIGN_IN, {"credential": credential, "next": "/settings/"})
    assert (answer.headers["Location"], user_of(client)) == ("/settings/", ana.pk)
    assert client.session[second_factor.PASSED] is True
    assert client.session.get_expiry_age() > 86_400
    assert SecurityEvent.objects.filter(person=ana).latest("pk").details == {"method": "passkey"}
    other = Client(SERVER_NAME=HOST)
    other.get(PASSKEY_SIGN_IN)
    other.post(PASSKEY_SIGN_IN, {"credential": credential})
    assert user_of(other) is None


def test_challenges_are_limited_by_address(browser: Client, settings: Settings) -> None:
    """Each challenge stores a short session row: the limit keeps the table from filling up.

    The answer to a challenge is not counted, because it stores none.
    """
    settings.LIMITS = "passkeys=2/minute"
    for _ in range(2):
        client = Client(SERVER_NAME=HOST)
        assert client.get(PASSKEY_SIGN_IN).status_code == 200
        assert client.post(PASSKEY_SIGN_IN, {"credential": "x"})["Location"] == SIGN_IN
    refused = browser.get(PASSKEY_SIGN_IN, headers={"Accept": "application/json"})
    assert (refused.status_code, "Try again in" in refused.json()["message"]) == (429, True)
    assert 0 < int(refused["Retry-After"]) <= 60
    lives = LoginSession.objects.values_list("expire_date", flat=True)
    assert [each < timezone.now() + timedelta(minutes=11) for each in lives] == [True, True]


def test_passkey_that_cannot_be_stored_is_refused(browser: Client, ana: User) -> None:
    """Unknown WebAuthn members are stored with the passkey, and PostgreSQL cannot store NUL."""
    credential = json.loads(SoftPasskey().create(options_in(signed_in(browser, ana).get(ADD_PASSKEY))))
    answer = browser.post(ADD_PASSKEY, {"name": "Laptop", "credential": json.dumps({**credential, "note": "\0"})})
    assert (answer.status_code, "Couldn’t add" in alert_in(answer)) == (422, True)
    assert not Authenticator.objects.exists()


def test_forged_passkey_and_passkey_of_a_deactivated_user_are_refused(browser: Client, ana: User, bo: User) -> None:
    passkey = with_passkey(signed_in(browser, ana))

    def tried(**changed: Any) -> int | None:
        client = Client(SERVER_NAME=HOST)
        forged = SoftPasskey(key=passkey.key, id=passkey.id, user_handle=passkey.user_handle)
        for name, value in changed.items():
            setattr(forged, name, value)
        client.post(PASSKEY_SIGN_IN, {"credential": forged.get(client.get(PASSKEY_SIGN_IN).json())})
        return user_of(client)

    assert tried() == ana.pk
    assert tried(origin="https://evil.example") is None
    assert tried(flags=AuthenticatorData.FLAG.UP) is None
    assert tried(user_handle="Ng") is None
    assert tried(key=SoftPasskey().key) is None
    User.objects.filter(pk=ana.pk).update(is_active=False)
    assert tried() is None
    assert ORIGIN.startswith("http://localhost")


def test_deactivated_between_the_steps_is_out(browser: Client, ana: User) -> None:
    secret = give_app(ana)
    sign_in(browser, ana)
    User.objects.filter(pk=ana.pk).update(is_active=False)
    browser.post(SECOND_STEP, {"code": code_of(secret)})
    assert browser.get("/").headers["Location"].startswith(SIGN_IN)


def test_new_password_ends_what_was_half_way(browser: Client, ana: User) -> None:
    """LIVE-06: someone who guessed the old password cannot complete the second step."""
    secret = give_app(ana)
    sign_in(browser, ana)
    accounts.set_password(user=ana, password="quite another", keep=None)
    browser.post(SECOND_STEP, {"code": code_of(secret)})
    assert user_of(browser) is None


def test_own_password_in_the_admin_ends_what_was_half_way(browser: Client, boss: User) -> None:
    """LIVE-06: staff who change their own password in the admin stay signed in there; all their other sign-ins end."""
    secret = give_app(boss)
    own, other = Client(SERVER_NAME=HOST), Client(SERVER_NAME=HOST)
    own.force_login(boss)
    other.force_login(boss)
    sign_in(browser, boss)
    assert LoginSession.objects.filter(user=boss).count() == 3
    page = reverse("admin:auth_user_password_change", args=[boss.pk])
    passwords = {"usable_password": "true", "password1": "quite another 1", "password2": "quite another 1"}
    assert own.post(page, passwords).status_code == 302
    assert user_of(own) == boss.pk
    assert [login.user_id for login in LoginSession.objects.all()] == [boss.pk]
    browser.post(SECOND_STEP, {"code": code_of(secret)})
    assert user_of(browser) is None
    assert not User.objects.get(pk=boss.pk).account_notices


def test_first_step_counts_for_the_password_it_was_made_with(browser: Client, ana: User) -> None:
    """LIVE-06: a changed password invalidates the first step, even if no service ended the sign-in."""
    secret = give_app(ana)
    sign_in(browser, ana)
    ana.set_password("quite another")
    ana.save()
    assert LoginSession.objects.filter(user=ana).exists()
    assert browser.post(SECOND_STEP, {"code": code_of(secret)}).headers["Location"] == SIGN_IN
    assert user_of(browser) is None
    assert browser.get(SECOND_STEP).headers["Location"] == SIGN_IN


def test_second_step_is_for_who_passed_the_first(browser: Client, ana: User) -> None:
    assert browser.get(SECOND_STEP).headers["Location"] == SIGN_IN
    assert signed_in(browser, ana).get(SECOND_STEP).headers["Location"] == "/"


def test_secret_of_another_key_is_a_wrong_code(settings: Settings, ana: User) -> None:
    """A server whose SECRET_KEY was lost reports it in its log, and the operator can reset the factor."""
    code = code_of(give_app(ana))
    settings.SECRET_KEY = "quite another"
    with pytest.raises(ServiceError):
        second_factor.check_code(user=ana, code=code)
    assert second_factor.factors_of(ana).app is not None


# --- required ------------------------------------------------------------------------------------------------------


@pytest.fixture
def boss(db: None) -> User:
    return User.objects.create_superuser("boss", password=PASSWORD)


@pytest.mark.parametrize(
    ("required", "held_up"),
    [("none", []), ("staff", ["boss", "clerk", "root"]), ("all", ["ana", "boss", "clerk", "root"])],
)
def test_setting_says_who_must_have_one(
    settings: Settings, ana: User, boss: User, required: str, held_up: list[str]
) -> None:
    """ "Staff" includes every user with rights in the admin: a superuser has all permissions without being staff."""
    settings.REQUIRE_MFA = required
    clerk = User.objects.create_user("clerk", password=PASSWORD, is_staff=True)
    root = User.objects.create_user("root", password=PASSWORD, is_superuser=True)
    led = {user.username: sign_in_and_look(user) for user in (ana, boss, clerk, root)}
    assert [name for name, location in led.items() if location == TWO_STEP] == held_up


def sign_in_and_look(user: User) -> str | None:
    client = Client()
    sign_in(client, user)
    return client.get("/").headers.get("Location")


def test_who_owes_one_is_led_to_setting_it_up(settings: Settings, browser: Client, boss: User) -> None:
    """LIVE-06: admin, scripts, page fragments and API each report it in their own form; after the setup all work."""
    settings.REQUIRE_MFA = "staff"
    signed_in(browser, boss)
    assert browser.get("/admin/").headers["Location"] == TWO_STEP
    script = browser.post(reverse("preferences"), headers={"Accept": "application/json"})
    assert (script.status_code, script.json()["code"]) == (403, "second_factor_required")
    part = browser.get("/session-list", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["HX-Redirect"]) == (403, TWO_STEP)
    api = browser.get("/api/me")
    assert (api.status_code, api.json()["code"]) == (403, "second_factor_required")
    assert "requires two-step verification" in browser.get(TWO_STEP).content.decode()
    key = soup(browser.get(ADD_APP)).select_one(".setup-key code")
    assert key is not None
    browser.post(ADD_APP, {"code": code_of(key.get_text().replace(" ", ""))})
    assert browser.get("/admin/").status_code == 200
    assert browser.get("/api/me").status_code == 200


def test_link_does_not_get_around_it(settings: Settings, browser: Client, boss: User) -> None:
    settings.REQUIRE_MFA = "staff"
    browser.post(reverse("sign-in-link", args=[accounts.sign_in_link(user=boss)]))
    assert browser.get("/").headers["Location"] == TWO_STEP


def test_last_factor_stays_where_one_is_required(settings: Settings, browser: Client, boss: User) -> None:
    """Recovery codes do not count as another factor."""
    settings.REQUIRE_MFA = "staff"
    secret = give_app(boss)
    give_codes(boss)
    sign_in(browser, boss)
    browser.post(SECOND_STEP, {"code": code_of(secret)})
    row = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    answer = browser.post(TWO_STEP, {"part": "remove", "id": str(row.pk)})
    assert (answer.status_code, "needs a second factor" in alert_in(answer)) == (422, True)


def test_token_owes_nothing(settings: Settings, ana: User) -> None:
    """A token is a credential of its own; an additional cookie changes nothing."""
    client = signed_in(Client(), ana)
    _token, secret = api_tokens.create(user=ana, name="Script", scope="read", days=0)
    settings.REQUIRE_MFA = "all"
    assert client.get("/api/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert client.get("/", headers={"Authorization": f"Bearer {secret}"}).headers["Location"] == TWO_STEP


# --- cost -------------------------------------------------------------------------------------------------------


def test_ordinary_request_asks_nothing_more(
    settings: Settings, browser: Client, ana: User, django_assert_num_queries: Callable[[int], Any]
) -> None:
    """Two queries, session and user, include all that REQUIRE_MFA needs."""
    with_passkey(signed_in(browser, ana))
    settings.REQUIRE_MFA = "all"
    with django_assert_num_queries(2):
        assert browser.get(reverse("import")).status_code == 200


def test_notices_wait_for_their_person(browser: Client, ana: User, bo: User) -> None:
    """Every page shows what staff did with the account; a user who came by that very link can only hide it there."""
    session = Session.objects.count()
    link = reverse("sign-in-link", args=[accounts.sign_in_link(user=ana, author=bo)])
    words = f"Bo created a sign-in link for your account on {date_format(timezone.localdate())}."
    browser.post(link)
    for client in (browser, signed_in(Client(), ana)):
        assert words in client.get("/").content.decode()
        client.post(reverse("dismiss-notices"), {"next": "/settings/"})
        assert words not in client.get("/").content.decode()
        ana.refresh_from_db()
        assert bool(ana.account_notices) == (client is browser)
    assert Session.objects.count() == session


def test_sign_ins_of_a_person_are_found_by_a_column(browser: Client, ana: User, bo: User) -> None:
    """Sign-ins that have passed only the first step count as well."""
    give_app(ana)
    sign_in(browser, ana)
    signed_in(Client(), bo)
    assert LoginSession.objects.filter(user=ana).count() == 1
    assert LoginSession.objects.filter(user=bo).count() == 1
