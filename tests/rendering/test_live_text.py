"""Frames and snapshots of one streaming message, applied as in a browser."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.rendering.markdown import render
from chat.rendering.markdown.blocks import normalize
from chat.rendering.markdown.live_text import LiveText
from tests.rendering.documents import ANSWER, TRAPS, pieces
from tests.support.effort import cases
from tests.support.page_client import expanded

patient = settings(deadline=None, max_examples=cases(200))


class Viewer:
    """The page's side of the protocol: `n` reveals gaps, and `keep` counts UTF-16 units."""

    def __init__(self, *, reads_short: bool = False) -> None:
        self.reads_short = reads_short
        self.n = self.rev = 0
        self.blocks: list[str] = []
        self.tail = ""
        self.ended = False

    def apply_delta(self, live: LiveText, frame: dict[str, Any]) -> bool:
        """Apply a frame to the text, in its full or its short form."""
        if not self.reads_short or frame["op"] == "snap":
            return self.apply(frame)
        end, n, *rest = live.short
        assert live.id.endswith(end)
        assert n == frame["n"]
        if n != self.n + 1:
            return bool(n <= self.n)
        delta = expanded(self.tail, *rest)
        self.tail = ""
        return self.apply({"op": "delta", "n": n, **delta})

    def apply(self, frame: dict[str, Any]) -> bool:
        """Apply a frame; return False if an earlier one is missing."""
        if frame["op"] == "snap":
            del self.blocks[frame["from"] :]
            self.rev, self.tail = frame["rev"], frame["tail"]
        elif frame["n"] != self.n + 1:
            return bool(frame["n"] <= self.n)
        self.n = frame["n"]
        self.blocks += frame.get("blocks", [])
        for index, html in frame.get("replace", []):
            self.blocks[index], self.rev = html, self.rev + 1
        if frame["op"] == "delta":
            self.tail = self._kept(frame.get("keep", 0)) + frame.get("tail", "")
        self.ended = self.ended or frame.get("end") == 1
        return True

    def _kept(self, units: int) -> str:
        encoded = self.tail.encode("utf-16-le")
        assert units * 2 <= len(encoded)
        return encoded[: units * 2].decode("utf-16-le")

    def state(self) -> tuple[int, int, list[str], str, bool]:
        return self.n, self.rev, self.blocks, self.tail, self.ended


def page(text: str) -> list[str]:
    return list(render.draw_all(normalize(text)))


@patient
@given(pieces(), st.integers(0, 10**9).map(Random))
def test_viewers_joining_anywhere_see_the_page(cut: list[str], chance: Random) -> None:
    """LIVE-01, LIVE-02: a viewer from the start, the middle or the end, with lost frames, has the same as the page."""
    live, viewers = LiveText("m_1"), [Viewer(), Viewer(reads_short=True)]
    for piece in cut:
        live.append(piece)
        frame = live.frame() if chance.random() < 0.5 else None
        for viewer in viewers:
            lost = chance.random() < 0.2
            if frame is not None and not lost and not viewer.apply_delta(live, frame):
                viewer.apply(live.snapshot(len(viewer.blocks), viewer.rev))
        if len(viewers) < 4 and chance.random() < 0.1:
            viewers.append(late := Viewer(reads_short=chance.random() < 0.5))
            late.apply(live.snapshot())
    last = live.frame(end=True)
    assert last is not None
    viewers.append(Viewer())
    for viewer in viewers:
        if not viewer.apply_delta(live, last):
            viewer.apply(live.snapshot(len(viewer.blocks), viewer.rev))
        assert viewer.state() == (last["n"], viewers[0].rev, page("".join(cut)), "", True)


@pytest.mark.parametrize("text", TRAPS)
@pytest.mark.parametrize("size", [1, 7])
def test_frames_of_a_trap_fold_to_the_page(text: str, size: int) -> None:
    """LIVE-01: the frames of every difficult text, in small pieces, give the page's HTML."""
    live, viewer, other = LiveText("m_1"), Viewer(), Viewer(reads_short=True)
    for start in range(0, len(text), size):
        live.append(text[start : start + size])
        frame = live.frame()
        assert frame is None or viewer.apply(frame)
        assert frame is None or other.apply_delta(live, frame)
        assert viewer.tail == other.tail == live.snapshot()["tail"]
    viewer.apply(live.frame(end=True) or {})
    assert viewer.blocks == page(text)


def test_frame_holds_only_what_changed() -> None:
    """LIVE-02: the wire carries new blocks and the changed end; empty keys are left out."""
    live = LiveText("m_1")
    live.append("Hello 😀 wor")
    assert live.frame() == {"op": "delta", "id": "m_1", "n": 1, "tail": "<p>Hello 😀 wor</p>"}
    live.append("ld")
    assert live.frame() == {"op": "delta", "id": "m_1", "n": 2, "keep": 15, "tail": "ld</p>"}
    live.append(".\n\nB")
    frame = {"op": "delta", "id": "m_1", "n": 3, "blocks": ["<p>Hello 😀 world.</p>"], "keep": 3, "tail": "B</p>"}
    assert live.frame() == frame
    assert live.frame(end=True) == {"op": "delta", "id": "m_1", "n": 4, "blocks": ["<p>B</p>"], "end": 1}


def test_frame_without_change_is_none() -> None:
    """LIVE-02: no frame without a change, and none after the end."""
    live = LiveText("m_1")
    assert live.frame() is None
    live.append("a")
    live.frame()
    live.append(" ")
    assert live.frame() is None
    live.frame(end=True)
    assert live.frame() is None
    assert live.frame(end=True) is None


def test_snapshot_sends_only_missing_blocks() -> None:
    """LIVE-02: a viewer with a gap gets the missing blocks, and all blocks if one was replaced."""
    live = LiveText("m_1")
    live.append("a [b]\n\nc\n\nd\n\n[e]: https://f\n\ng")
    live.frame()
    snap = {"op": "snap", "id": "m_1", "n": 1, "rev": 0}
    assert live.snapshot(2, 0) == {**snap, "from": 2, "blocks": ["<p>d</p>"], "tail": "<p>g</p>"}
    assert live.snapshot(9, 0)["from"] == 0
    live.append("\n\n[b]: https://h\n\ni\n\nj")
    live.frame()
    late = live.snapshot(2, 0)
    assert (late["rev"], late["from"], len(late["blocks"])) == (1, 0, 5)
    assert live.snapshot(2, 1)["from"] == 2


def test_snapshot_waits_for_the_frame_of_what_is_not_drawn() -> None:
    """LIVE-02: a snapshot is the state that the next frame follows."""
    live, viewer = LiveText("m_1"), Viewer()
    live.append("a")
    live.frame()
    live.append("b")
    viewer.apply(live.snapshot())
    assert viewer.tail == "<p>a</p>"
    assert viewer.apply(live.frame() or {})
    assert viewer.tail == "<p>ab</p>"


def test_length_counts_code_points_at_once() -> None:
    """LIVE-02: the length that offsets are compared with includes text that is not drawn yet."""
    live = LiveText("m_1")
    live.append("a😀")
    live.append("b")
    assert live.length == 3


def test_end_freezes_everything() -> None:
    """LIVE-01: after the last frame the tail is empty and a late joiner gets the page."""
    live = LiveText("m_1")
    live.append(ANSWER)
    live.frame(end=True)
    snap = {"op": "snap", "id": "m_1", "n": 1, "rev": live.snapshot()["rev"], "from": 0}
    assert live.snapshot() == {**snap, "blocks": page(ANSWER), "tail": "", "end": 1}


def test_page_after_the_stream_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: a page load after the stream uses its blocks."""
    live = LiveText("m_1")
    live.append("only here: " + ANSWER)
    live.frame(end=True)
    monkeypatch.setattr(render, "draw_all", None)
    assert list(render.blocks("only here: " + ANSWER)) == live.snapshot()["blocks"]


def test_frames_tell_what_they_cost() -> None:
    """LIVE-02: the interval follows the cost of frames, but not that of a single expensive one."""
    live = LiveText("m_1")
    live.append("| a |\n|---|\n" + "| b |\n" * 200)
    live.frame()
    assert live.last_cost == 0
    live.append("| b |\n" * 200)
    live.frame()
    assert live.last_cost > 0


def test_short_frame_holds_only_what_is_new() -> None:
    """LIVE-02: a short frame contains neither the closing tags behind new text nor the text of the former tail."""
    live = LiveText("m_abcdef")
    for text in ("Hello 😀 wor", "ld", "."):
        live.append(text)
        live.frame()
    assert live.short == ["bcdef", 3, 4, 0, "."]
    live.append("\n\nB")
    live.frame()
    assert live.short == ["bcdef", 4, 4, 15, "B", [[22, 0, ""]], [], 0]
    live.frame(end=True)
    assert live.short == ["bcdef", 5, 0, 8, "", ["<p>B</p>"], [], 1]
