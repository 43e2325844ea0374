"""Tests of the parser for server-sent events."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.http import decoding
from agents.providers.http.decoding import DocumentDecoder, SseParser, UnreadableError
from agents.providers.openai.stream import OpenAIReader, StreamState

LINES = st.one_of(
    st.sampled_from(
        ["", "", "data", "data:", "data: ", "data:  two", "event: ping", "event:x", "event", ": comment", ":"]
    ),
    st.sampled_from(["id: 7", "retry: 10", "nonsense", "dat: a", "data : b", "\ufeffdata: late bom"]),
    st.text('aé漢😀{}":, ', max_size=12).map(lambda text: f"data: {text}"),
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=25)


def reference(text: str) -> list[tuple[str, str]]:
    """Parse a whole text step by step as in the specification."""
    events, kind, data = [], "", list[str]()
    for line in re.split("\r\n|\n|\r", text.removeprefix("\ufeff"))[:-1]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append((kind, "\n".join(data)))
            kind, data = "", []
        elif field == "data":
            data.append(value)
        elif field == "event":
            kind = value
    return events


def parse(chunks: list[bytes]) -> list[tuple[str, str]]:
    parser = SseParser()
    return [(kind.decode(), data.decode()) for chunk in chunks for kind, data in parser.feed(chunk)]


@given(stream=STREAMS, bom=st.booleans(), data=st.data())
def test_events_are_the_same_whatever_the_chunks(stream: list[tuple[str, str]], bom: bool, data: st.DataObject) -> None:
    """RUN-02: the events are those of the specification, even if chunks end inside lines or characters."""
    text = ("\ufeff" if bom else "") + "".join(line + end for line, end in stream)
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=30)))
    chunks = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert parse(chunks) == reference(text)


def test_every_single_byte_may_be_a_chunk() -> None:
    raw = "event: né\r\ndata: 漢\r\ndata: 😀\r\n\r\ndata: b\r\rdata: c\n\n".encode()
    assert parse([bytes([byte]) for byte in raw]) == [("né", "漢\n😀"), ("", "b"), ("", "c")]


def test_last_event_without_blank_line_is_given_at_the_end() -> None:
    parser = SseParser()
    assert parser.feed(b"data: [DONE]") == []
    assert parser.flush() == [(b"", b"[DONE]")]
    assert parser.flush() == []


def test_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_EVENT_SIZE", 100)
    parser = SseParser()
    parser.feed(b"data: " + b"x" * 80)
    with pytest.raises(ValueError, match="without end"):
        parser.feed(b"x" * 80)


def test_event_of_endless_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_EVENT_SIZE", 100)
    parser = SseParser()
    with pytest.raises(ValueError, match="without end"):
        parser.feed(b"data: 12345678901234567890\n" * 10)


def test_document_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not stream can compress a document of any size into some bytes."""
    monkeypatch.setattr(decoding, "MAX_EVENT_SIZE", 100)
    decoder = DocumentDecoder(OpenAIReader(StreamState("wire", "wire-large")))
    assert list(decoder.feed(b"x" * 80)) == []
    with pytest.raises(UnreadableError, match="without end"):
        decoder.feed(b"x" * 80)
