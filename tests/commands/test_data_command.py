"""Commands on a data folder without a prepared database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.core.management import get_commands

from config.data_folder import KEYLESS, NEED_DATA
from tests.commands.process import ROOT, environment, manage_forked
from tests.support.agreement import agree

COMMANDS = [
    ["acceptkey"],
    ["backup", "{folder}/x.tar"],
    ["changepassword", "ana"],
    ["createsuperuser", "--noinput", "--username", "ana"],
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
# These commands prepare or restore the database.
OTHERS = {"migrate", "restore", "runagents", "runserver", "serve"}


def test_every_command_on_data_has_a_row() -> None:
    """OPS-04: each command that uses rows is listed here, so that a new one does not create an empty database."""
    own = [name for name, app in get_commands().items() if app == "chat"]
    agree(
        {*(command[0] for command in COMMANDS), *OTHERS},
        own,
        missing="Base {} on DataCommand and add it to COMMANDS in this file; or to OTHERS if it makes the database.",
        extra="Remove {} from this file: there is no such command.",
    )
    agree(
        {command[0] for command in COMMANDS} | {"restore"},
        NEED_DATA | KEYLESS,
        missing="Remove {} from config/data_folder.py.",
        extra="Add {} to NEED_DATA of config/data_folder.py.",
    )


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_missing_database_is_said_and_none_is_made(tmp_path: Path, command: list[str]) -> None:
    """OPS-04: a missing database is an error, because a backup would be empty and a link would belong to no user."""
    ended = manage_forked(*(part.format(folder=tmp_path) for part in command), data=tmp_path / "data")

    assert ended.returncode == 1
    assert f"There is no database at {tmp_path}/data/parley.sqlite3" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []  # neither a database nor new keys in a new data folder


@pytest.mark.parametrize("options", [["--check"], ["--replace"], []])
def test_restore_that_fails_leaves_nothing(tmp_path: Path, options: list[str]) -> None:
    """OPS-06: a check, or a restore of a file that is no backup, makes no data folder and no keys."""
    ended = manage_forked("restore", *options, __file__, data=tmp_path / "data")

    assert (ended.returncode, "is not a complete backup" in ended.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("command", "runner"), [("serve", "none"), ("runagents", "embedded"), ("check", "none")])
def test_process_of_a_team_makes_no_key(tmp_path: Path, command: str, runner: str) -> None:
    """A process that does not start without SECRET_KEY leaves no key behind, which could be taken for the team's."""
    ended = manage_forked(command, data=tmp_path, RUNNER=runner)

    assert (ended.returncode, "SECRET_KEY is not set" in ended.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


# The number that systems give to an account without rights.
OTHER_ACCOUNT = 65534
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.mark.skipif(
    IS_ROOT and not all(folder.stat().st_mode & 0o001 for folder in ROOT.parents),
    reason="no other account can read the sources",
)
@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize(
    ("command", "setting"),
    [("serve", "PARLEY_DATA"), ("signinlink", "PARLEY_DATA"), ("check", "TOOLS_FOLDER"), ("check", "WORKSPACES")],
)
def test_folder_of_another_account_is_one_clear_line(tmp_path: Path, command: str, setting: str, has_key: bool) -> None:
    """Operators often run a command as themselves, but only Parley's account can read its folder."""
    settings = {setting: str(tmp_path / "folder"), **({"SECRET_KEY": "given" * 10} if has_key else {})}
    tmp_path.chmod(0o700 if IS_ROOT else 0)
    with TemporaryDirectory() as own:
        Path(own).chmod(0o777)
        ended = subprocess.run(
            [sys.executable, "manage.py", command],
            cwd=ROOT,
            env={**environment(Path(own)), **settings},
            user=OTHER_ACCOUNT if IS_ROOT else None,
            capture_output=True,
            text=True,
            check=False,
        )
    tmp_path.chmod(0o700)

    assert ended.returncode == 1
    assert str(tmp_path) in ended.stderr
    assert "Traceback" not in ended.stderr


def test_unprepared_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "parley.sqlite3").touch()

    ended = manage_forked("backup", str(tmp_path / "x.tar"), data=tmp_path)

    assert (ended.returncode, "unapplied migration(s)" in ended.stderr) == (1, True)
    assert not (tmp_path / "x.tar").exists()


@pytest.mark.parametrize("command", ["purge", "prune"])
@pytest.mark.parametrize("days", ["-1", "99999999999", "9" * 5000, "x"])
def test_days_have_a_range(tmp_path: Path, command: str, days: str) -> None:
    ended = manage_forked(command, f"--days={days}", data=tmp_path)

    assert ended.returncode == 2
    assert "is not a number of days from 0 to 36500" in ended.stderr


def test_database_of_an_earlier_version_is_backed_up(tmp_path: Path) -> None:
    """OPS-06: the database can be backed up between the installation of a new version and its first start."""
    manage_forked("migrate", "chat", "0045", data=tmp_path)

    ended = manage_forked("backup", str(tmp_path / "x.tar"), data=tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert manage_forked("verify", data=tmp_path).returncode == 1


@pytest.mark.server
def test_wrong_configuration_of_agents_does_not_prevent_commands_on_data(data: Path, tmp_path: Path) -> None:
    """OPS-06: backups continue, and an administrator gets a link, while the server runs with an earlier configuration.

    A wrong place of the data is still refused.
    """
    wrong = tmp_path / "parley.toml"
    wrong.write_text('[providers.mine]\ntype = "anthropic"\n')

    def run(*words: str, **settings: str) -> tuple[int, str]:
        ended = manage_forked(*words, data=data, PARLEY_CONFIG=str(wrong), LIMITS="sends=x", **settings)
        return ended.returncode, ended.stderr

    archive = str(tmp_path / "x.tar")
    works = [["backup", archive], ["restore", "--check", archive], ["signinlink"], ["resettwostep", "admin"]]
    for words in (*works, ["verify"], ["purge"], ["endlogins"]):
        assert (words, run(*words)[0]) == (words, 0)
    code, error = run("backup", S3_ENDPOINT="https://s3.example.org")
    assert (code, "S3_BUCKET is not: files would be stored in a local folder" in error) == (1, True)
    assert "ANTHROPIC_API_KEY is not set" in run("importsessions", "--owner", "admin", str(wrong))[1]


@pytest.mark.server
def test_database_that_a_server_writes_to_is_one_clear_line(data: Path) -> None:
    """An error of the database in the middle of a command is explained, without a traceback."""
    with closing(sqlite3.connect(data / "parley.sqlite3")) as other:
        other.execute("BEGIN IMMEDIATE")
        ended = manage_forked("endlogins", data=data)

    assert ended.returncode == 1
    assert "parley.sqlite3: database is locked. Another process writes to it for long." in ended.stderr
    assert "Traceback" not in ended.stderr
