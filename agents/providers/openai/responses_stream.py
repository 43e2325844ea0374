"""Maps the events of OpenAI's Responses stream to ProviderEvents; no I/O."""

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
from agents.messages import Json, Source, Text, Thinking, ToolCall
from agents.providers.arguments import read_arguments
from agents.providers.http.decoding import StreamedFailureError, UnreadableError, load
from agents.providers.http.surrogates import SurrogateJoiner, mend
from agents.providers.openai.citations import cited_by

# Why a response is incomplete; anything else cut it short, too.
INCOMPLETE: Mapping[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
# What the API takes back of a reasoning item.
REASONING_FIELDS = ("id", "type", "summary", "content", "encrypted_content")
BETWEEN_SECTIONS = "\n\n"
NOTHING: tuple[ProviderEvent, ...] = ()


@dataclass
class OpenPart:
    """A text or reasoning that grows. `section` is the piece of the item to which the last delta belonged."""

    index: int
    reasoning: bool
    section: tuple[str, int]
    pieces: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)


@dataclass
class StreamState:
    """What must be remembered of one stream. `tool_names`: what the names that the API was given stand for.

    By their place in the output: `arguments` and `names` are those of open calls, `emitted` the items whose part is
    closed, `done` those that are complete, and `ids` the ids of complete items.
    """

    provider: str
    tool_names: Mapping[str, str] = field(default_factory=dict)
    part: OpenPart | None = None
    arguments: dict[int, list[str]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    emitted: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    ids: dict[int, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    called: bool = False
    refused: bool = False
    stop_reason: StopReason | None = None


def from_stream(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    """Map one event; types that are not known are passed over. Raises UnreadableError, StreamedFailureError."""
    handler = HANDLERS.get(event.get("type", ""))
    return handler(event, state) if handler else NOTHING


def _text(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    return _grow(event, state, ("text", event.get("content_index", 0)), reasoning=False)


def _refusal(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    state.refused = True
    return _grow(event, state, ("refusal", event.get("content_index", 0)), reasoning=False)


def _summary(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    return _grow(event, state, ("summary", event.get("summary_index", 0)), reasoning=True)


def _reasoning(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    return _grow(event, state, ("reasoning", event.get("content_index", 0)), reasoning=True)


def _grow(event: Json, state: StreamState, section: tuple[str, int], *, reasoning: bool) -> Iterator[ProviderEvent]:
    index, text = event["output_index"], event["delta"]
    part = state.part
    if part is None or part.index != index or part.reasoning != reasoning:
        yield from _close(state)
        part = state.part = OpenPart(index, reasoning, section)
    elif part.section != section:
        part.section = section
        text = BETWEEN_SECTIONS + text
    yield from _append_delta(part, part.joiner.add(text))


def _append_delta(part: OpenPart, text: str) -> Iterator[ProviderEvent]:
    if text:
        part.pieces.append(text)
        yield ReasoningDelta(text) if part.reasoning else TextDelta(text)


def _close(
    state: StreamState, data: Mapping[str, str] | None = None, cited: tuple[Source, ...] = ()
) -> Iterator[ProviderEvent]:
    """End the open part, if there is one."""
    part, state.part = state.part, None
    if part is None:
        return
    state.emitted.add(part.index)
    yield from _append_delta(part, part.joiner.end())
    text = "".join(part.pieces)
    if text or (part.reasoning and data):
        thinks = part.reasoning
        yield PartDone(Thinking(text, state.provider, data or {}) if thinks else Text(text, data or {}, sources=cited))


def _item_added(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    item, index = event["item"], event["output_index"]
    name = item.get("name") if item.get("type") == "function_call" else ""
    if name and index not in state.done:
        state.names[index] = state.tool_names.get(name, name)
        yield from _close(state)
        yield ToolCallDelta(str(index), state.names[index], "")


def _arguments(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    index, text = event["output_index"], event["delta"]
    state.arguments.setdefault(index, []).append(text)
    name = state.names.get(index)
    return (ToolCallDelta(str(index), name, text),) if name and text else NOTHING


def _item_done(event: Json, state: StreamState) -> Iterable[ProviderEvent]:
    return _complete(event["output_index"], event["item"], state)


def _complete(index: int, item: Json, state: StreamState) -> Iterator[ProviderEvent]:
    """Take a whole item: what its deltas have not emitted yet, and what has to go back with it."""
    state.ids.setdefault(index, item.get("id") or "")
    if index in state.done or index in state.emitted:
        return
    state.done.add(index)
    match item.get("type"):
        case "message":
            yield from _message(index, item, state)
        case "reasoning":
            yield from _thought(index, item, state)
        case "function_call":
            yield from _close(state)
            yield PartDone(_call(index, item, state), str(index))


def _item_id(index: int, item: Json, state: StreamState) -> dict[str, str]:
    return {"item_id": item["id"], **_after(index, state)} if item.get("id") else {}


def _after(index: int, state: StreamState) -> dict[str, str]:
    """Record which item came directly before: the API takes reasoning back only with the same item after it."""
    before = state.ids.get(index - 1)
    return {"after": before} if before else {}


def _message(index: int, item: Json, state: StreamState) -> Iterator[ProviderEvent]:
    pieces = item.get("content") or []
    if any(piece["type"] == "refusal" for piece in pieces):
        state.refused = True
    whole = BETWEEN_SECTIONS.join(piece.get("text") or piece.get("refusal") or "" for piece in pieces)
    yield from _catch_up(index, whole, state, reasoning=False)
    data = {} if state.refused else _item_id(index, item, state)
    cited = tuple(dict.fromkeys(source for piece in pieces for source in cited_by(piece.get("annotations"))))
    yield from _close(state, data | ({"phase": item["phase"]} if item.get("phase") else {}), cited)


def _thought(index: int, item: Json, state: StreamState) -> Iterator[ProviderEvent]:
    sections = item.get("summary") or item.get("content") or []
    whole = BETWEEN_SECTIONS.join(section.get("text") or "" for section in sections)
    yield from _catch_up(index, whole, state, reasoning=True)
    kept = {name: item[name] for name in REASONING_FIELDS if item.get(name) is not None}
    goes_back = bool(kept.get("encrypted_content") or kept.get("content"))
    if state.part is None and goes_back:  # nothing of it is shown
        state.part = OpenPart(index, True, ("summary", 0))
    data = {"item": mend(json.dumps(kept, ensure_ascii=False)), **_after(index, state)} if goes_back else {}
    yield from _close(state, data)


def _catch_up(index: int, whole: str, state: StreamState, *, reasoning: bool) -> Iterator[ProviderEvent]:
    """Tell what a server says at the end of an item only: all of it, or what is behind the deltas."""
    part = state.part
    if part is None or part.index != index or part.reasoning != reasoning:
        yield from _close(state)
        part = state.part = OpenPart(index, reasoning, ("", 0)) if whole else None
    if part is None:
        return
    whole, emitted = mend(whole), "".join(part.pieces)
    if len(whole) > len(emitted) and whole.startswith(emitted):
        part.joiner.end()  # the half of a character that waits is part of the rest
        yield from _append_delta(part, whole[len(emitted) :])


def _call(index: int, item: Json, state: StreamState) -> ToolCall:
    pieces = state.arguments.pop(index, [])
    raw, name = mend(item.get("arguments") or "".join(pieces)), item.get("name") or ""
    state.called = True
    call_id, data = item.get("call_id") or item.get("id") or "", _item_id(index, item, state)
    return ToolCall(call_id, state.tool_names.get(name, name) or "unknown", read_arguments(raw), raw, data)


def _ended(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    """Read the end of the response, which repeats its items."""
    response = event["response"]
    for index, item in enumerate(response.get("output") or ()):
        yield from _complete(index, item, state)
    yield from _close(state)
    if response.get("usage"):
        state.usage = read_usage(response["usage"])
    state.stop_reason = "tool_use" if state.called else "end"
    if event["type"] == "response.incomplete":
        reason = (response.get("incomplete_details") or {}).get("reason")
        state.stop_reason = INCOMPLETE.get(reason or "", "max_tokens")
    elif state.refused:
        state.stop_reason = "refusal"


def _failed(event: Json, _state: StreamState) -> Iterable[ProviderEvent]:
    response = event["response"]
    raise StreamedFailureError({"error": response.get("error") or {"message": "", "type": "server_error"}})


def _error(event: Json, _state: StreamState) -> Iterable[ProviderEvent]:
    raise StreamedFailureError(event)


HANDLERS: Mapping[str, Callable[[Json, StreamState], Iterable[ProviderEvent]]] = {
    "response.output_text.delta": _text,
    "response.refusal.delta": _refusal,
    "response.reasoning_summary_text.delta": _summary,
    "response.reasoning_text.delta": _reasoning,
    "response.function_call_arguments.delta": _arguments,
    "response.output_item.added": _item_added,
    "response.output_item.done": _item_done,
    "response.completed": _ended,
    "response.incomplete": _ended,
    "response.failed": _failed,
    "error": _error,
}
KINDS = frozenset(kind.encode() for kind in HANDLERS)


def read_usage(usage: Json) -> Usage:
    """Read the token counts: cached ones are part of the input's, reasoning ones of the output's."""
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return Usage(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        read.get("cached_tokens"),
        read.get("cache_write_tokens"),
        written.get("reasoning_tokens"),
    )


class ResponsesReader:
    """Reads one answer; see decoding.Reader."""

    def __init__(self, state: StreamState) -> None:
        self._state = state

    @property
    def ended(self) -> bool:
        return self._state.stop_reason is not None

    @property
    def complete(self) -> bool:
        return self._state.stop_reason is not None

    def feed(self, kind: bytes, data: bytes) -> Iterable[ProviderEvent]:
        # The other events of this API repeat, whole, what the deltas have emitted: reading them is half of the work.
        if (kind.startswith(b"response.") and kind not in KINDS) or data == b"[DONE]":
            return NOTHING
        event = load(data)
        try:
            return tuple(from_stream(event, self._state))
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise UnreadableError(data[:200].decode(errors="replace")) from None

    def feed_whole(self, body: Json) -> Iterator[ProviderEvent]:
        """Read a response as the end of the stream that it would have been."""
        if not isinstance(body.get("output"), list):
            raise StreamedFailureError(body) if body.get("error") else UnreadableError(json.dumps(body)[:200])
        kind = {"failed": "response.failed", "incomplete": "response.incomplete"}.get(body.get("status", ""))
        yield from from_stream({"type": kind or "response.completed", "response": body}, self._state)

    def finish(self) -> Iterable[ProviderEvent]:
        return (ResponseDone(self._state.stop_reason or "end", self._state.usage),)
