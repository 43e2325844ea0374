"""A streaming message in one web process."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chat.bus.events import TextAppended
from chat.db import Threads
from chat.live.streaming_message import StreamingMessage


@given(st.lists(st.text(max_size=5), max_size=8), st.data())
def test_text_after_the_known_part(parts: list[str], data: st.DataObject) -> None:
    """LIVE-03: `text_from` returns the text after any offset, whatever the pieces, and whether or not the text was read
    before."""
    streaming = StreamingMessage("1", Threads(1, "unused"))
    streaming.update("")
    for part in parts:
        streaming.receive(TextAppended("1", streaming.length, part))
        if data.draw(st.booleans()):
            assert len(streaming.text) == streaming.length
    text = "".join(parts)
    known = data.draw(st.integers(0, len(text)))
    assert streaming.text_from(known) == text[known:]
    assert streaming.text == text
