"""Turns a response's bytes into a vendor's events: as a stream, or as the one JSON document that some servers send."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Protocol

from pydantic_core import from_json

from agents.events import ProviderEvent
from agents.messages import Json
from agents.providers.http.sse import SseParser
from agents.providers.http.surrogates import mend

# Parts come in pieces under these names, and the other half of a character with the next one: the readers mend them.
PIECES = frozenset(
    {"text", "thinking", "partial_json", "content", "reasoning_content", "reasoning", "refusal", "arguments", "delta"}
)


class UnreadableError(Exception):
    """What came is not the vendor's format; the text shows it."""


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
        """The answer is whole: a connection that breaks now has broken nothing."""

    @property
    def complete(self) -> bool:
        """Nothing more comes that matters."""

    def feed(self, kind: bytes, data: bytes) -> Iterable[ProviderEvent]:
        """Read one server-sent event. Raises UnreadableError, StreamedFailureError."""

    def feed_whole(self, body: Json) -> Iterable[ProviderEvent]:
        """Read an answer that is not streamed. Raises UnreadableError, StreamedFailureError."""

    def finish(self) -> Iterable[ProviderEvent]:
        """Close what is open; ResponseDone comes last."""


class StreamDecoder:
    """Server-sent events, as asked for."""

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
        """Say what the end of the bytes means. Raises TruncatedError, UnreadableError."""
        yield from self._last_words()
        if self._reader.ended:
            yield from self._reader.finish()
        elif self._heard or not self._opening:
            raise TruncatedError
        else:
            raise UnreadableError(self._opening.decode(errors="replace"))

    def _last_words(self) -> Iterator[ProviderEvent]:
        """Some servers end without the last blank line; half an event is no event."""
        for kind, data in () if self._reader.complete else self._parser.flush():
            try:
                yield from self._reader.feed(kind, data)
            except UnreadableError:
                raise TruncatedError from None


class DocumentDecoder:
    """One JSON document, from a server that does not stream."""

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
    """Read JSON with half a surrogate pair in it, as JavaScript servers send it; what nests without end is no JSON."""
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
