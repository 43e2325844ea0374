"""The configuration of MCP servers, and how an agent's list of tools names theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.toolbox.address_policy import host_pattern

# Between a server's name and its tool's. A server's name cannot contain it, so the first one separates them.
SEPARATOR = "__"
# Stands for other agents where tools have the name of a server (agents/delegates.py).
AGENTS = "agent"
DEFAULT_TIME_LIMIT = 60.0
DEFAULT_ANSWER_LIMIT = 900.0
Approval = Literal["unless_read_only", "always", "never"]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def server_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]+([_-][A-Za-z0-9]+)*", value) or len(value) > 24:
        raise ValueError("a server's name has 1 to 24 letters and digits, with single - and _ between them")
    if value == AGENTS:
        raise ValueError(f"{AGENTS}{SEPARATOR}NAME stands for other agents; choose another name")
    return value


def server_address(value: str) -> str:
    if not re.match(r"https?://[^\s/@]+(/|$)", value):
        raise ValueError("give a web address without a password that begins with http:// or https://")
    return value


ServerName = Annotated[str, AfterValidator(server_name)]


class ServerConfig(BaseModel):
    """One MCP server: a program (`command`) or a web address (`url`).

    `${NAME}` in a value of `env` or `headers` stands for an environment variable of Parley. `network` and `sandbox` are
    those of a program.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    env: dict[str, str] = {}
    network: bool = False
    sandbox: bool = True
    url: Annotated[str, AfterValidator(server_address)] | None = None
    headers: dict[str, str] = {}
    # The hosts that may have an address that is not public.
    internal_hosts: tuple[Annotated[str, AfterValidator(host_pattern)], ...] = ()
    # The server's names of the tools that agents may have; not set: all.
    tools: tuple[str, ...] | None = None
    # Seconds for one call.
    time_limit: Annotated[float, Field(gt=0, le=3600)] = DEFAULT_TIME_LIMIT
    # Seconds in which people can answer what the server asks them in a call.
    answer_limit: Annotated[float, Field(gt=0, le=86_400)] = DEFAULT_ANSWER_LIMIT
    approval: Approval = "unless_read_only"


@dataclass(frozen=True, slots=True)
class AddedServer:
    """A server beside those of the configuration file. A change of its settings gives it another `revision`."""

    id: str
    revision: str
    name: str
    config: ServerConfig
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Whether a person has signed in to it: its requests carry a token (agents.mcp.sign_in).
    is_signed_in: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.revision


def resolved(values: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Replace each `${NAME}` by the environment variable's value. Raises KeyError for one that is not set."""
    return {key: _VARIABLE.sub(lambda match: env[match[1]], value) for key, value in values.items()}


def missing_variables(server: ServerConfig, env: Mapping[str, str]) -> list[str]:
    """Return the environment variables that the server's values name and that are not set."""
    values = (*server.env.values(), *server.headers.values())
    names = [name for value in values for name in _VARIABLE.findall(value)]
    return [name for name in dict.fromkeys(names) if not env.get(name)]


def server_of(tool: str, servers: Iterable[str]) -> str:
    """Return the server that a tool's name or pattern belongs to; "" for none of these servers."""
    name, separator, rest = tool.partition(SEPARATOR)
    return name if separator and rest and name in servers else ""


def is_chosen(tool: str, patterns: Iterable[str]) -> bool:
    """Whether an agent's list of tools has the tool: by its name, or by a pattern such as `github__*`."""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def problems(servers: Mapping[str, ServerConfig]) -> Iterator[str]:
    """What the shape alone does not tell: each as "key: what is wrong and what to do"."""
    for name, server in servers.items():
        key = f"mcp.{name}"
        if bool(server.command) == bool(server.url):
            yield f"{key}: a server has either a command or a url; set one of them"
            continue
        foreign = ("headers", "internal_hosts") if server.command else ("env", "network", "sandbox")
        kind, other = ("command", "url") if server.command else ("url", "command")
        for setting in foreign:
            if setting in server.model_fields_set:
                yield f"{key}.{setting}: a server with a {kind} does not have it, only one with a {other}; remove it"
