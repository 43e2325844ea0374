"""The mapping of OpenAI's Responses stream to ProviderEvents. No I/O."""

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
from agents.providers.http.decoding import StreamedFailureError, SurrogateJoiner, UnreadableError, load, repair
from agents.providers.openai.citations import cited_by
from agents.providers.openai.stream import details_in

# By the reason why a response is incomplete. All other reasons count as "max_tokens".
INCOMPLETE: Mapping[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
# The fields of a reasoning item that the API accepts in a request.
REASONING_FIELDS = ("id", "type", "summary", "content", "encrypted_content")
BETWEEN_SECTIONS = "\n\n"
NOTHING: tuple[ProviderEvent, ...] = ()


@dataclass
class OpenPart:
    """A text or reasoning that is not complete. `section` is the piece of the item to which the last delta belonged."""

    index: int
    reasoning: bool
    section: tuple[str, int]
    pieces: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)


@dataclass
class StreamState:
    """The state of one stream. `tool_names` maps the names that were sent to the API to those of the tools.

    The other fields use the item's index in the output. `arguments` and `names` are those of open calls, `emitted` has
    the items whose part is closed, `done` the complete items, and `ids` the ids of complete items.
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
    """Map one event. Events of unknown types are ignored. Raise UnreadableError or StreamedFailureError."""
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
    """Yield the events of a complete item: the text that its deltas lacked, and its end with the data of the item."""
    state.ids.setdefault(index, _id_of(item))
    if index in state.done or index in state.emitted:
        return
    state.done.add(index)
    match item.get("type"):
        case "message":
            yield from _message(index, item, state)
        case "reasoning":
            yield from _reasoning_item(index, item, state)
        case "function_call":
            yield from _close(state)
            yield PartDone(_call(index, item, state), str(index))


def _item_id(index: int, item: Json, state: StreamState) -> dict[str, str]:
    item_id = _id_of(item)
    return {"item_id": item_id, **_after(index, state)} if item_id else {}


def _id_of(item: Json) -> str:
    """Return the id of an item, or "" if it has none that could be sent back."""
    item_id = item.get("id")
    return item_id if isinstance(item_id, str) else ""


def _after(index: int, state: StreamState) -> dict[str, str]:
    """Return the id of the item directly before, because the API accepts reasoning only before the same item."""
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


def _reasoning_item(index: int, item: Json, state: StreamState) -> Iterator[ProviderEvent]:
    sections = item.get("summary") or item.get("content") or []
    whole = BETWEEN_SECTIONS.join(section.get("text") or "" for section in sections)
    yield from _catch_up(index, whole, state, reasoning=True)
    kept = {name: item[name] for name in REASONING_FIELDS if item.get(name) is not None}
    goes_back = bool(kept.get("encrypted_content") or kept.get("content"))
    if state.part is None and goes_back:  # hidden reasoning
        state.part = OpenPart(index, True, ("summary", 0))
    data = {"item": repair(json.dumps(kept, ensure_ascii=False)), **_after(index, state)} if goes_back else {}
    yield from _close(state, data)


def _catch_up(index: int, whole: str, state: StreamState, *, reasoning: bool) -> Iterator[ProviderEvent]:
    """Yield the text that a server sends only at the end of an item: the whole text, or the rest after the deltas."""
    part = state.part
    if part is None or part.index != index or part.reasoning != reasoning:
        yield from _close(state)
        part = state.part = OpenPart(index, reasoning, ("", 0)) if whole else None
    if part is None:
        return
    whole, emitted = repair(whole), "".join(part.pieces)
    if len(whole) > len(emitted) and whole.startswith(emitted):
        part.joiner.end()  # drop the waiting half of a character, because the rest contains it
        yield from _append_delta(part, whole[len(emitted) :])


def _call(index: int, item: Json, state: StreamState) -> ToolCall:
    pieces = state.arguments.pop(index, [])
    raw, name = repair(item.get("arguments") or "".join(pieces)), item.get("name") or ""
    state.called = True
    call_id, data = item.get("call_id") or _id_of(item), _item_id(index, item, state)
    return ToolCall(call_id, state.tool_names.get(name, name) or "unknown", read_arguments(raw), raw, data)


def _ended(event: Json, state: StreamState) -> Iterator[ProviderEvent]:
    """Yield the last events of the response. Its end repeats all items, so missing ones are added."""
    response = event["response"]
    for index, item in enumerate(response.get("output") or ()):
        yield from _complete(index, item, state)
    yield from _close(state)
    if (usage := response.get("usage")) and isinstance(usage, dict):
        state.usage = read_usage(usage)
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
    """Read the token counts. The input includes cached tokens, and the output includes reasoning."""
    read, written = (details_in(usage, name) for name in ("input_tokens_details", "output_tokens_details"))
    return Usage(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        read.get("cached_tokens"),
        read.get("cache_write_tokens"),
        written.get("reasoning_tokens"),
    )


class ResponsesReader:
    """A `decoding.Reader` of one answer."""

    def __init__(self, state: StreamState) -> None:
        self._state = state

    @property
    def ended(self) -> bool:
        return self._state.stop_reason is not None

    @property
    def complete(self) -> bool:
        return self._state.stop_reason is not None

    def feed(self, kind: bytes, data: bytes) -> Iterator[ProviderEvent]:
        # Skip the other events of this API. They only repeat the text of the deltas, and reading them doubles the work.
        if not ((kind.startswith(b"response.") and kind not in KINDS) or data == b"[DONE]"):
            yield from tuple(from_stream(load(data), self._state))  # nothing of an event that cannot be read

    def feed_whole(self, body: Json) -> Iterator[ProviderEvent]:
        """Read a response that was not streamed, as if it were the last event of a stream."""
        if not isinstance(body.get("output"), list):
            raise StreamedFailureError(body) if body.get("error") else UnreadableError(json.dumps(body)[:200])
        kind = {"failed": "response.failed", "incomplete": "response.incomplete"}.get(body.get("status", ""))
        yield from from_stream({"type": kind or "response.completed", "response": body}, self._state)

    def finish(self) -> Iterable[ProviderEvent]:
        return (ResponseDone(self._state.stop_reason or "end", self._state.usage),)
