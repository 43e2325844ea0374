"""How a setting is read from the environment: a value that cannot be used ends the start with one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import environ

from agents.toolbox.address_policy import host_pattern
from config.addresses import host_name, web_origin

Number = TypeVar("Number", int, float)
SQLITE = "django.db.backends.sqlite3"
SCHEMES = {"sqlite", "postgres", "postgresql"}
# Above what any setting needs, and below what databases and clocks take.
LARGEST = 2**31 - 1
# A hundred years: a date so long ago still exists.
MOST_DAYS = 36_500
HIGHEST_PORT = 65_535
FLAGS = {"": False, "0": False, "false": False, "no": False, "off": False}
FLAGS |= {"1": True, "true": True, "yes": True, "on": True}


class Environment(environ.Env):  # type: ignore[misc]  # it ships no types
    """django-environ, speaking to an operator instead of to a programmer; what is set but empty counts as not set."""

    def get_value(self, var: str, *args: Any, **kwargs: Any) -> Any:
        if self.ENVIRON.get(var) == "" and "default" in kwargs:
            return kwargs["default"]
        try:
            return super().get_value(var, *args, **kwargs)
        except ValueError as error:
            raise _refusal(var, f"cannot be {self.ENVIRON[var]!r}") from error

    def flag(self, var: str) -> bool:
        """Return whether `var` is switched on; it is off unless the operator says otherwise."""
        value = FLAGS.get(self.ENVIRON.get(var, "").lower())
        if value is None:
            raise _refusal(var, f"is 1 or 0, not {self.ENVIRON[var]!r}")
        return value

    def whole(self, var: str, *, default: int, at_least: int = 0, at_most: int = LARGEST) -> int:
        """Return the whole number in `var`, which has to be in a range."""
        return _within(var, int(self.int(var, default=default)), at_least, at_most)

    def number(self, var: str, *, default: float, at_least: float = 0) -> float:
        """Return the number in `var`, which has to be in a range."""
        return _within(var, float(self.float(var, default=default)), at_least, LARGEST)

    def days(self, var: str, *, default: int) -> int:
        """Return the number of days in `var`: 0, or set but empty, switches off what it is for."""
        if self.ENVIRON.get(var) == "":
            return 0
        return self.whole(var, default=default, at_most=MOST_DAYS)

    def choice(self, var: str, *allowed: str) -> str:
        """Return which of the `allowed` words `var` holds, in whatever case; the first is the default."""
        value: str = self.str(var, default=allowed[0])
        for word in allowed:
            if word.lower() == value.lower():
                return word
        raise _refusal(var, f"is one of {', '.join(allowed)}, not {value!r}")

    def hosts(self, var: str) -> tuple[str, ...]:
        """Return the hosts in `var`, separated by commas, in the form in which they are compared."""
        try:
            return tuple(host_pattern(name) for name in self.list(var, default=[]))
        except ValueError:
            raise _refusal(var, "is a list of hosts such as tickets.lan or *.example.com") from None

    def origin(self, var: str, *, default: str) -> str:
        """Return the address in `var`, scheme and host and perhaps port, as browsers write it."""
        value: str = self.str(var, default=default)
        try:
            return web_origin(value) if value else ""
        except ValueError:
            shown = "" if "@" in value else f", not {value!r}"  # it may hold a password
            problem = f"is an address without a path, such as https://chat.example.org{shown}"
            raise _refusal(var, problem) from None

    def origins(self, var: str, *, default: list[str]) -> list[str]:
        """Return the addresses in `var`, separated by commas."""
        try:
            return [web_origin(value, with_wildcard=True) for value in self.list(var, default=default)]
        except ValueError as error:
            problem = f"is a list of addresses without paths, such as https://chat.example.org, not {str(error)!r}"
            raise _refusal(var, problem) from None

    def host_names(self, var: str, *, default: list[str]) -> list[str]:
        """Return the names in `var`, separated by commas, under which this server is reached."""
        try:
            return [host_name(value) for value in self.list(var, default=[])] or default
        except ValueError as error:
            problem = f"is a list of names without https://, ports and paths: chat.example.org, not {str(error)!r}"
            raise _refusal(var, problem) from None

    def database(self, var: str, *, sqlite: Path) -> dict[str, Any]:
        """Return Django's form of the address in `var`; without one, of the file `sqlite`."""
        address: str = self.str(var, default="")
        if not address:
            return {"ENGINE": SQLITE, "NAME": str(sqlite)}
        try:
            if address.partition("://")[0] not in SCHEMES:
                raise ValueError(address)
            found = dict(self.db_url_config(address))
            if found["NAME"] in ("", ":memory:"):  # other connections would not see what one has written
                raise ValueError(address)
        except ValueError:  # the address may hold a password: it is not repeated here
            raise _refusal(var, "is sqlite:////path/to/file or postgres://user:password@host:port/name") from None
        if found["ENGINE"] == SQLITE and not (folder := Path(found["NAME"]).parent).is_dir():
            raise _refusal(var, f"names a file in a folder that is not there, no folder {folder}")
        return found

    def redis(self, var: str) -> str:
        """Return the address in `var`; "" if there is none."""
        address: str = self.str(var, default="")
        if address and not (address.startswith(("redis://", "rediss://", "unix://")) and address.partition("://")[2]):
            raise _refusal(var, "is redis://user:password@host:port/number, or unix:///path/to/socket")
        return address


def _within(var: str, value: Number, at_least: float, at_most: float) -> Number:
    if at_least <= value <= at_most:  # not so for "nan"
        return value
    raise _refusal(var, f"is a number from {at_least:g} to {at_most}, not {value}")


def _refusal(var: str, problem: str) -> SystemExit:
    return SystemExit(f"Parley cannot start: {var} {problem}. docs/configuration.md lists what each setting takes.")
