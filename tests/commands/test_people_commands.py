"""`manage.py purge`, `erase`, `exportperson` and `endlogins`, for operators."""

from __future__ import annotations

import stat
import zipfile
from datetime import timedelta
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from chat.models import Invitation, Session, SignInLink, User, Workspace
from chat.services.people import accounts, api_tokens
from chat.services.people.sharing import invite
from chat.services.sessions.actions import delete
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import DONE, HI, START, fill
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db(transaction=True)  # SQLite's log is not emptied within a transaction


@pytest.fixture
def ana() -> User:
    return person("Ana", Workspace.objects.create(name="Team"))


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().strip()


def test_purge_and_erase(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands ask for confirmation and report their results, including users and sessions that they cannot
    find."""
    kept, old, going = (create_session(owner=ana, title=name) for name in ("Kept", "Old", "Going"))
    for each in (kept, old):
        delete(user=ana, session_id=each.pk)
    Session.objects.filter(pk=old.pk).update(deleted_at=timezone.now() - timedelta(days=31))
    assert run("purge") == "Purged: 1 sessions."
    assert run("purge", "--vacuum") == "Purged: nothing."
    assert run("purge", "--days", "0") == "Purged: 1 sessions."
    fill(going, START, HI, DONE)
    monkeypatch.setattr("builtins.input", lambda words: "no")
    with pytest.raises(CommandError, match="Nothing was erased"):
        run("erase", "session", going.pk)
    monkeypatch.setattr("builtins.input", Mock(side_effect=EOFError))  # a cron job, or `systemd-run --pipe`
    with pytest.raises(CommandError, match=r"Nothing was erased.*--yes"):
        run("erase", "session", going.pk)
    monkeypatch.setattr("builtins.input", lambda words: going.pk)
    assert run("erase", "session", going.pk).endswith(
        "Erased: 3 messages, 1 sessions. Earlier backups still contain it."
    )
    assert not Session.objects.exists()
    assert "1 users" in run("erase", "person", "ana", "--yes")
    for words in (("session", going.pk), ("person", "ana")):
        with pytest.raises(CommandError, match="There is no"):
            run("erase", *words, "--yes")
    User.objects.create_superuser("root")
    with pytest.raises(CommandError, match="last administrator"):
        run("erase", "person", "root", "--yes")


def test_erase_includes_subsessions(ana: User) -> None:
    """Erasing a session by the command erases the sessions in which agents work for it, without a running server."""
    top, child, below = (create_session(owner=ana, title=name) for name in ("Top", "Child", "Below"))
    for session, caller in ((child, top), (below, child)):
        Session.objects.filter(pk=session.pk).update(caller_session=caller)
        fill(session, START, HI, DONE)
    fork = create_session(owner=ana, title="Fork of the child")
    Session.objects.filter(pk=fork.pk).update(parent_session=child)

    asked, erased = run("erase", "session", top.pk, "--yes").splitlines()

    assert "with 2 subsessions, 6 messages, 0 revisions and 0 files. 1 forks will be kept." in asked
    assert erased == "Erased: 6 messages, 3 sessions. Earlier backups still contain it."
    assert [session.pk for session in Session.objects.all()] == [fork.pk]


def test_exportperson(ana: User, tmp_path: Path) -> None:
    """`exportperson` does not overwrite a file."""
    create_session(owner=ana, title="Plan")
    place = tmp_path / "ana.zip"
    assert run("exportperson", "ana", "--to", str(place)) == f"Exported to {place}."
    assert stat.S_IMODE(place.stat().st_mode) == 0o600  # whatever the shell's umask is
    assert "account.json" in zipfile.ZipFile(place).namelist()
    for name, words in (("ana", r"Cannot write .+: File exists\. Choose another path\."), ("zoe", "There is no user")):
        with pytest.raises(CommandError, match=words):
            run("exportperson", name, "--to", str(place))


def test_endlogins(ana: User) -> None:
    """`endlogins` ends the logins, links and tokens that a restored backup contains."""
    client = Client()
    client.force_login(ana)
    accounts.sign_in_link(user=ana)
    invite(session=create_session(owner=ana), author=ana, role="viewer")
    _token, secret = api_tokens.create(user=ana, name="Script", scope="read", days=0)
    assert run("endlogins") == "Ended 1 login."
    assert client.get("/settings/").status_code == 302
    assert not SignInLink.objects.exists()
    assert api_tokens.find_valid(secret) is not None
    assert run("endlogins", "--tokens") == "Ended 0 logins and 1 API token."
    assert api_tokens.find_valid(secret) is None
    assert Invitation.objects.get().expires_at <= timezone.now()
