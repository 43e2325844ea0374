"""Commands for users: setting a password, and resetting two-step verification."""

from __future__ import annotations

from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command

from chat.models import SecurityEvent, User
from chat.services.people.security_log import Kind
from tests.support.second_factors import give_app
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db


def output_of(command: str, *words: str) -> str:
    out = StringIO()
    call_command(command, *words, stdout=out)
    return out.getvalue()


def test_lost_second_factors_are_reset_by_the_operator(ana: User) -> None:
    """The command helps a last administrator. It ends logins, is recorded, and the user is notified."""
    give_app(ana)
    client = signed_in(ana)
    assert "Two-step verification of ana was reset." in output_of("resettwostep", "ana")
    assert not Authenticator.objects.exists()
    assert client.get("/").status_code == 302
    event = SecurityEvent.objects.get(kind=Kind.SECOND_FACTOR_RESET)
    assert (event.actor_id, event.person, event.face) == (None, ana, "command")
    html = signed_in(User.objects.get()).get("/").content.decode()
    assert "An operator of this server removed your two-step verification" in html
    assert "ana has no two-step verification." in output_of("resettwostep", "ana")
    with pytest.raises(CommandError, match="There is no user 'bo'"):
        output_of("resettwostep", "bo")


def test_password_of_the_command_line_ends_logins(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's own command has the effects of any new password in Parley."""
    client = signed_in(ana)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "quite another 1")
    assert "Password changed successfully" in output_of("changepassword", "ana")
    assert client.get("/").status_code == 302
    event = SecurityEvent.objects.get(kind=Kind.PASSWORD_CHANGED)
    assert (event.actor_id, event.person, event.face) == (None, ana, "command")
