"""The settings page: each of its forms, with and without JavaScript, and avatars."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from PIL import Image
from pytest_django.fixtures import Settings

from chat.models import User
from chat.services.people import login_throttle
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _own_files(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def picture() -> SimpleUploadedFile:
    data = BytesIO()
    Image.new("RGB", (8, 8), "red").save(data, "PNG")
    return SimpleUploadedFile("me.png", data.getvalue(), "image/png")


def send(client: Client, part: str, **values: object) -> str:
    """Send a form; return the page after the redirect."""
    return client.post(reverse("settings"), {"part": part, **values}, follow=True).content.decode()


def test_forms_work_without_a_script(signed_in: SignIn, ana: User) -> None:
    """UI-13: all values are saved, and the confirmation is in the language just chosen."""
    client = signed_in(ana)
    assert "Saved." in send(client, "preferences", theme="dark", language="", clock="12", send_key="enter")
    assert "Saved." in send(client, "notifications", notify="yes")
    assert "Name saved." in send(client, "name", name="Ana B.")
    ana.refresh_from_db()
    assert (ana.theme, ana.clock, ana.notify, ana.sender) == ("dark", "12", True, "Ana B.")
    send(client, "preferences", theme="", language="", clock="24", send_key="enter")
    send(client, "notifications")
    ana.refresh_from_db()
    assert (ana.theme, ana.notify) == ("", False)


def test_what_was_chosen_stands_on_every_page(signed_in: SignIn, ana: User) -> None:
    client = signed_in(ana)
    values = {"theme": "dark", "clock": "12", "send_key": "ctrl_enter"}
    assert client.post(reverse("preferences"), values).status_code == 204
    html = client.get(reverse("home")).content.decode()
    assert all(words in html for words in ('data-theme="dark"', 'data-clock="12"', 'data-send-key="ctrl_enter"'))


def test_refused_form_is_explained_in_its_place(signed_in: SignIn, ana: User) -> None:
    client = signed_in(ana)
    response = client.post(reverse("settings"), {"part": "name", "name": " "})
    html = response.content.decode()
    assert (response.status_code, 'class="errors"' in html, 'value="Ana"' in html) == (422, True, True)
    assert client.post(reverse("preferences"), {"theme": "pink"}).status_code == 422
    assert client.post(reverse("settings"), {"part": "picture"}).status_code == 422


def test_picture_is_for_colleagues_only(signed_in: SignIn, ana: User, bo: User) -> None:
    """LIVE-06: a user who shares no workspace sees neither the picture nor whether there is one."""
    client = signed_in(ana)
    html = send(client, "picture", picture=picture())
    address = html.split('<img src="')[1].split('"')[0]
    answers = []
    for who in (ana, bo, person("Stranger")):
        client.force_login(who)
        answers.append(client.get(address))
    assert [answer.status_code for answer in answers] == [200, 200, 404]
    assert (answers[1].headers["Content-Type"], answers[1].content[8:12]) == ("image/webp", b"WEBP")
    assert "private" in answers[1].headers["Cache-Control"]
    client.force_login(ana)
    assert "Picture removed." in send(client, "no-picture")
    assert client.get(address).status_code == 404


def test_new_password_ends_all_other_sign_ins(ana: User) -> None:
    here, there = Client(), Client()
    for client in (here, there):
        client.force_login(ana)
    values = {"old_password": PASSWORD, "new_password1": "a quite new one", "new_password2": "a quite new one"}
    assert "Password changed." in send(here, "password", **values)
    signed = [client.get(reverse("home")).status_code for client in (here, there)]
    ana.refresh_from_db()
    assert (signed, ana.check_password("a quite new one")) == ([200, 302], True)


def test_an_old_key_does_not_delete_the_cookie_of_a_newer_one(ana: User) -> None:
    """LIVE-06: another tab may send its last request with the key from before a change of the password.

    Its response may arrive after the cookie with the new key, and must not delete it. Signing out deletes the cookie.
    """
    here = Client()
    here.force_login(ana)
    name = settings.SESSION_COOKIE_NAME
    old = here.cookies[name].value
    values = {"old_password": PASSWORD, "new_password1": "a quite new one", "new_password2": "a quite new one"}
    assert "Password changed." in send(here, "password", **values)
    stale = Client()
    stale.cookies[name] = old
    late = stale.get(reverse("home"))
    assert (late.status_code, name in late.cookies) == (302, False)
    assert here.get(reverse("home")).status_code == 200
    assert here.post(reverse("sign-out")).cookies[name].value == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"old_password": "no"}, "Wrong password."),
        ({"new_password2": "x"}, "match"),
        ({"new_password1": ""}, "required"),
    ],
)
def test_refused_password_is_explained(signed_in: SignIn, ana: User, changes: dict[str, str], words: str) -> None:
    values = {"old_password": PASSWORD, "new_password1": "a quite new one", "new_password2": "a quite new one"}
    client = signed_in(ana)
    assert words in send(client, "password", **{**values, **changes})
    ana.refresh_from_db()
    assert ana.check_password(PASSWORD)
    assert client.get(reverse("home")).status_code == 200


def test_who_found_a_browser_open_cannot_guess_the_password(signed_in: SignIn, ana: User) -> None:
    values = {"new_password1": "a quite new one", "new_password2": "a quite new one"}
    client = signed_in(ana)
    for _ in range(login_throttle.FREE_GUESSES):
        send(client, "password", old_password="no", **values)
    assert "Try again in" in send(client, "password", old_password=PASSWORD, **values)
    ana.refresh_from_db()
    assert ana.check_password(PASSWORD)


def test_first_password_needs_no_old_one(signed_in: SignIn, ana: User) -> None:
    """A user who signed in by a link has no password yet."""
    ana.set_unusable_password()
    ana.save()
    client = signed_in(ana)
    assert "old_password" not in client.get(reverse("settings")).content.decode()
    assert "changed" in send(client, "password", new_password1="a quite new one", new_password2="a quite new one")


def test_signing_out_elsewhere_keeps_this_sign_in_and_other_people_s(ana: User, bo: User) -> None:
    """Signing out elsewhere keeps this sign-in and those of other users (LIVE-06)."""
    here, there, his = Client(), Client(), Client()
    for client, who in ((here, ana), (there, ana), (his, bo)):
        client.force_login(who)
    assert "Signed out 1 other device." in send(here, "elsewhere")
    assert [client.get(reverse("home")).status_code for client in (here, there, his)] == [200, 302, 200]
    assert "No other devices" in send(here, "elsewhere")


def test_pictures_are_counted_as_uploads(signed_in: SignIn, ana: User, settings: Settings) -> None:
    """UI-13: pictures count as uploads, because decoding one can occupy one of a few shared processes for seconds."""
    settings.LIMITS = "uploads=1/hour"
    client = signed_in(ana)
    assert "Picture saved." in send(client, "picture", picture=picture())
    assert "Too many requests." in send(client, "picture", picture=picture())
