"""Settings from the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.addresses import contact_address
from config.environment import SQLITE, Environment
from tests.commands.process import manage_forked

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
    """`PORT= make run` and an empty line in an environment file give the default."""
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


@pytest.mark.parametrize("setting", ["postgres://u:p@ss@db.lan/n?options=-c%20x@y"], indirect=True)
def test_at_signs_in_the_password_and_in_options_are_read(setting: None) -> None:
    database = Environment().database("SETTING", sqlite=FILE)
    assert (database["HOST"], database["PASSWORD"]) == ("db.lan", "p@ss")


@pytest.mark.parametrize(
    "setting",
    [
        "mysql://u:secret@h/n",
        "nonsense",
        "postgres://u:secret@h:port/n",
        "postgres://u:secret@[::/n",
        "postgres://u:p@secret/more@h/n",
        "postgres://u:12/secret@h/n",
        "postgres://u:1/secret#@h/n",
        "postgres://u:1/secret?@h/n",
        "postgres://",
        "sqlite://",
    ],
    indirect=True,
)
def test_unusable_database_address_is_refused_without_its_password(setting: None) -> None:
    with pytest.raises(SystemExit, match="SETTING must be sqlite:") as refused:
        Environment().database("SETTING", sqlite=FILE)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("setting", ["sqlite:///parley.sqlite3", "sqlite:///~/parley.sqlite3"], indirect=True)
def test_relative_path_of_a_database_is_refused(setting: None) -> None:
    """A relative path would name another database, which is empty, in each working directory."""
    with pytest.raises(SystemExit, match=r"such as sqlite:////path/to/file, not the relative path '(~/)?parley\."):
        Environment().database("SETTING", sqlite=FILE)


@pytest.mark.parametrize("setting", ["sqlite:////data/parley.sqlite3"], indirect=True)
def test_absolute_path_of_a_database_is_read(setting: None) -> None:
    database = Environment().database("SETTING", sqlite=FILE)

    assert (database["ENGINE"], database["NAME"]) == (SQLITE, "/data/parley.sqlite3")


@pytest.mark.parametrize("setting", ["-1", "nan", "inf", "99999999999", "0.5", "5min"], indirect=True)
def test_numbers_have_a_range(setting: None) -> None:
    """A number outside of its range is refused. A negative one neither disables a setting nor counts as unset."""
    env = Environment()
    with pytest.raises(SystemExit, match=r"SETTING must be a number"):
        env.number("SETTING", default=8.0, at_least=1)
    with pytest.raises(SystemExit, match=r"SETTING must be a (whole )?number"):
        env.days("SETTING", default=30)


@pytest.mark.parametrize(
    ("setting", "origin"),
    [
        ("https://chat.example.org/", "https://chat.example.org"),
        ("https://Chat.Example.org:443", "https://chat.example.org"),
        ("http://[fd00::1]:8000", "http://[fd00::1]:8000"),
        ("http://parley_web:80", "http://parley_web"),
        ("", ""),
    ],
    indirect=["setting"],
)
def test_public_address_is_read_as_browsers_write_it(setting: None, origin: str) -> None:
    """The address is normalized like browsers' Origin header, because otherwise all forms of users would be refused."""
    assert Environment().origin("SETTING", default="") == origin


@pytest.mark.parametrize(
    "setting",
    [
        "chat.example.org",
        "https://[bad",
        "https://host/sub",
        "ftp://x.org",
        "https://host:99999",
        "https://host:0",
        "https://",
        "https://user:secret@host",
        "https://a b.org",
        "https://host?x",
        "https://*.example.org",
    ],
    indirect=True,
)
def test_unusable_public_address_is_refused_in_one_sentence(setting: None) -> None:
    with pytest.raises(SystemExit, match=r"SETTING must be an address without a path, such as https://chat") as refused:
        Environment().origin("SETTING", default="")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("setting", ["https://*.example.org, HTTP://a.lan:80"], indirect=True)
def test_origins_of_forms_are_read(setting: None) -> None:
    assert Environment().origins("SETTING", default=[]) == ["https://*.example.org", "http://a.lan"]


@pytest.mark.parametrize("setting", ["https://a.lan, b.lan"], indirect=True)
def test_origin_without_a_scheme_is_refused(setting: None) -> None:
    with pytest.raises(SystemExit, match="SETTING must list addresses without paths"):
        Environment().origins("SETTING", default=[])


@pytest.mark.parametrize("setting", ["Chat.example.org, .lan,10.0.0.1,fd00::1,[::1],*"], indirect=True)
def test_allowed_hosts_are_read(setting: None) -> None:
    names = ["chat.example.org", ".lan", "10.0.0.1", "[fd00::1]", "[::1]", "*"]
    assert Environment().host_names("SETTING", default=[]) == names


@pytest.mark.parametrize(
    "setting", ["https://chat.example.org", "chat.lan:8000", "a.lan b.lan", "chat.lan/x", "*.lan"], indirect=True
)
def test_allowed_host_that_no_request_has_is_refused(setting: None) -> None:
    """A host that no request can have is refused, because each page would answer 400."""
    with pytest.raises(SystemExit, match="SETTING must list names such as"):
        Environment().host_names("SETTING", default=[])


@pytest.mark.parametrize("setting", ["1e3"], indirect=True)
def test_number_is_read_as_a_whole(setting: None) -> None:
    assert Environment().number("SETTING", default=8.0) == 1000


@pytest.mark.parametrize("setting", ["postgres://%2Fvar%2Frun%2Fpostgresql/parley"], indirect=True)
def test_socket_of_postgresql_is_read(setting: None) -> None:
    assert Environment().database("SETTING", sqlite=FILE)["HOST"] == "/var/run/postgresql"


@pytest.mark.parametrize("setting", ["$abc", "$HOME", "\\$abc"], indirect=True)
def test_value_with_a_dollar_sign_is_taken_as_it_is(setting: None) -> None:
    """It is not the name of another variable: a key or password would become empty."""
    assert Environment().str("SETTING", default="") == os.environ["SETTING"]
    assert Environment().list("SETTING", default=[]) == [os.environ["SETTING"]]


@pytest.mark.parametrize(
    "setting",
    [
        "redis://:secret/more@h:6379/0",
        "redis://:1/secret@h",
        "redis://:1#secret@h",
        "redis://:secret?more@h",
        "rediss://:[secret@h",
        "redis://h:99999",
        "redis://",
        "h:6379",
    ],
    indirect=True,
)
def test_unusable_address_of_redis_is_refused_without_its_password(setting: None) -> None:
    with pytest.raises(SystemExit, match=r"SETTING must be redis://.+percent-encode special characters") as refused:
        Environment().redis("SETTING")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "setting", ["redis://:a%2Fb@h:6379/0", "redis://[::1]", "redis:///1", "unix:///run/a@b/redis.sock"], indirect=True
)
def test_address_of_redis_is_read(setting: None) -> None:
    assert Environment().redis("SETTING") == os.environ["SETTING"]


def test_public_address_is_allowed_whatever_else_is(tmp_path: Path) -> None:
    """Printed links lead to PUBLIC_URL, so its host is allowed, and its pages send forms, with other names, too."""
    show = "from django.conf import settings; print(settings.ALLOWED_HOSTS, settings.CSRF_TRUSTED_ORIGINS)"
    names = {"ALLOWED_HOSTS": "chat.lan,[::2]", "CSRF_TRUSTED_ORIGINS": "https://chat.lan"}

    def shown(address: str) -> str:
        return manage_forked("shell", "-v0", "-c", show, data=tmp_path, PUBLIC_URL=address, **names).stdout.strip()

    expected = "['chat.lan', '[::2]', 'chat.example.org'] ['https://chat.lan', 'https://chat.example.org']"
    assert shown("https://chat.example.org") == expected
    assert shown("http://[::2]:8000") == "['chat.lan', '[::2]'] ['https://chat.lan', 'http://[::2]:8000']"
    assert shown("") == "['chat.lan', '[::2]'] ['https://chat.lan']"


LOCAL = ["localhost", "127.0.0.1", "[::1]"]


@pytest.mark.parametrize(
    ("public_url", "hosts", "contact"),
    [
        ("https://chat.example.org", ["parley.example.org"], "https://chat.example.org"),
        ("http://10.0.0.5", [*LOCAL, "*", ".example.org", "chat.example.org"], "https://chat.example.org"),
        ("", [*LOCAL, "web", "parley.localhost", "parley.test", "10.0.0.5", "*", ".example.org"], ""),
        ("", [], ""),
    ],
)
def test_contact_for_push_services_is_found(public_url: str, hosts: list[str], contact: str) -> None:
    """UI-22: Apple's service refuses messages without a contact, so it is not only taken from PUBLIC_URL."""
    assert contact_address(public_url, hosts) == contact
