"""The reader of settings from the environment. An invalid value ends the start with a message of one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import environ

from agents.toolbox.address_policy import host_pattern
from config.addresses import host_name, web_origin

Number = TypeVar("Number", int, float)
SQLITE = "django.db.backends.sqlite3"
SCHEMES = {"sqlite", "postgres", "postgresql"}
# Larger than any setting needs, and small enough for databases and clocks.
MAX_NUMBER = 2**31 - 1
# A hundred years, because Python's dates do not go back without limit.
MAX_DAYS = 36_500
ENCODE = "percent-encode special characters in the password"
HIGHEST_PORT = 65_535
FLAGS = {"": False, "0": False, "false": False, "no": False, "off": False}
FLAGS |= {"1": True, "true": True, "yes": True, "on": True}


class Environment(environ.Env):  # type: ignore[misc]  # it ships no types
    """django-environ with messages for operators. An empty variable counts as not set."""

    def get_value(
        self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, parse_default: bool = False
    ) -> Any:
        """Return the value of `var` as it is. django-environ would take `$abc` for the name of another variable."""
        if not self.ENVIRON.get(var) and default is not self.NOTSET:
            return default
        try:
            return self.parse_value(self.ENVIRON[var], cast)
        except ValueError as error:
            raise _refusal(var, f"must be a whole number, not {self.ENVIRON[var]!r}") from error

    def flag(self, var: str) -> bool:
        """Return whether `var` is switched on. The default is off."""
        value = FLAGS.get(self.ENVIRON.get(var, "").lower())
        if value is None:
            raise _refusal(var, f"must be 1 or 0, not {self.ENVIRON[var]!r}")
        return value

    def whole(self, var: str, *, default: int, at_least: int = 0, at_most: int = MAX_NUMBER) -> int:
        """Return the whole number in `var`. It must be in the range."""
        return _within(var, int(self.int(var, default=default)), at_least, at_most)

    def number(self, var: str, *, default: float, at_least: float = 0) -> float:
        """Return the number in `var`. It must be at least `at_least`."""
        text: str = self.str(var, default=str(default))
        try:
            return _within(var, float(text), at_least, MAX_NUMBER)
        except ValueError:
            raise _refusal(var, f"must be a number, not {text!r}") from None

    def days(self, var: str, *, default: int) -> int:
        """Return the number of days in `var`. 0 or an empty variable switches the feature off."""
        if self.ENVIRON.get(var) == "":
            return 0
        return self.whole(var, default=default, at_most=MAX_DAYS)

    def choice(self, var: str, *allowed: str) -> str:
        """Return the word in `var`, which must be one of the `allowed` words, in any case. The first is the default."""
        value: str = self.str(var, default=allowed[0])
        for word in allowed:
            if word.lower() == value.lower():
                return word
        raise _refusal(var, f"must be one of {', '.join(allowed)}, not {value!r}")

    def hosts(self, var: str) -> tuple[str, ...]:
        """Return the hosts in `var`, separated by commas, in the form in which they are compared."""
        try:
            return tuple(host_pattern(name) for name in self.list(var, default=[]))
        except ValueError:
            raise _refusal(var, "must be a list of hosts such as tickets.lan or *.example.com") from None

    def origin(self, var: str, *, default: str) -> str:
        """Return the address in `var`, of scheme, host and optional port, in the form of browsers."""
        value: str = self.str(var, default=default)
        try:
            return web_origin(value) if value else ""
        except ValueError:
            shown = "" if "@" in value else f", not {value!r}"  # an address with @ may contain a password
            problem = f"must be an address without a path, such as https://chat.example.org{shown}"
            raise _refusal(var, problem) from None

    def origins(self, var: str, *, default: list[str]) -> list[str]:
        """Return the addresses in `var`, separated by commas."""
        try:
            return [web_origin(value, with_wildcard=True) for value in self.list(var, default=default)]
        except ValueError as error:
            problem = f"must list addresses without paths, such as https://chat.example.org, not {str(error)!r}"
            raise _refusal(var, problem) from None

    def host_names(self, var: str, *, default: list[str]) -> list[str]:
        """Return the names in `var`, separated by commas, under which clients reach this server."""
        try:
            return [host_name(value) for value in self.list(var, default=[]) if value.strip()] or default
        except ValueError as error:
            problem = "must list names such as chat.example.org or .example.org, without https://, ports or paths"
            problem += f", not {str(error)!r}"
            raise _refusal(var, problem) from None

    def database(self, var: str, *, sqlite: Path) -> dict[str, Any]:
        """Return Django's settings for the database address in `var`, or for the file `sqlite` if there is none."""
        address: str = self.str(var, default="")
        if not address:
            return {"ENGINE": SQLITE, "NAME": str(sqlite)}
        try:
            if address.partition("://")[0] not in SCHEMES:
                raise ValueError(address)
            found = dict(self.db_url_config(address))
            if found["NAME"] in ("", ":memory:"):  # each connection would have its own database
                raise ValueError(address)
            if found["ENGINE"] != SQLITE and _has_host_in_path(address):
                raise ValueError(address)
        except ValueError:  # do not repeat the address, because it may contain a password
            problem = "must be sqlite:////path/to/file or postgres://user:password@host:port/name"
            raise _refusal(var, f"{problem}; {ENCODE}") from None
        if found["ENGINE"] == SQLITE and not Path(found["NAME"]).is_absolute():
            # A relative path would name another database in each working directory.
            problem = "must have four slashes and the file's absolute path, such as sqlite:////path/to/file"
            raise _refusal(var, f"{problem}, not the relative path {found['NAME']!r}")
        return {**found, "HOST": unquote(found.get("HOST") or "")}

    def redis(self, var: str) -> str:
        """Return the address of a Redis server in `var`, or "" if there is none."""
        address: str = self.str(var, default="")
        if address and not _is_redis(address):  # do not repeat it, because it may contain a password
            problem = "must be redis://user:password@host:port/number or unix:///path/to/socket"
            raise _refusal(var, f"{problem}; {ENCODE}")
        return address


def _has_host_in_path(address: str) -> bool:
    """Return whether the host is behind the place of the host, because of a `/`, `?` or `#` in the password.

    Values of options can contain an @, behind the one of the host.
    """
    parts = urlsplit(address)
    has_host = "@" in parts.netloc
    return "@" in parts.path + (parts.query.partition("=")[0] if has_host else parts.query) + parts.fragment


def _is_redis(address: str) -> bool:
    """Return whether an address of Redis can be parsed. With `/`, `#` or `?` in the password, the host is wrong."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError for a text that is no port
    except ValueError:
        return False
    has_host = bool(parts.netloc or parts.path)
    if address.startswith("unix://"):
        return has_host
    return address.startswith(("redis://", "rediss://")) and has_host and "@" not in parts.path + parts.fragment


def _within(var: str, value: Number, at_least: float, at_most: float) -> Number:
    if at_least <= value <= at_most:  # False for NaN
        return value
    raise _refusal(var, f"must be a number from {at_least:g} to {at_most}, not {value}")


def _refusal(var: str, problem: str) -> SystemExit:
    return SystemExit(f"Parley cannot start: {var} {problem}. See docs/configuration.md.")
