"""The dialects of models that providers have learned from refusals. They are stored for a day, for all processes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

from agents.messages import Json
from agents.providers.dialect import Dialect

# After this many seconds, a server is asked in the usual dialect again, because it may have been updated.
LIFETIME = 24 * 3600
# Seconds for a server that has answered the Responses API with 404 or 405: perhaps a proxy did so only once.
API_LIFETIME = 600


@dataclass(frozen=True, slots=True)
class Learned:
    """The dialect of a model whose server has refused a request. `at` is the time in seconds since the epoch."""

    dialect: Dialect
    at: float

    def to_json(self, usual: Dialect) -> Json:
        """Return the values to store. `usual` is the provider's usual dialect; if that changes, `of` ignores them."""
        return {"usual": _plain(usual), "dialect": _plain(self.dialect)}

    @classmethod
    def of(cls, kept: Json, at: float, usual: Dialect) -> Learned | None:
        """Read stored values. Return None if they are from another configuration or another version of Parley."""
        values = kept.get("dialect")
        if kept.get("usual") != _plain(usual) or not isinstance(values, dict) or values.keys() != _plain(usual).keys():
            return None
        return cls(Dialect(**{**values, "omitted": frozenset(values["omitted"])}), at)

    def is_valid(self, now: float, usual: Dialect) -> bool:
        """Return whether the server does not have to be asked in its usual dialect again yet."""
        lacks_api = usual.responses and not self.dialect.responses
        return now - self.at < (API_LIFETIME if lacks_api else LIFETIME)


class Store(Protocol):
    """A place where learned dialects are stored for other processes and for later."""

    async def keep(self, endpoint: str, model: str, learned: Json) -> None:
        """Store the learned dialect of a model. Never raises."""


@runtime_checkable
class Learner(Protocol):
    """A provider that learns from refusals."""

    store: Store | None

    @property
    def endpoint_key(self) -> str:
        """The key of the endpoint in a store."""

    def recall(self, kept: Mapping[str, tuple[Json, float]]) -> None:
        """Take over stored dialects: for each model the values and their time in seconds since the epoch."""


def key_of(form: str, url: str) -> str:
    """Return a digest of the form and the base URL. It is not plain text, because a URL may contain a password."""
    return hashlib.sha256(f"{form}\n{url}".encode()).hexdigest()


def _plain(dialect: Dialect) -> Json:
    return {**asdict(dialect), "omitted": sorted(dialect.omitted)}
