"""A text that grows, as one web process knows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chat.live.growing import Growing


@given(st.lists(st.text(max_size=5), max_size=8), st.data())
def test_what_is_new_follows_what_is_known(parts: list[str], data: st.DataObject) -> None:
    """LIVE-03: whatever pieces it came in, and whether it has been read before."""
    growing = Growing("1", "", lambda frame: None)
    for part in parts:
        growing.add(growing.length, part)
        if data.draw(st.booleans()):
            assert len(growing.text) == growing.length
    text = "".join(parts)
    known = data.draw(st.integers(0, len(text)))
    assert growing.text_from(known) == text[known:]
    assert growing.text == text
