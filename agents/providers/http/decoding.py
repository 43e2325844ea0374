"""Decode the bytes of a response: server-sent events, or one JSON document, which some servers send instead.

JavaScript servers may cut a stream between the two code units of an emoji, so split characters are repaired.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Protocol

from pydantic_core import from_json

from agents.events import PartDone, ProviderEvent, ReasoningDelta, TextDelta, ToolCallDelta
from agents.messages import Json, Text, Thinking, ToolCall

# Fields with a piece of a part. A character may be split between two pieces; the readers join its halves.
PIECES = frozenset(
    {"text", "thinking", "partial_json", "content", "reasoning_content", "reasoning", "refusal", "arguments", "delta"}
)
BOM = b"\xef\xbb\xbf"
# In bytes. A larger event or document is treated as invalid, because the server sends another format or never ends it.
MAX_EVENT_SIZE = 32 * 2**20
LONE = "\ufffd"


class UnreadableError(Exception):
    """The response is not in the vendor's format. The message quotes its beginning."""


class StreamedFailureError(Exception):
    """The server reported a failure inside a stream. `body` is the JSON value that it sent."""

    def __init__(self, body: object) -> None:
        super().__init__("the server reported a failure")
        self.body = body


class TruncatedError(Exception):
    """The answer stopped before its end."""


class Reader(Protocol):
    """A vendor's mapping of one answer. The parts of the answer are fed to it in order."""

    @property
    def ended(self) -> bool:
        """Whether the whole answer has arrived, so that nothing of it is lost if the connection breaks now."""

    @property
    def complete(self) -> bool:
        """Whether everything has arrived that is needed, including the usage."""

    def feed(self, kind: bytes, data: bytes) -> Iterable[ProviderEvent]:
        """Read one server-sent event. Raise UnreadableError or StreamedFailureError."""

    def feed_whole(self, body: Json) -> Iterable[ProviderEvent]:
        """Read an answer that is not streamed. Raise UnreadableError or StreamedFailureError."""

    def finish(self) -> Iterable[ProviderEvent]:
        """Return the events that close open parts. The last event is ResponseDone."""


class SseParser:
    """A parser of https://html.spec.whatwg.org/multipage/server-sent-events.html. The fields id and retry are ignored.

    It works on bytes, so that characters may be split between two chunks. Each byte is read once.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """Return the events that the chunk completes, each as (name, data). The name is often empty.

        Raise ValueError for an event of more than MAX_EVENT_SIZE bytes.
        """
        if not chunk:
            return []
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_plain_newlines(chunk)
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        if self._partial:
            chunk = b"".join([*self._partial, chunk])
            self._partial.clear()
        *lines, rest = chunk.split(b"\n")
        events: list[tuple[bytes, bytes]] = []
        for line in lines:
            self._take(line, events)
        self._keep(rest)
        return events

    def flush(self) -> list[tuple[bytes, bytes]]:
        """Return the last event of a stream that ended without a blank line, in a list, or []."""
        return self.feed(b"\n\n") if self._data or self._partial else []

    def _keep(self, rest: bytes) -> None:
        if not rest:
            return
        self._size += len(rest)
        if self._size > MAX_EVENT_SIZE:
            raise ValueError("an event without end")
        self._partial.append(rest)

    def _take(self, line: bytes, events: list[tuple[bytes, bytes]]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(BOM)
        if line.startswith(b"data:"):
            self._add(line[5:])
        elif not line:
            self._dispatch(events)
        elif line.startswith(b"event:"):
            self._kind = line[6:].removeprefix(b" ")
        elif line == b"data":
            self._add(b"")
        elif line == b"event":
            self._kind = b""

    def _add(self, value: bytes) -> None:
        self._size += len(value)
        if self._size > MAX_EVENT_SIZE:
            raise ValueError("an event without end")
        self._data.append(value.removeprefix(b" "))

    def _dispatch(self, events: list[tuple[bytes, bytes]]) -> None:
        if self._data:
            events.append((self._kind, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
            self._data.clear()
        self._kind = b""
        self._size = 0

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        """Replace CRLF and CR by LF. If the chunk ends with CR, drop an LF at the beginning of the next chunk."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class StreamDecoder:
    """A decoder for server-sent events, which all requests ask for."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._parser = SseParser()
        self._opening = b""
        self._heard = False

    def feed(self, chunk: bytes) -> Iterator[ProviderEvent]:
        if not self._heard:
            self._opening = (self._opening + chunk)[:200]
        try:
            events = self._parser.feed(chunk)
        except ValueError as error:
            raise UnreadableError(str(error)) from None
        for kind, data in events:
            if self._reader.complete:  # no part of the answer, but it may have arrived together with the end
                return
            self._heard = True
            yield from _check_events(self._reader.feed(kind, data), data)

    def finish(self) -> Iterator[ProviderEvent]:
        """Yield the last events. Raise TruncatedError, or UnreadableError if no event has arrived."""
        yield from self._last_event()
        if self._reader.ended:
            yield from _check_events(self._reader.finish(), self._opening)
        elif self._heard or not self._opening:
            raise TruncatedError
        else:
            raise UnreadableError(self._opening.decode(errors="replace"))

    def _last_event(self) -> Iterator[ProviderEvent]:
        """Read a last event without its blank line, as some servers send it. Raise TruncatedError."""
        for kind, data in () if self._reader.complete else self._parser.flush():
            try:
                yield from _check_events(self._reader.feed(kind, data), data)
            except UnreadableError:
                raise TruncatedError from None


class DocumentDecoder:
    """A decoder for one JSON document, from a server that does not stream."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._chunks: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[ProviderEvent]:
        self._size += len(chunk)
        if self._size > MAX_EVENT_SIZE:
            raise UnreadableError("a document without end")
        self._chunks.append(chunk)
        return iter(())

    def finish(self) -> Iterator[ProviderEvent]:
        body = b"".join(self._chunks)
        yield from _check_events(self._reader.feed_whole(load(body)), body)
        yield from _check_events(self._reader.finish(), body)


def _check_events(events: Iterable[ProviderEvent], source: bytes) -> Iterator[ProviderEvent]:
    """Yield the events of a part of an answer. Raise UnreadableError if a value of it has the wrong type.

    A vendor's mapping trusts the types of names, ids and texts, so it may fail, or pass on what cannot be stored.
    """
    try:
        for event in events:
            if not _has_texts(event):
                raise TypeError
            yield event
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise UnreadableError(source[:200].decode(errors="replace")) from None


def _has_texts(event: ProviderEvent) -> bool:
    """Return whether the names, ids and texts of an event are strings."""
    match event:
        case TextDelta(text) | ReasoningDelta(text):
            return isinstance(text, str)
        case ToolCallDelta(name=name, text=text):
            return isinstance(name, str) and isinstance(text, str)
        case PartDone(ToolCall(id=call_id, name=name, data=data)):
            return all(isinstance(value, str) for value in (call_id, name, *data.values()))
        case PartDone(Text(text=text, data=data) | Thinking(text=text, data=data)):
            return all(isinstance(value, str) for value in (text, *data.values()))
        case _:
            return True


def load(data: bytes) -> Json:
    """Read a JSON object. Raise UnreadableError."""
    try:
        value = from_json(data)
    except ValueError:
        value = _load_leniently(data)
    if not isinstance(value, dict):
        raise UnreadableError(data[:200].decode(errors="replace"))
    return value


def _load_leniently(data: bytes) -> object:
    """Read JSON that contains half a surrogate pair, as JavaScript servers send it. Raise UnreadableError."""
    try:
        return _repaired(json.loads(data))
    except (ValueError, RecursionError):
        raise UnreadableError(data[:200].decode(errors="replace")) from None


def _repaired(value: object, name: str = "") -> object:
    if isinstance(value, str):
        return value if name in PIECES else repair(value)
    if isinstance(value, list):
        return [_repaired(item, name) for item in value]
    if isinstance(value, dict):
        return {repair(key): _repaired(item, key) for key, item in value.items()}
    return value


def repair(text: str) -> str:
    """Join adjacent halves of characters. Replace a half without its other half by U+FFFD (MSG-12)."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class SurrogateJoiner:
    """A repair of the pieces of one part, in order. Half a character at the end of a piece waits for the next piece."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return the text that the piece completes, or ""."""
        if not self._half and _is_sound(piece):
            return piece
        text = self._half + piece
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return repair(text.removesuffix(self._half))

    def end(self) -> str:
        """Return the rest of the text at the end of the stream: U+FFFD if half a character is left, else ""."""
        half, self._half = self._half, ""
        return LONE if half else ""


def _is_sound(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
