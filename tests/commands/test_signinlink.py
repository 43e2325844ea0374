"""`manage.py signinlink`: a new link for the administrator or for somebody by name."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from chat.models import User
from chat.services import accounts

pytestmark = pytest.mark.django_db


def signinlink(*words: str) -> str:
    out = StringIO()
    call_command("signinlink", *words, stdout=out)
    return out.getvalue().strip()


def test_link_is_the_administrators_unless_somebody_is_named() -> None:
    ana = User.objects.create_user("ana")
    boss = User.objects.create_superuser("boss")

    for words, user in (((), boss), (("ana",), ana)):
        base, token = signinlink(*words).rsplit("/", 1)
        assert base == "http://127.0.0.1:8000/accounts/link"
        assert accounts.redeem(token) == user


@pytest.mark.parametrize(
    ("changes", "base"),
    [
        ({"HOST": "0.0.0.0"}, "http://127.0.0.1:8000"),  # noqa: S104  # printed, not bound
        ({"HOST": "::1", "PORT": 9000}, "http://[::1]:9000"),
        ({"PUBLIC_URL": "https://chat.example.org"}, "https://chat.example.org"),
    ],
)
def test_link_is_one_that_a_browser_can_open(settings: Settings, changes: dict[str, object], base: str) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)

    assert signinlink().startswith(f"{base}/accounts/link/")


def test_unknown_and_inactive_people_get_no_link() -> None:
    User.objects.create_user("ana", is_active=False)

    for name in ("ana", "bo"):
        with pytest.raises(CommandError, match="no active user"):
            signinlink(name)
    with pytest.raises(CommandError, match="createsuperuser"):
        signinlink()
