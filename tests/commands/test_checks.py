"""System checks: each one explains a problem and its remedy, and a valid installation gets none."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from unittest.mock import patch

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from agents.sandbox import probe
from chat import agents_setup


def found() -> list[str]:
    """Return the ids of Parley's messages, sorted, because checks run in any order."""
    return sorted(str(message.id) for message in run_checks() if str(message.id).startswith("parley."))


def test_plain_installation_has_nothing_to_hear() -> None:
    assert found() == []


def test_bad_configuration_names_file_key_and_remedy(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "parley.toml"
    file.write_text('[providers.mine]\ntype = "telepathy"\n')
    settings.PARLEY_CONFIG = str(file)
    agents_setup.reset()

    (error,) = [message for message in run_checks() if message.id == "parley.E001"]

    assert str(file) in error.msg
    assert "providers.mine" in error.msg


def test_agents_that_run_commands_need_a_sandbox(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sandbox, Parley starts and lists the agents that lack these tools."""
    file = tmp_path / "parley.toml"
    file.write_text('[agents.coder]\ntools = ["read_file"]\n[agents.other]\ntools = ["calculator"]\n')
    settings.PARLEY_CONFIG = str(file)
    agents_setup.reset()
    assert found() == []

    monkeypatch.setattr(probe, "problem", lambda: "bubblewrap is missing")
    (warning,) = [message for message in run_checks() if message.id == "parley.W006"]

    assert warning.msg == (
        "This machine cannot run commands in a sandbox: bubblewrap is missing. "
        "These agents run without their sandbox tools: coder."
    )


def test_agents_that_search_need_a_service(settings: Settings, tmp_path: Path) -> None:
    """Without a search service, Parley starts and lists the agents that lack the tool."""
    file = tmp_path / "parley.toml"
    file.write_text('[agents.finder]\ntools = ["web_search"]\n[agents.other]\ntools = ["calculator"]\n')
    settings.PARLEY_CONFIG = str(file)
    agents_setup.reset()

    (warning,) = [message for message in run_checks() if message.id == "parley.W008"]

    assert warning.msg == "No search service is configured. These agents run without web_search: finder."
    agents_setup.reset()
    file.write_text(file.read_text() + '[search]\ntype = "searxng"\nbase_url = "http://localhost:8080"\n')
    assert found() == []


def test_broken_tools_are_named(settings: Settings, tmp_path: Path) -> None:
    """Parley starts, and lists the files that it left out and the agents that lack their tools."""
    file, folder = tmp_path / "parley.toml", tmp_path / "tools"
    file.write_text('[agents.host]\ntools = ["agent__other", "book_room", "calculator"]\n')
    folder.mkdir()
    (folder / "rooms.py").write_text("import no_such_module\n")
    settings.PARLEY_CONFIG, settings.TOOLS_FOLDER = str(file), str(folder)
    agents_setup.reset()

    broken, lacking = [message.msg for message in run_checks() if message.id == "parley.W009"]

    assert f"{folder / 'rooms.py'}: ModuleNotFoundError: No module named 'no_such_module' (line 1" in broken
    assert lacking == "The agent host runs without these tools, which do not exist: book_room."


def test_unwritable_data_folder_is_an_error(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    settings.DATA_DIR = file / "data"

    assert found() == ["parley.E002"]


def test_unwritable_folder_of_static_files_is_an_error(settings: Settings) -> None:
    """A start by root leaves such a folder. Later starts then ended with a traceback."""
    settings.PREPARED_STATIC = Path("/proc")

    (error,) = [message for message in run_checks() if message.id == "parley.E002"]
    assert error.msg.startswith("Parley cannot write to /proc: ")


def test_read_only_folder_may_be_due_to_a_systemd_unit(settings: Settings) -> None:
    """A unit with ProtectSystem=strict makes a folder read-only that is writable outside of it."""
    settings.WORKSPACES = "/sys/workspaces"
    with patch.object(Path, "mkdir", side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS))):
        errors = [message for message in run_checks() if message.id == "parley.E002"]
    assert all("ReadWritePaths" in str(error.hint) for error in errors)
    assert errors


def test_folders_that_do_not_exist_are_errors(settings: Settings, tmp_path: Path) -> None:
    """Missing folders are errors, because otherwise tools would be missing and approved commands would fail without a
    reason."""
    file = tmp_path / "file"
    file.write_text("no folder")
    for place in ("/proc/workspaces", str(file), str(file / "below")):
        settings.WORKSPACES = place
        (error,) = [message for message in run_checks() if message.id == "parley.E002"]
        assert f"Parley cannot write to {place}: " in error.msg
        assert error.hint == "Make it writable, or set WORKSPACES to another folder."
    settings.WORKSPACES = str(tmp_path / "made" / "here")
    assert found() == []
    settings.TOOLS_FOLDER = str(file)
    agents_setup.reset()
    (error,) = run_checks()
    assert error.msg == f"TOOLS_FOLDER={file} is not a folder."


@pytest.mark.sqlite  # PostgreSQL does not use Python's library
@pytest.mark.parametrize(("version", "ids"), [("3.34.1", ["parley.E022"]), ("3.35.0", []), ("3.51.2", [])])
def test_sqlite_without_returning_is_an_error(monkeypatch: pytest.MonkeyPatch, version: str, ids: list[str]) -> None:
    """Agents' answers would never be written."""
    monkeypatch.setattr(sqlite3, "sqlite_version", version)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", tuple(map(int, version.split("."))))
    assert found() == ids


REACHED_AT = "mailto:ops@example.org"
BEHIND_A_PROXY = {"HTTPS": True, "PUBLIC_URL": "https://chat.example.org", "VAPID_SUBJECT": "https://chat.example.org"}


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({"LIMITS": "sends=often"}, ["parley.E006"]),
        ({"QUOTAS": "tokens_per_day=many"}, ["parley.E007"]),
        ({"QUOTAS": "running_turns=1,running_turns=2"}, ["parley.E007"]),
        ({"LEASE_SECONDS": 1.0}, ["parley.E003"]),
        ({"S3_ENDPOINT": "https://s3.example.org"}, ["parley.E018"]),
        ({"S3_PREFIX": "team"}, ["parley.E018"]),
        ({"S3_BUCKET": "files", "S3_ACCESS_KEY_ID": "id"}, ["parley.E018"]),
        ({"S3_BUCKET": "files", "S3_SECRET_ACCESS_KEY": "key"}, ["parley.E018"]),
        ({"S3_BUCKET": "files", "S3_ENDPOINT": "s3.example.org"}, ["parley.E018"]),
        ({"S3_BUCKET": "files"}, []),
        ({"S3_BUCKET": "files", "S3_ACCESS_KEY_ID": "id", "S3_SECRET_ACCESS_KEY": "key"}, []),
        ({"RUNNER": "none", "REDIS_URL": "redis://localhost"}, ["parley.E008", "parley.E010"]),
        ({"RUNNER": "none"}, ["parley.E008", "parley.E009", "parley.E010"]),
        ({"HOST": "localhost"}, []),
        ({"HOST": "::1"}, []),
        ({"HOST": "not a host"}, ["parley.E020"]),
        ({"HOST": "chat.lan", "ALLOWED_HOSTS": ["chat.lan"]}, ["parley.W003"]),
        (BEHIND_A_PROXY | {"HOST": "0.0.0.0", "ALLOWED_HOSTS": ["chat.example.org"]}, []),  # noqa: S104  # not bound
        ({"HTTPS": True, "VAPID_SUBJECT": REACHED_AT}, ["parley.W012"]),
        ({"HTTPS": True, "PUBLIC_URL": "http://chat.example.org", "VAPID_SUBJECT": REACHED_AT}, ["parley.W012"]),
        ({"HTTPS": True}, ["parley.W012", "parley.W013"]),
        (dict.fromkeys(["PUBLIC_URL", "VAPID_SUBJECT"], "https://localhost") | {"HTTPS": True}, ["parley.W013"]),
        ({"CSRF_TRUSTED_ORIGINS": ["https://box.tailnet.ts.net"]}, ["parley.W013"]),
        ({"CSRF_TRUSTED_ORIGINS": ["http://chat.lan"]}, []),
        ({"PUBLIC_URL": "https://chat.example.org"}, ["parley.W011"]),
        ({"PUBLIC_URL": "http://chat.example.org"}, []),
        ({"HOST": "0.0.0.0", "ALLOWED_HOSTS": ["localhost", "0.0.0.0"]}, ["parley.W003", "parley.W004"]),  # noqa: S104
        (BEHIND_A_PROXY | {"HOST": "::", "ALLOWED_HOSTS": ["*"], "DEBUG": True}, ["parley.E004"]),
    ],
)
def test_setting_is_judged(settings: Settings, changes: dict[str, object], ids: list[str]) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)

    assert found() == ids


def test_missing_key_of_a_team_is_not_said_to_be_in_the_data_folder(settings: Settings) -> None:
    """If the variable is lost, this start has made a key in the folder, which is not that of the team."""
    settings.RUNNER = "none"

    (error,) = [message for message in run_checks() if message.id == "parley.E010"]
    assert error.hint == (
        "Set SECRET_KEY to the same value on all machines. If one process alone has run on this database until now, "
        "its key is in PARLEY_DATA/secret_key."
    )


@pytest.mark.parametrize(("workers", "ids"), [("1", []), ("4", ["parley.E008", "parley.E009"])])
def test_several_web_processes_need_redis(monkeypatch: pytest.MonkeyPatch, workers: str, ids: list[str]) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", workers)

    assert found() == ids


KEY = "A" * 42 + "E"


@pytest.mark.parametrize(
    ("given", "subject", "expected"),
    [
        ({}, "", []),
        ({"VAPID_PRIVATE_KEY": KEY}, REACHED_AT, []),
        ({"VAPID_PRIVATE_KEY": KEY}, "https://chat.example.org", []),
        ({"VAPID_PRIVATE_KEY": KEY}, "", ["parley.E017"]),
        ({"VAPID_PRIVATE_KEY": KEY}, "ops@example.org", ["parley.E016"]),
        *(
            ({"VAPID_SUBJECT": subject}, subject, ["parley.W013"])
            for subject in ("mailto:ops@localhost", "https://localhost:8443/", "https://chat.invalid", "mailto:ops")
        ),
        ({"VAPID_PRIVATE_KEY": "not a key"}, REACHED_AT, ["parley.E014"]),
        (
            {"VAPID_PRIVATE_KEY": "", "VAPID_SUBJECT": REACHED_AT},
            REACHED_AT,
            ["parley.E015"],
        ),
        ({"VAPID_PRIVATE_KEY": ""}, "https://chat.example.org", ["parley.W010"]),
    ],
)
def test_keys_of_push_messages_are_whole(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], subject: str, expected: list[str]
) -> None:
    """UI-22: incomplete or invalid keys are reported, because otherwise notifications would silently not arrive.

    A contact that only Apple's service refuses is a warning, because notifications of other browsers work.
    """
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings.VAPID_PRIVATE_KEY = given.get("VAPID_PRIVATE_KEY", settings.VAPID_PRIVATE_KEY)
    settings.VAPID_SUBJECT = subject
    assert found() == expected
    assert all(KEY not in message.msg for message in run_checks())


@pytest.mark.parametrize(("subject", "is_named"), [("", True), ("https://chat.example.org", False)])
def test_hint_about_a_missing_key_is_complete(settings: Settings, subject: str, is_named: bool) -> None:
    """UI-22: with what the hint says, Parley starts. The key alone would be an error without a contact."""
    settings.VAPID_PRIVATE_KEY, settings.VAPID_SUBJECT = "", subject
    (warning,) = run_checks()
    assert ("VAPID_SUBJECT" in str(warning.hint)) is is_named
