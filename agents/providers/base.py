"""The provider protocol: what the loop asks of a vendor's adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.events import ProviderEvent
from agents.messages import Json, Message
from agents.reasoning import UNCHOSEN, Reasoning, ReasoningSupport

# How often a vendor's SDK repeats a failed request, unless the configuration says otherwise.
DEFAULT_RETRIES = 2


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class Request:
    """One LLM call. `messages` may hold adjacent messages of one role and system notes; adapters merge as needed.

    `cache_key` is the same for requests that begin alike: a vendor may send them to the same cache. `support` is what
    the model offers for its `reasoning`, None where that is not known.
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


class Provider(Protocol):
    """One configured endpoint; one instance per process, shared by all its sessions."""

    @property
    def name(self) -> str:
        """The name under which it is configured ("anthropic")."""

    def prepare(self) -> None:
        """Load what the first request needs, so that it need not wait. Blocks; may be called from any thread."""

    def stream(self, request: Request) -> AsyncIterator[ProviderEvent]:
        """Ask the model; end with ResponseDone. Raises ProviderError. Cancelling it closes the connection."""

    async def list_models(self) -> list[str]:
        """Name the models that the endpoint offers. Raises ProviderError."""

    async def close(self) -> None:
        """Close the connections."""
