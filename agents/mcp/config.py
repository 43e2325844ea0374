"""The configuration of MCP servers, and the names of their tools in an agent's list of tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.delegates import PREFIX
from agents.toolbox.address_policy import host_pattern

# Separates the names of the server and of the tool. A server's name cannot contain it, so its first place counts.
SEPARATOR = "__"
# In place of a server's name, this names other agents (agents/delegates.py).
AGENTS = PREFIX.removesuffix(SEPARATOR)
DEFAULT_TIME_LIMIT = 60.0
DEFAULT_ANSWER_LIMIT = 900.0
Approval = Literal["unless_read_only", "always", "never"]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def server_name(value: str) -> str:
    """Return the name of a server. Raise ValueError if it cannot be the beginning of its tools' names."""
    if not re.fullmatch(r"[A-Za-z0-9]+([_-][A-Za-z0-9]+)*", value) or len(value) > 24:
        raise ValueError("a server's name must have 1 to 24 letters and digits, with single - and _ between them")
    if value == AGENTS:
        raise ValueError(f"{AGENTS}{SEPARATOR}NAME is reserved for other agents; choose another name")
    return value


def server_address(value: str) -> str:
    if not re.match(r"https?://[^\s/@]+(/|$)", value):
        raise ValueError("must be a web address without a password that begins with http:// or https://")
    return value


ServerName = Annotated[str, AfterValidator(server_name)]


class ServerConfig(BaseModel):
    """One MCP server: a program (`command`) or a web address (`url`).

    `${NAME}` in a value of `env` or `headers` is replaced by that environment variable of Parley. Only programs have
    `env`, `network` and `sandbox`, and only web addresses have `headers` and `internal_hosts`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    env: dict[str, str] = {}
    network: bool = False
    sandbox: bool = True
    url: Annotated[str, AfterValidator(server_address)] | None = None
    headers: dict[str, str] = {}
    # The hosts whose IP address need not be public.
    internal_hosts: tuple[Annotated[str, AfterValidator(host_pattern)], ...] = ()
    # The tools that agents may use, by the server's names for them; None: all.
    tools: tuple[str, ...] | None = None
    # The most seconds for one call.
    time_limit: Annotated[float, Field(gt=0, le=3600)] = DEFAULT_TIME_LIMIT
    # The seconds in which users can answer a question that the server asks during a call.
    answer_limit: Annotated[float, Field(gt=0, le=86_400)] = DEFAULT_ANSWER_LIMIT
    approval: Approval = "unless_read_only"


@dataclass(frozen=True, slots=True)
class AddedServer:
    """A server that is not in the configuration file. Each change of its settings gives it a new `revision`."""

    id: str
    revision: str
    name: str
    config: ServerConfig
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Whether a user has signed in to it, so that requests carry a token (agents.mcp.sign_in).
    is_signed_in: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.revision


def resolved(values: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Replace each `${NAME}` by the value of the environment variable. Raise KeyError if a variable is not set."""
    return {key: _VARIABLE.sub(lambda match: env[match[1]], value) for key, value in values.items()}


def missing_variables(server: ServerConfig, env: Mapping[str, str]) -> list[str]:
    """Return the names of environment variables that the server's values need and that are not set or empty."""
    values = (*server.env.values(), *server.headers.values())
    names = [name for value in values for name in _VARIABLE.findall(value)]
    return [name for name in dict.fromkeys(names) if not env.get(name)]


def server_of(tool: str, servers: Iterable[str]) -> str:
    """Return the server to which a tool's name or pattern belongs, or "" if it is none of these servers."""
    name, separator, rest = tool.partition(SEPARATOR)
    return name if separator and rest and name in servers else ""


def is_chosen(tool: str, patterns: Iterable[str]) -> bool:
    """Return whether an agent's list of tools includes a tool, by its name or by a pattern such as `github__*`."""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def problems(servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    """Yield the problems that pydantic does not find, each as "key: what is wrong and what to do"."""
    for name, server in servers.items():
        key = f"mcp.{name}"
        if bool(server.command) == bool(server.url):
            yield f"{key}: a server needs either a command or a url; set one of them"
            continue
        foreign = ("headers", "internal_hosts") if server.command else ("env", "network", "sandbox")
        kind, other = ("command", "url") if server.command else ("url", "command")
        for setting in foreign:
            if setting in server.model_fields_set:
                yield f"{key}.{setting}: only a server with a {other} can have it, and this one has a {kind}; remove it"
