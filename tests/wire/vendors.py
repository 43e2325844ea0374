"""The vendors' formats behind one interface, for tests that apply to all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, TextDelta, ToolCallDelta
from agents.messages import Json, Message, Part, Text, ToolCall
from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import Request
from agents.providers.http.read_pacing import merge_deltas
from agents.providers.openai.provider import OpenAIProvider
from tests.wire import anthropic, openai, responses
from tests.wire.script import Reply
from tests.wire.server import PATIENCE, WireServer

KEY = "sk-secret-0123456789"
Provider = AnthropicProvider | OpenAIProvider


@dataclass(frozen=True)
class Vendor:
    """The formats of one vendor. `error` takes the status, the vendor's kind or code, a message and headers."""

    name: str
    make: Callable[..., Provider]
    text: Callable[..., list[bytes]]
    opening: Callable[..., list[bytes]]
    failure: Callable[[str, str], list[bytes]]
    error: Callable[..., Reply]


def _anthropic(server: WireServer, key: str = KEY, **options: Any) -> AnthropicProvider:
    return AnthropicProvider("anthropic", key, server.anthropic_url, **({"max_retries": 0} | options))


def _anthropic_text(*pieces: str) -> list[bytes]:
    return anthropic.sse(anthropic.message_start(), *anthropic.text(0, *pieces), *anthropic.end())


def _anthropic_opening(*pieces: str) -> list[bytes]:
    return anthropic.sse(anthropic.message_start(), *anthropic.text(0, *pieces)[:-1])


def _anthropic_failure(kind: str, message: str) -> list[bytes]:
    return anthropic.sse(anthropic.error_event(kind, message))


def _openai(server: WireServer, key: str = KEY, **options: Any) -> OpenAIProvider:
    return OpenAIProvider("openai", key, server.openai_url, **({"max_retries": 0} | options))


def _openai_text(*pieces: str) -> list[bytes]:
    return openai.sse(openai.role(), *openai.text(*pieces), openai.finish(), openai.usage())


def _openai_opening(*pieces: str) -> list[bytes]:
    return openai.sse(openai.role(), *openai.text(*pieces), done=False)


def _openai_failure(kind: str, message: str) -> list[bytes]:
    return openai.sse(openai.error_body(message, kind))


def _openai_error(status: int, kind: str, message: str, **headers: str) -> Reply:
    return openai.error(status, message, kind, kind, **headers)


def _responses(server: WireServer, key: str = KEY, **options: Any) -> OpenAIProvider:
    return OpenAIProvider("responses", key, server.openai_url, api="responses", **({"max_retries": 0} | options))


def _responses_text(*pieces: str) -> list[bytes]:
    return responses.sse(*responses.whole(responses.message(0, *pieces)))


def _responses_opening(*pieces: str) -> list[bytes]:
    deltas = [responses.text_delta(0, piece) for piece in pieces]
    return responses.sse(*responses.begin(), responses.added(0, responses.message_item("")), *deltas)


def _responses_failure(kind: str, message: str) -> list[bytes]:
    return responses.sse(responses.failed(kind, message))


ANTHROPIC = Vendor("anthropic", _anthropic, _anthropic_text, _anthropic_opening, _anthropic_failure, anthropic.error)
OPENAI = Vendor("openai", _openai, _openai_text, _openai_opening, _openai_failure, _openai_error)
RESPONSES = Vendor("responses", _responses, _responses_text, _responses_opening, _responses_failure, _openai_error)
ALL = (ANTHROPIC, OPENAI, RESPONSES)


def request(*said: Message | str, **fields: Any) -> Request:
    """Return a request with these texts of a user, or with these messages."""
    messages = tuple(Message("user", (Text(one),)) if isinstance(one, str) else one for one in said or ("hello",))
    return Request(fields.pop("model", "model-1"), messages, **fields)


async def ask(
    provider: Provider, asked: Request | None = None, seen: list[ProviderEvent] | None = None
) -> list[ProviderEvent]:
    """Return all events of an answer, with adjacent deltas joined; `seen` has them unchanged, also after a failure.

    Events of calls that are being written are left out here; tests/wire/test_written_calls.py tests them.
    """
    seen = [] if seen is None else seen
    async with asyncio.timeout(PATIENCE), aclosing(provider.stream(asked or request())) as events:
        async for event in events:
            seen.append(event)
    without_deltas = (event for event in seen if not isinstance(event, ToolCallDelta))
    return [replace(event, key="") if isinstance(event, PartDone) else event for event in merge_deltas(without_deltas)]


def parts(events: Sequence[ProviderEvent]) -> tuple[Part, ...]:
    return tuple(event.part for event in events if isinstance(event, PartDone))


def plain(events: Sequence[ProviderEvent]) -> tuple[Part, ...]:
    """Return the parts without the vendor's own data."""
    return tuple(replace(part, data={}) if isinstance(part, Text | ToolCall) else part for part in parts(events))


def done(events: Sequence[ProviderEvent]) -> ResponseDone:
    """Return the last event, after checking that the deltas before each part add up to it."""
    shown = ""
    for event in events[:-1]:
        match event:
            case TextDelta(text) | ReasoningDelta(text):
                shown += text
                assert text
            case PartDone(part):
                assert shown == getattr(part, "text", "")
                shown = ""
    assert isinstance(events[-1], ResponseDone)
    return events[-1]


async def hear(wire: WireServer, provider: OpenAIProvider, *chunks: Json, ended: bool = True) -> list[ProviderEvent]:
    """Return the provider's events for these chunks of OpenAI, after checking that they are consistent."""
    wire.script(Reply(openai.sse(*chunks, done=ended)))
    events = await ask(provider)
    done(events)
    return events
