"""Cuts a stream of bytes into server-sent events, whatever the chunks' boundaries."""

from __future__ import annotations

BOM = b"\xef\xbb\xbf"
# An event this large is no event: the server is sending something else, or without end.
LARGEST_EVENT = 32 * 2**20


class SseParser:
    """Incremental parser of https://html.spec.whatwg.org/multipage/server-sent-events.html; ids and retry are ignored.

    Works on bytes, so that a character split between two chunks never matters. Each byte is looked at once.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """Return the events that the chunk completes, each as (name, data); the name is often empty.

        Raises ValueError for an event beyond LARGEST_EVENT.
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
        """Return the event that the stream's end left without its blank line, if there is one."""
        return self.feed(b"\n\n") if self._data or self._partial else []

    def _keep(self, rest: bytes) -> None:
        if not rest:
            return
        self._size += len(rest)
        if self._size > LARGEST_EVENT:
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
        if self._size > LARGEST_EVENT:
            raise ValueError("an event without end")
        self._data.append(value.removeprefix(b" "))

    def _dispatch(self, events: list[tuple[bytes, bytes]]) -> None:
        if self._data:
            events.append((self._kind, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
            self._data.clear()
        self._kind = b""
        self._size = 0

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        """Turn CRLF and CR into LF; a CR that ends the chunk counts at once, the LF that may follow is then dropped."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
