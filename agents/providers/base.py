"""The provider protocol: the methods of a vendor's adapter that the loop uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.events import ProviderEvent
from agents.messages import Json, Message
from agents.reasoning import UNCHOSEN, Reasoning, ReasoningSupport

# How often a vendor's SDK repeats a failed request, unless the configuration sets another number.
DEFAULT_RETRIES = 2


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `parameters` is a JSON schema of the type object."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class Request:
    """One LLM call. `messages` may have adjacent messages of one role and system notes; adapters merge them as needed.

    Requests with the same beginning have the same `cache_key`, so that a vendor can send them to the same cache.
    `support` describes how the model can reason; None if that is unknown.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    reasoning: Reasoning = UNCHOSEN
    support: ReasoningSupport | None = None
    cache_key: str = ""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """What an endpoint's list of models states about one of them; None where it states nothing.

    `window` is the context window. `support` describes how the model can reason.
    """

    window: int | None = None
    support: ReasoningSupport | None = None


class Provider(Protocol):
    """One configured endpoint. Each process has one instance, which all of its sessions share."""

    @property
    def name(self) -> str:
        """The provider's name in the configuration ("anthropic")."""

    def prepare(self) -> None:
        """Load the modules and connections of the first request early. Blocks; may be called from any thread."""

    def stream(self, request: Request) -> AsyncIterator[ProviderEvent]:
        """Send the request and yield the answer's events; the last one is ResponseDone. Raise ProviderError.

        Cancelling the iteration closes the connection.
        """

    async def list_models(self) -> Mapping[str, ListedModel]:
        """Return the models that the endpoint offers, in its order, by their names. Raise ProviderError."""

    async def close(self) -> None:
        """Close the connections."""
