"""A process starts only if it has the SECRET_KEY of the installation."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django.fixtures import Settings

from chat.management import startup
from chat.models import Installation
from chat.services.maintenance.files_mark import require_own_files
from chat.services.maintenance.key_mark import CHANGED, WrongKeyError, forget_key, mark_of, require_own_key

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

OWN, OTHER = "the team's own key", "the key of another machine"


@pytest.fixture(autouse=True)
def started(settings: Settings, own_files: None) -> None:
    """An installation whose first process has started."""
    require_own_files()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OWN, []
    assert require_own_key() == ""


def stored() -> str:
    return Installation.objects.get().key_mark


def test_process_with_the_same_key_starts() -> None:
    """OPS-10: a process with the same key starts, and the stored mark does not reveal the key."""
    assert require_own_key() == ""
    assert re.fullmatch("[0-9a-f]{32}", stored())
    assert stored() != mark_of(OTHER)


def test_another_key_is_refused_where_there_may_be_several_machines(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-10: another key is refused.

    On SQLite, where no other process can have the old key, the start warns of the consequences.
    """
    settings.SECRET_KEY = OTHER
    if connection.vendor == "sqlite":
        assert require_own_key() == CHANGED
        assert stored() == mark_of(OTHER)
        return
    with pytest.raises(WrongKeyError, match=r"Set it to the same value.*SECRET_KEY_FALLBACKS.*acceptkey"):
        require_own_key()
    assert stored() == mark_of(OWN)
    monkeypatch.setattr(startup, "protect_data", lambda: None)  # it changes the umask, also for later tests
    with pytest.raises(SystemExit, match="Parley cannot start: SECRET_KEY differs from"):
        startup.prepare_database(print)


def test_key_is_changed_beside_the_earlier_one(settings: Settings) -> None:
    """OPS-10: a process with the new and the old key starts, and the new key becomes the installation's."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OTHER, [OWN]
    assert require_own_key() == ""
    settings.SECRET_KEY_FALLBACKS = []
    assert require_own_key() == ""
    assert stored() == mark_of(OTHER)


def test_operator_accepts_a_key_whose_predecessor_is_lost(settings: Settings) -> None:
    """OPS-10: after `acceptkey`, processes with the new key start."""
    settings.SECRET_KEY = OTHER
    call_command("acceptkey")
    assert require_own_key() == ""


def test_first_start_after_a_restore_says_which_key_is_right(settings: Settings) -> None:
    """OPS-10: a restored database has no mark, so the key of the first start becomes the installation's key."""
    forget_key()
    settings.SECRET_KEY = OTHER
    assert require_own_key() == ""
    assert stored() == mark_of(OTHER)
