"""The mapping of Chat Completions streams, of OpenAI and compatible servers, to ProviderEvents. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.events import PartDone, ProviderEvent, ReasoningDelta, ResponseDone, StopReason, TextDelta, Usage
from agents.messages import Json, Source, Text, Thinking
from agents.providers.http.decoding import StreamedFailureError, SurrogateJoiner, UnreadableError, load
from agents.providers.openai.calls import CallCollector, maker_of
from agents.providers.openai.citations import cited_by
from agents.providers.openai.details import DETAILS, DetailCollector
from agents.thinking_tags import ThinkingSplitter

STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "context",
    "model_context_window_exceeded": "context",
    "content_filter": "refusal",
    "sensitive": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
# With these reasons, the server has failed. Gemini's compatible endpoint names a call that the model wrote wrongly, and
# that is not in the answer, "function_call_filter: MALFORMED_FUNCTION_CALL".
FAILURES = frozenset({"abort", "error", "network_error", "insufficient_system_resource", "function_call_filter"})
# The fields in which servers send reasoning. Some send the same text in both.
REASONING_FIELDS = ("reasoning_content", "reasoning")
# Stands for the field if the reasoning is between tags in the answer's text.
TAGS = "tags"
DONE = b"[DONE]"


@dataclass
class OpenPart:
    """A text or thinking part. Its deltas are collected, and joined at its end. `source` is the field, "" for text."""

    source: str
    pieces: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)


@dataclass
class StreamState:
    """The state of one stream. `tool_names` maps the names that were sent to the server to those of the tools."""

    provider: str
    model: str
    tool_names: Mapping[str, str] = field(default_factory=dict)
    part: OpenPart | None = None
    cited: list[Source] = field(default_factory=list)
    splitter: ThinkingSplitter = field(default_factory=ThinkingSplitter)
    calls: CallCollector = field(default_factory=CallCollector)
    details: DetailCollector = field(default_factory=DetailCollector)
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    refused: bool = False
    done: bool = False


def from_stream(chunk: Json, state: StreamState) -> Iterator[ProviderEvent]:
    """Map one chunk. Raise StreamedFailureError."""
    if chunk.get("error") or chunk.get("object") == "error":
        raise StreamedFailureError(chunk)
    # Some servers send several answers although the request asks for one.
    choice = next((choice for choice in chunk.get("choices") or () if not choice.get("index")), None)
    # Kimi's server sends the usage in the last choice.
    usage = chunk.get("usage") or (choice or {}).get("usage")
    if usage and isinstance(usage, dict):
        state.usage = read_usage(usage)
    if choice is None:
        return
    delta = choice.get("delta") or choice.get("message")
    if delta:
        yield from _delta(delta, state)
    if choice.get("finish_reason"):
        state.finish_reason = choice["finish_reason"]


def _delta(delta: Json, state: StreamState) -> Iterator[ProviderEvent]:
    state.details.add(delta.get(DETAILS))
    for name in REASONING_FIELDS:
        if delta.get(name):
            yield from _end_tags(state)
            yield from _take_text(delta[name], name, state)
            break
    if content := delta.get("content"):
        yield from _content(content, state)
    state.cited += cited_by(delta.get("annotations"))
    if refusal := delta.get("refusal"):
        state.refused = True
        yield from _end_tags(state)
        yield from _take_text(refusal, "", state)
    if delta.get("tool_calls") or delta.get("function_call"):
        yield from _end_tags(state)
        yield from close_part(state)
        yield from _collect(delta, state)


def _content(content: Any, state: StreamState) -> Iterator[ProviderEvent]:
    """Read content: text, or the list of typed pieces that Mistral's reasoning models send."""
    if isinstance(content, str):
        # Servers that extract calls from a model's text may leave the line breaks between the calls.
        if not state.calls or not content.isspace():
            for text, thinks in state.splitter.split(content):
                yield from _take_text(text, TAGS if thinks else "", state)
        return
    yield from _end_tags(state)
    for piece in content:
        if piece["type"] == "thinking":
            inner = piece["thinking"]
            text = inner if isinstance(inner, str) else "".join(part.get("text", "") for part in inner)
            yield from _take_text(text, "thinking", state)
        elif piece["type"] == "text":
            yield from _take_text(piece["text"], "", state)


def _end_tags(state: StreamState) -> Iterator[ProviderEvent]:
    """Add the text that could have been the beginning of a tag. Later tags are text."""
    text, thinks = state.splitter.end()
    yield from _take_text(text, TAGS if thinks else "", state)


def _take_text(text: str, source: str, state: StreamState) -> Iterator[ProviderEvent]:
    """Add text to the open part. If its source differs, close that part and open a new one."""
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
        data = {"field": part.source} if part.source in (*REASONING_FIELDS, TAGS) else {}
        yield PartDone(Thinking(text, state.provider, data))
    else:
        yield PartDone(Text(text, sources=tuple(dict.fromkeys(state.cited))))
        state.cited = []


def _collect(delta: Json, state: StreamState) -> Iterator[ProviderEvent]:
    fragments = list(delta.get("tool_calls") or ())
    if legacy := delta.get("function_call"):
        fragments.append({"index": 0, "function": legacy})
    for fragment in fragments:
        if new := state.calls.add(fragment, state.tool_names):
            yield new


def read_usage(usage: Json) -> Usage:
    """Read the token counts. Those of the prompt include cached tokens."""
    details, completion = (details_in(usage, name) for name in ("prompt_tokens_details", "completion_tokens_details"))
    cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    written = details.get("cache_write_tokens")
    output: Any = usage.get("completion_tokens")
    reasoning = completion.get("reasoning_tokens")
    rest = _rest_of_total(usage)
    only_in_total = (cached, written, (cached or 0) + (written or 0))
    # xAI and Gemini count the reasoning only in the total, and Gemini does not state it at all. It is billed as output.
    if rest and (reasoning == rest or (reasoning is None and rest not in only_in_total)):
        output, reasoning = output + rest, rest
    return Usage(usage.get("prompt_tokens"), output, cached, written, reasoning)


def _rest_of_total(usage: Json) -> int:
    """Return the tokens in the total that are counted neither for the prompt nor for the answer."""
    prompt, answer, total = (usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if type(prompt) is int and type(answer) is int and type(total) is int:
        return max(0, total - prompt - answer)
    return 0


def details_in(usage: Json, name: str) -> Json:
    """Return the details of a token count, or {}."""
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


class OpenAIReader:
    """A `decoding.Reader` of one answer."""

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
        yield from from_stream(chunk, self._state)

    def feed_whole(self, body: Json) -> Iterator[ProviderEvent]:
        """Read a completion that was not streamed. Its message is treated as one delta with the whole text."""
        if not body.get("choices") and not body.get("error"):
            raise UnreadableError(json.dumps(body)[:200])
        yield from from_stream(body, self._state)

    def finish(self) -> Iterator[ProviderEvent]:
        state = self._state
        yield from _end_tags(state)
        yield from close_part(state)
        calls = state.calls.take(state.tool_names, maker_of(state.provider, state.model), state.details.text)
        for place, call in enumerate(calls):
            yield PartDone(call, str(place))
        yield ResponseDone(_stop_reason(state, bool(calls)), state.usage)


def _stop_reason(state: StreamState, has_calls: bool) -> StopReason:
    """Return the stop reason. The reason of the server is not enough, because some send `stop` with calls, or
    `tool_calls` without any. Raise StreamedFailureError.
    """
    kind, _colon, details = (state.finish_reason or "").partition(": ")
    if kind in FAILURES:
        raise StreamedFailureError({"error": {"message": details, "type": "server_error"}})
    reason = "refusal" if state.refused else STOP_REASONS.get(kind.lower(), "end")
    if reason in {"end", "tool_use"}:
        return "tool_use" if has_calls else "end"
    return reason
