"""`manage.py signinlink`: a new link for the administrator or for a user by name."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from chat.management import addresses
from chat.models import User
from chat.services.people import accounts

pytestmark = pytest.mark.django_db


def signinlink(*words: str) -> str:
    out = StringIO()
    call_command("signinlink", *words, stdout=out)
    return out.getvalue().strip()


def test_link_is_for_the_administrator_unless_a_user_is_named() -> None:
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


def test_link_leads_to_the_server_that_runs(settings: Settings, tmp_path: Path) -> None:
    """The link has the running server's address, even if PORT is 0 or was set only for the server."""
    settings.DATA_DIR = tmp_path
    User.objects.create_superuser("boss")

    addresses.remember(8200)
    assert signinlink().startswith("http://127.0.0.1:8200/")
    settings.PUBLIC_URL = "https://chat.example.org"
    assert signinlink().startswith("https://chat.example.org/")
    settings.PUBLIC_URL = ""
    addresses.forget()
    assert signinlink().startswith("http://127.0.0.1:8000/")


@pytest.mark.parametrize("note", ['{"pid": 99999999, "url": "http://gone"}', "", "[]", '{"url": "http://gone"}'])
def test_note_of_a_server_that_was_killed_is_no_address(settings: Settings, tmp_path: Path, note: str) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / "server.json").write_text(note)
    User.objects.create_superuser("boss")

    assert signinlink().startswith("http://127.0.0.1:8000/")
    addresses.forget()
    assert (tmp_path / "server.json").exists()


def test_unknown_and_inactive_people_get_no_link() -> None:
    User.objects.create_user("ana", is_active=False)

    for name in ("ana", "bo"):
        with pytest.raises(CommandError, match="no active user"):
            signinlink(name)
    with pytest.raises(CommandError, match="createsuperuser"):
        signinlink()


def test_empty_name_is_refused() -> None:
    """An empty name is refused, because a script with an empty variable would otherwise sign in the administrator."""
    User.objects.create_superuser("boss")
    with pytest.raises(CommandError, match="The user name is empty"):
        signinlink("")
