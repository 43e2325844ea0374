"""The values of a sign-in with OAuth to an MCP server, and its errors."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Protocol, Self

from agents.messages import Json

# A token is renewed so many seconds before it ends.
EARLY = 30.0

ENDED = "its sign-in has ended; an owner or admin of the workspace can connect it again on its page of MCP servers"


@dataclass(frozen=True, slots=True)
class Client:
    """A client that someone has registered at the authorization server by hand; `secret` is "" for a public one."""

    id: str
    secret: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in for which a person has to open `url`. The browser comes back with `state`."""

    url: str
    state: str
    verifier: str
    token_endpoint: str
    client: Json


@dataclass(frozen=True, slots=True)
class Returned:
    """What the browser has brought back for a sign-in."""

    code: str
    iss: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens, and what is needed to renew them. `expires_at` is in seconds since 1970; None: not known."""

    client: Json
    token_endpoint: str
    resource: str | None
    access_token: str
    refresh_token: str | None = None
    expires_at: float | None = None

    @classmethod
    def from_json(cls, data: Json) -> Self:
        return cls(**data)

    def to_json(self) -> Json:
        return asdict(self)

    @property
    def is_valid(self) -> bool:
        return self.expires_at is None or time.time() < self.expires_at - EARLY


class SignInFailed(Exception):
    """The sign-in did not work; the message says why."""


class SignInEnded(Exception):
    """There is no valid token any more: a person has to sign in again."""

    def __init__(self) -> None:
        super().__init__(ENDED)


class Tokens(Protocol):
    """The access tokens of one server."""

    async def current(self) -> str:
        """Return the token, a new one if it has expired. Raises SignInEnded, SignInFailed."""
        ...

    async def renewed(self, refused: str) -> str:
        """Return another token than the one that the server has refused. Raises as `current` does."""
        ...
