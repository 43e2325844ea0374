"""What is learned of endpoints and outlives the process: how each model is asked, for a day."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

from agents.messages import Json
from agents.providers.dialect import Dialect

# Seconds after which a server is asked in the usual way again: it may have been updated.
LIFETIME = 24 * 3600


@dataclass(frozen=True, slots=True)
class Learned:
    """How a model is asked since its server refused something; `at` is when, in seconds since the epoch."""

    dialect: Dialect
    at: float

    def to_json(self, usual: Dialect) -> Json:
        """Return values to keep. `usual` is what the provider begins with: with another one they do not count."""
        return {"usual": _plain(usual), "dialect": _plain(self.dialect)}

    @classmethod
    def of(cls, kept: Json, at: float, usual: Dialect) -> Learned | None:
        """Read kept values; None where they are about another configuration or another version of Parley."""
        values = kept.get("dialect")
        if kept.get("usual") != _plain(usual) or not isinstance(values, dict) or values.keys() != _plain(usual).keys():
            return None
        return cls(Dialect(**{**values, "omitted": frozenset(values["omitted"])}), at)


class Store(Protocol):
    """Keeps what is learned for other processes and for later."""

    async def keep(self, endpoint: str, model: str, learned: Json) -> None:
        """Keep what was learned of a model; never raises."""


@runtime_checkable
class Learner(Protocol):
    """A provider that learns from refusals."""

    store: Store | None

    @property
    def endpoint_key(self) -> str:
        """Identifies the endpoint in a store."""

    def recall(self, kept: Mapping[str, tuple[Json, float]]) -> None:
        """Take over what a store has, by model, each with its time in seconds since the epoch."""


def key_of(form: str, url: str) -> str:
    """Return a digest of the form and the base URL: an address may contain a password."""
    return hashlib.sha256(f"{form}\n{url}".encode()).hexdigest()


def _plain(dialect: Dialect) -> Json:
    return {**asdict(dialect), "omitted": sorted(dialect.omitted)}
