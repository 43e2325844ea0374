"""Decode the bytes of a response: a stream of events, or the one JSON document that some servers send instead."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Protocol

from pydantic_core import from_json

from agents.events import ProviderEvent
from agents.messages import Json
from agents.providers.http.sse import SseParser
from agents.providers.http.surrogates import mend

# Fields that hold a piece of a part. A character may be split between two pieces, which the readers join.
PIECES = frozenset(
    {"text", "thinking", "partial_json", "content", "reasoning_content", "reasoning", "refusal", "arguments", "delta"}
)


class UnreadableError(Exception):
    """The response is not in the vendor's format. The message quotes its beginning."""


class StreamedFailureError(Exception):
    """The server reported a failure inside a stream; `body` is what it sent."""

    def __init__(self, body: object) -> None:
        super().__init__("the server reported a failure")
        self.body = body


class TruncatedError(Exception):
    """The answer stopped before its end."""


class Reader(Protocol):
    """A vendor's mapping of one answer, fed with its parts in order."""

    @property
    def ended(self) -> bool:
        """Whether the answer is whole, so that a connection that breaks now loses nothing of it."""

    @property
    def complete(self) -> bool:
        """Whether nothing more follows that is needed, such as usage."""

    def feed(self, kind: bytes, data: bytes) -> Iterable[ProviderEvent]:
        """Read one server-sent event. Raises UnreadableError, StreamedFailureError."""

    def feed_whole(self, body: Json) -> Iterable[ProviderEvent]:
        """Read an answer that is not streamed. Raises UnreadableError, StreamedFailureError."""

    def finish(self) -> Iterable[ProviderEvent]:
        """Close what is open; ResponseDone comes last."""


class StreamDecoder:
    """Decodes server-sent events, which requests ask for."""

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
            self._heard = True
            yield from self._reader.feed(kind, data)

    def finish(self) -> Iterator[ProviderEvent]:
        """Yield the last events. Raises TruncatedError, or UnreadableError if no event has come."""
        yield from self._last_event()
        if self._reader.ended:
            yield from self._reader.finish()
        elif self._heard or not self._opening:
            raise TruncatedError
        else:
            raise UnreadableError(self._opening.decode(errors="replace"))

    def _last_event(self) -> Iterator[ProviderEvent]:
        """Yield what an event without its blank line holds, with which some servers end. Raises TruncatedError."""
        for kind, data in () if self._reader.complete else self._parser.flush():
            try:
                yield from self._reader.feed(kind, data)
            except UnreadableError:
                raise TruncatedError from None


class DocumentDecoder:
    """Decodes one JSON document, from a server that does not stream."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[ProviderEvent]:
        self._chunks.append(chunk)
        return iter(())

    def finish(self) -> Iterator[ProviderEvent]:
        yield from self._reader.feed_whole(load(b"".join(self._chunks)))
        yield from self._reader.finish()


def load(data: bytes) -> Json:
    """Read a JSON object. Raises UnreadableError."""
    try:
        value = from_json(data)
    except ValueError:
        value = _load_leniently(data)
    if not isinstance(value, dict):
        raise UnreadableError(data[:200].decode(errors="replace"))
    return value


def _load_leniently(data: bytes) -> object:
    """Read JSON with half a surrogate pair in it, as JavaScript servers send it. Raises UnreadableError."""
    try:
        return _mended(json.loads(data))
    except (ValueError, RecursionError):
        raise UnreadableError(data[:200].decode(errors="replace")) from None


def _mended(value: object, name: str = "") -> object:
    if isinstance(value, str):
        return value if name in PIECES else mend(value)
    if isinstance(value, list):
        return [_mended(item, name) for item in value]
    if isinstance(value, dict):
        return {mend(key): _mended(item, key) for key, item in value.items()}
    return value
