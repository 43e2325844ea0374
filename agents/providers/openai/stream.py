"""Maps the chunks of a Chat Completions stream to ProviderEvents, as OpenAI and its imitators send them; no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, StopReason, TextDelta, Usage
from agents.messages import Json, Source, Text, Thinking
from agents.providers.http.decoding import StreamedFailureError, UnreadableError, load
from agents.providers.http.surrogates import SurrogateJoiner
from agents.providers.openai.calls import CallCollector
from agents.providers.openai.citations import cited_by

STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
# Where servers put reasoning; some send the same text in both.
REASONING_FIELDS = ("reasoning_content", "reasoning")
DONE = b"[DONE]"


@dataclass
class OpenPart:
    """A text or thinking part whose deltas are collected, and joined once, at its end; `source` names the field."""

    source: str
    pieces: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)


@dataclass
class StreamState:
    """What must be remembered of one stream. `tool_names`: what the names that the server was given stand for."""

    provider: str
    tool_names: Mapping[str, str] = field(default_factory=dict)
    part: OpenPart | None = None
    cited: list[Source] = field(default_factory=list)
    calls: CallCollector = field(default_factory=CallCollector)
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    refused: bool = False
    done: bool = False


def from_stream(chunk: Json, state: StreamState) -> Iterator[ProviderEvent]:
    """Map one chunk. Raises StreamedFailureError."""
    if chunk.get("error") or chunk.get("object") == "error":
        raise StreamedFailureError(chunk)
    if chunk.get("usage"):
        state.usage = read_usage(chunk["usage"])
    # Some servers send several answers although one was asked for.
    choice = next((choice for choice in chunk.get("choices") or () if not choice.get("index")), None)
    if choice is None:
        return
    delta = choice.get("delta") or choice.get("message")
    if delta:
        yield from _delta(delta, state)
    if choice.get("finish_reason"):
        state.finish_reason = choice["finish_reason"]


def _delta(delta: Json, state: StreamState) -> Iterator[ProviderEvent]:
    for name in REASONING_FIELDS:
        if delta.get(name):
            yield from _take_text(delta[name], name, state)
            break
    if content := delta.get("content"):
        yield from _content(content, state)
    state.cited += cited_by(delta.get("annotations"))
    if refusal := delta.get("refusal"):
        state.refused = True
        yield from _take_text(refusal, "", state)
    if delta.get("tool_calls") or delta.get("function_call"):
        yield from close_part(state)
        yield from _collect(delta, state)


def _content(content: Any, state: StreamState) -> Iterator[ProviderEvent]:
    """Read content: text, or the list of typed pieces that Mistral's reasoning models send."""
    if isinstance(content, str):
        # Servers that cut calls out of a model's text leave the line breaks between them.
        if not state.calls or not content.isspace():
            yield from _take_text(content, "", state)
        return
    for piece in content:
        if piece["type"] == "thinking":
            inner = piece["thinking"]
            text = inner if isinstance(inner, str) else "".join(part.get("text", "") for part in inner)
            yield from _take_text(text, "thinking", state)
        elif piece["type"] == "text":
            yield from _take_text(piece["text"], "", state)


def _take_text(text: str, source: str, state: StreamState) -> Iterator[ProviderEvent]:
    """Add to the open part, or close it and open the next one where text turns to reasoning or back."""
    if not text:
        return
    part = state.part
    if part is None or part.source != source:
        yield from close_part(state)
        part = state.part = OpenPart(source)
    if text := part.joiner.add(text):
        yield _append_delta(part, text)


def _append_delta(part: OpenPart, text: str) -> ProviderEvent:
    part.pieces.append(text)
    return ReasoningDelta(text) if part.source else TextDelta(text)


def close_part(state: StreamState) -> Iterator[ProviderEvent]:
    """Close the open text or thinking, if there is one."""
    part, state.part = state.part, None
    if part is None:
        return
    if half := part.joiner.end():
        yield _append_delta(part, half)
    text = "".join(part.pieces)
    if part.source:
        data = {"field": part.source} if part.source in REASONING_FIELDS else {}
        yield PartDone(Thinking(text, state.provider, data))
    else:
        yield PartDone(Text(text, sources=tuple(dict.fromkeys(state.cited))))
        state.cited = []


def _collect(delta: Json, state: StreamState) -> Iterator[ProviderEvent]:
    fragments = [
        (fragment.get("index"), fragment.get("id"), fragment.get("function") or {})
        for fragment in delta.get("tool_calls") or ()
    ]
    if legacy := delta.get("function_call"):
        fragments.append((0, None, legacy))
    for fragment in fragments:
        if new := state.calls.add(*fragment, state.tool_names):
            yield new


def read_usage(usage: Json) -> Usage:
    """Read the token counts: the cached ones are part of the prompt's."""
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    written = details.get("cache_write_tokens")
    return Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached, written, reasoning)


class OpenAIReader:
    """Reads one answer; see decoding.Reader."""

    def __init__(self, state: StreamState) -> None:
        self._state = state

    @property
    def ended(self) -> bool:
        return self._state.done or self._state.finish_reason is not None

    @property
    def complete(self) -> bool:
        return self._state.done

    def feed(self, kind: bytes, data: bytes) -> Iterator[ProviderEvent]:
        if data == DONE:
            self._state.done = True
            return
        chunk = load(data)
        if kind == b"error":
            raise StreamedFailureError(chunk)
        try:
            yield from from_stream(chunk, self._state)
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise UnreadableError(data[:200].decode(errors="replace")) from None

    def feed_whole(self, body: Json) -> Iterator[ProviderEvent]:
        """Read a completion: its message is a delta that says all at once."""
        if not body.get("choices") and not body.get("error"):
            raise UnreadableError(json.dumps(body)[:200])
        yield from from_stream(body, self._state)

    def finish(self) -> Iterator[ProviderEvent]:
        state = self._state
        yield from close_part(state)
        calls = state.calls.take(state.tool_names)
        for place, call in enumerate(calls):
            yield PartDone(call, str(place))
        yield ResponseDone(_stop_reason(state, bool(calls)), state.usage)


def _stop_reason(state: StreamState, has_calls: bool) -> StopReason:
    """Some servers say `stop` although they call tools, others `tool_calls` although they do not."""
    if state.finish_reason in {"error", "insufficient_system_resource"}:
        raise StreamedFailureError({"error": {"message": "", "type": "server_error"}})
    reason = "refusal" if state.refused else STOP_REASONS.get(state.finish_reason or "", "end")
    if reason in {"end", "tool_use"}:
        return "tool_use" if has_calls else "end"
    return reason
