"""The mapping of Anthropic's Messages stream to ProviderEvents. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agents.events import (
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    ResponseDone,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from agents.messages import Json, Text, Thinking, ToolCall
from agents.providers.arguments import read_arguments
from agents.providers.http.decoding import StreamedFailureError, SurrogateJoiner, UnreadableError, load, repair
from agents.providers.http.errors import short
from agents.sources import cited_source

STOP_REASONS: Mapping[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "context",
    "refusal": "refusal",
    "pause_turn": "pause",
}
NOTHING: tuple[ProviderEvent, ...] = ()


@dataclass
class Block:
    """An open content block. Its deltas are collected, and joined at its end. `tool` is the tool's name in a call."""

    index: int
    start: Json
    tool: str = ""
    pieces: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    signature: list[str] = field(default_factory=list)
    citations: list[Json] = field(default_factory=list)


@dataclass
class StreamState:
    """The state of one stream. `tool_names` maps the names that were sent to the vendor to those of the tools."""

    provider: str
    tool_names: Mapping[str, str] = field(default_factory=dict)
    block: Block | None = None
    usage: dict[str, int] = field(default_factory=dict)
    stop_reason: str | None = None
    explanation: str = ""
    complete: bool = False


def from_stream(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    """Map one event. Events of unknown types are ignored. Raise UnreadableError or StreamedFailureError."""
    handler = HANDLERS.get(event.get("type", ""))
    return handler(event, state) if handler else NOTHING


def _message_start(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    _count(event["message"].get("usage"), state)
    return NOTHING


def _block_start(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    if state.block is not None:
        raise UnreadableError("a content block began inside another one")
    start = event["content_block"]
    name = start["name"] if start["type"] == "tool_use" else ""
    state.block = Block(event["index"], start, state.tool_names.get(name, name))
    return _delta_of_start(start, state.block)


def _delta_of_start(start: Json, block: Block) -> Iterable[ProviderEvent]:
    """Return the events of a block's start, because some servers send text with it."""
    block.citations += start.get("citations") or []
    if start.get("signature"):
        block.signature.append(start["signature"])
    for kind in ("text", "thinking"):
        if start["type"] == kind and start.get(kind):
            return _delta({"type": f"{kind}_delta", kind: start[kind]}, block)
    return (ToolCallDelta(str(block.index), block.tool, ""),) if block.tool else NOTHING


def _block_delta(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    block = state.block
    if block is None or block.index != event["index"]:
        raise UnreadableError("a delta of a content block that is not open")
    return _delta(event["delta"], block)


def _delta(delta: Json, block: Block) -> Iterable[ProviderEvent]:
    match delta["type"]:
        case "text_delta":
            return _piece(delta["text"], block, TextDelta)
        case "thinking_delta":
            return _piece(delta["thinking"], block, ReasoningDelta)
        case "input_json_delta":
            block.pieces.append(delta["partial_json"])
            if block.tool and delta["partial_json"]:
                return (ToolCallDelta(str(block.index), block.tool, delta["partial_json"]),)
        case "signature_delta":
            block.signature.append(delta["signature"])
        case "citations_delta":
            block.citations.append(delta["citation"])
    return NOTHING


def _piece(text: str, block: Block, kind: Callable[[str], ProviderEvent]) -> Iterable[ProviderEvent]:
    text = block.joiner.add(text)
    if not text:
        return NOTHING
    block.pieces.append(text)
    return (kind(text),)


def _block_stop(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    block, state.block = state.block, None
    if block is None or block.index != event["index"]:
        raise UnreadableError("the end of a content block that is not open")
    # Half a character at the end of the block, whose other half is missing.
    half = block.joiner.end()
    delta = TextDelta if block.start["type"] == "text" else ReasoningDelta
    rest = _piece(half, block, delta) if half else NOTHING
    part = _part(block, state)
    key = str(block.index) if isinstance(part, ToolCall) else ""
    return (*rest, PartDone(part, key)) if part else NOTHING


def _part(block: Block, state: StreamState) -> Text | Thinking | ToolCall | None:
    """Return the part of a complete block, or None for an empty text and for blocks of the vendor's own tools."""
    text = "".join(block.pieces)
    match block.start["type"]:
        case "text" if text:
            cited = (cited_source(each.get("title"), each.get("url")) for each in block.citations)
            return Text(text, sources=tuple(dict.fromkeys(filter(None, cited))))
        case "thinking" if text or block.signature:
            return Thinking(text, state.provider, {"signature": "".join(block.signature)} if block.signature else {})
        case "redacted_thinking":
            return Thinking("", state.provider, {"redacted": block.start["data"]})
        case "tool_use":
            if not text and block.start.get("input"):
                text = json.dumps(block.start["input"], ensure_ascii=False)
            name, text = block.start["name"], repair(text)
            return ToolCall(block.start["id"] or "", state.tool_names.get(name, name), read_arguments(text), text)
    return None


def _message_delta(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    delta = event["delta"]
    state.stop_reason = delta.get("stop_reason") or state.stop_reason
    if isinstance(details := delta.get("stop_details"), dict):
        state.explanation = short(str(details.get("explanation") or ""))
    _count(event.get("usage"), state)
    return NOTHING


def _message_stop(_event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    if state.block is not None:
        raise UnreadableError("the message ended inside a content block")
    state.complete = True
    return NOTHING


def _error(event: Json, _state: StreamState) -> Iterable[ProviderEvent]:
    raise StreamedFailureError(event)


HANDLERS: Mapping[str, Callable[[Json, StreamState], Iterable[ProviderEvent]]] = {
    "content_block_delta": _block_delta,
    "content_block_start": _block_start,
    "content_block_stop": _block_stop,
    "message_start": _message_start,
    "message_delta": _message_delta,
    "message_stop": _message_stop,
    "error": _error,
}


def _count(usage: object, state: StreamState) -> None:
    """Store the latest number of each kind. The numbers in message_delta are totals, so they replace earlier ones."""
    if isinstance(usage, dict):
        details = usage.get("output_tokens_details")
        counts = usage | details if isinstance(details, dict) else usage
        state.usage |= {key: value for key, value in counts.items() if isinstance(value, int)}


def usage_of(state: StreamState) -> Usage:
    """Return the usage. Add the cached tokens to the input, because the vendor's `input_tokens` excludes them."""
    counts = state.usage
    read, write = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
    fresh = counts.get("input_tokens")
    total = None if fresh is None else fresh + (read or 0) + (write or 0)
    return Usage(total, counts.get("output_tokens"), read, write, counts.get("thinking_tokens"))


class AnthropicReader:
    """A `decoding.Reader` of one answer."""

    def __init__(self, state: StreamState) -> None:
        self._state = state

    @property
    def ended(self) -> bool:
        """Whether the whole message has arrived. Some servers never send message_stop, so it is not required."""
        return self._state.complete or (self._state.stop_reason is not None and self._state.block is None)

    @property
    def complete(self) -> bool:
        return self._state.complete

    def feed(self, _kind: bytes, data: bytes) -> Iterator[ProviderEvent]:
        yield from from_stream(load(data), self._state)

    def feed_whole(self, body: Json) -> Iterator[ProviderEvent]:
        """Read a message that was not streamed: yield the events that a stream of it would give."""
        if body.get("type") != "message":
            raise StreamedFailureError(body) if "error" in body else UnreadableError(json.dumps(body)[:200])
        for event in _as_events(body):
            yield from from_stream(event, self._state)

    def finish(self) -> Iterator[ProviderEvent]:
        stop_reason = STOP_REASONS.get(self._state.stop_reason or "", "end")
        yield ResponseDone(stop_reason, usage_of(self._state), self._state.explanation)


def _as_events(message: Json) -> Iterator[Json]:
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(message.get("content") or ()):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": message}
    yield {"type": "message_stop"}
