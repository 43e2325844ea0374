"""Settings as they are read from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.environment import SQLITE, Environment

FILE = Path("/data+more/50%/parley.sqlite3")


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("SETTING", request.param)


@pytest.mark.parametrize(
    ("setting", "is_on"),
    [("1", True), ("True", True), ("on", True), ("0", False), ("no", False), ("", False)],
    indirect=["setting"],
)
def test_flag_is_read(setting: None, is_on: bool) -> None:
    assert Environment().flag("SETTING") is is_on


@pytest.mark.parametrize("setting", [""], indirect=True)
def test_empty_setting_counts_as_not_set(setting: None) -> None:
    """`PORT= make run` and an empty line in an environment file mean the default."""
    env = Environment()

    assert (env.int("SETTING", default=8000), env.choice("SETTING", "a", "b"), env.list("SETTING", default=["x"])) == (
        8000,
        "a",
        ["x"],
    )
    assert env.database("SETTING", sqlite=FILE) == {"ENGINE": SQLITE, "NAME": str(FILE)}


@pytest.mark.parametrize("setting", ["postgres://ana:s%40cret@db.lan:5433/parley"], indirect=True)
def test_database_address_is_read(setting: None) -> None:
    database = Environment().database("SETTING", sqlite=FILE)

    assert {key: str(value) for key, value in database.items()} == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "parley",
        "USER": "ana",
        "PASSWORD": "s@cret",
        "HOST": "db.lan",
        "PORT": "5433",
    }


@pytest.mark.parametrize(
    "setting",
    [
        "mysql://u:secret@h/n",
        "nonsense",
        "postgres://u:secret@h:port/n",
        "postgres://u:secret@[::/n",
        "postgres://",
        "sqlite://",
    ],
    indirect=True,
)
def test_unusable_database_address_is_refused_without_its_password(setting: None) -> None:
    with pytest.raises(SystemExit, match="SETTING is sqlite:") as refused:
        Environment().database("SETTING", sqlite=FILE)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("setting", ["-1", "nan", "inf", "99999999999", "0.5"], indirect=True)
def test_numbers_have_a_range(setting: None) -> None:
    """A negative number does not switch off what a setting is for, nor does it count as none."""
    env = Environment()
    with pytest.raises(SystemExit, match=r"SETTING (is a number from 1 to 2147483647|cannot be)"):
        env.number("SETTING", default=8.0, at_least=1)
    with pytest.raises(SystemExit, match=r"SETTING (is a number from 0 to 36500|cannot be)"):
        env.days("SETTING", default=30)
