"""Commands on a data folder that no server has prepared."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.commands.process import manage
from tests.support.agreement import agree

COMMANDS = [
    ["acceptkey"],
    ["backup", "{folder}/x.tar"],
    ["changepassword", "ana"],
    ["endlogins"],
    ["erase", "person", "ana"],
    ["exportperson", "ana"],
    ["exportsessions", "--all", "--to", "{folder}/x"],
    ["importsessions", "--owner", "ana", __file__],
    ["prune", "--days", "9"],
    ["purge"],
    ["resettwostep", "ana"],
    ["signinlink"],
    ["verify"],
]
# They prepare the database, or restore one.
OTHERS = {"restore", "runagents", "runserver", "serve"}


def test_every_command_on_data_has_a_row() -> None:
    """OPS-04: a command of one's own that reads or writes rows must not make an empty database."""
    own = [name for name, app in get_commands().items() if app == "chat"]
    agree(
        {*(command[0] for command in COMMANDS), *OTHERS},
        own,
        missing="Base {} on DataCommand and add it to COMMANDS in this file; or to OTHERS if it makes the database.",
        extra="Remove {} from this file: there is no such command.",
    )


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_missing_database_is_said_and_none_is_made(tmp_path: Path, command: list[str]) -> None:
    """OPS-04: a backup of nothing would look like one, and a link would be for no one."""
    ended = manage(*(part.format(folder=tmp_path) for part in command), data=tmp_path / "data")

    assert ended.returncode == 1
    assert f"There is no database at {tmp_path}/data/parley.sqlite3" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data/parley.sqlite3").exists()
    assert not (tmp_path / "x.tar").exists()


def test_unprepared_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "parley.sqlite3").touch()

    ended = manage("backup", str(tmp_path / "x.tar"), data=tmp_path)

    assert (ended.returncode, "The database lacks" in ended.stderr) == (1, True)
    assert not (tmp_path / "x.tar").exists()


@pytest.mark.parametrize("command", ["purge", "prune"])
@pytest.mark.parametrize("days", ["-1", "99999999999", "9" * 5000, "x"])
def test_days_have_a_range(tmp_path: Path, command: str, days: str) -> None:
    ended = manage(command, f"--days={days}", data=tmp_path)

    assert ended.returncode == 2
    assert "is not a number of days from 0 to 36500" in ended.stderr


def test_database_of_an_earlier_version_is_backed_up(tmp_path: Path) -> None:
    """OPS-06: between the installation of a new version and its first start."""
    manage("migrate", "chat", "0045", data=tmp_path)

    ended = manage("backup", str(tmp_path / "x.tar"), data=tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert manage("verify", data=tmp_path).returncode == 1
