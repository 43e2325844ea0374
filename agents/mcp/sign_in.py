"""The values of a sign-in with OAuth to an MCP server, and its errors."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Protocol, Self

from agents.i18n import gettext as _
from agents.messages import Json

# A token is renewed this many seconds before it expires.
EARLY = 30.0

ENDED = _("its sign-in has expired; an owner or admin of the workspace can connect it again in the MCP server settings")
NARROW = _(
    "its sign-in does not include the rights for this; an owner or admin of the workspace can connect it again in the "
    "MCP server settings"
)


@dataclass(frozen=True, slots=True)
class Client:
    """A client that a user has registered at the authorization server. `secret` is "" for a public client."""

    id: str
    secret: str = ""


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in for which a user has to open `url`. The browser returns with `state`."""

    url: str
    state: str
    verifier: str
    token_endpoint: str
    client: Json


@dataclass(frozen=True, slots=True)
class Callback:
    """The values with which the browser returns from a sign-in."""

    code: str
    iss: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens, and the values to renew them. `expires_at` is in seconds since 1970, or None if it is unknown.

    `lacking` are the rights (scopes) that calls have lacked since the sign-in, separated by spaces: "" if the server
    has not named them, None if no call has lacked any.
    """

    client: Json
    token_endpoint: str
    resource: str | None
    access_token: str
    refresh_token: str | None = None
    expires_at: float | None = None
    lacking: str | None = field(default=None, compare=False)

    @classmethod
    def from_json(cls, data: Json) -> Self:
        client = dict(data["client"])
        return cls(**{**data, "lacking": client.pop("lacking", None), "client": client})

    def to_json(self) -> Json:
        data = asdict(self)
        lacking = data.pop("lacking")
        # Processes of the previous release may read it during an update. They accept further names only in `client`.
        return {**data, "client": {**self.client, "lacking": lacking}} if lacking is not None else data

    @property
    def is_valid(self) -> bool:
        return self.expires_at is None or time.time() < self.expires_at - EARLY


class SignInFailed(Exception):
    """The sign-in failed. The message is the reason: plain English, or a TranslatableText."""


class SignInTooNarrow(SignInFailed):
    """The sign-in does not include the rights for a request."""

    def __init__(self) -> None:
        super().__init__(NARROW)


class SignInEnded(Exception):
    """There is no valid token any more, so a user has to sign in again."""

    def __init__(self) -> None:
        super().__init__(ENDED)


class Tokens(Protocol):
    """The access tokens of one server."""

    async def current(self) -> str:
        """Return the token, or a new one if it has expired. Raise SignInEnded or SignInFailed."""
        ...

    async def renew(self, refused: str) -> str:
        """Return a new token in place of the one that the server refused. Raise the same errors as `current`."""
        ...

    async def add_lacking(self, refused: str, scope: str) -> None:
        """Store rights that the refused token lacks, so that the next sign-in asks for them. `scope` can be ""."""
        ...
