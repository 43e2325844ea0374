"""The difference between two texts, word by word. The time is limited for texts of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, islice
from typing import Literal

# Texts are compared by lines, then changed lines by sentences, then changed sentences by words. In scripts without
# spaces, each letter is a word.
_LETTER = r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]"
_LEVELS = (
    re.compile(r"[^\n]*\n|[^\n]+"),
    re.compile(r"[^.!?。！？\n]*[.!?。！？\n]+\s*|[^.!?。！？\n]+"),
    re.compile(rf"{_LETTER}+|\n|[^\S\n]+|.", re.DOTALL),
)
# The most parts of one text, and the most pairs of parts, that one call compares. Texts beyond these count as one
# change. A call takes at most 0.7 s.
MAX_PARTS = 100_000
MAX_PAIRS = 4_000_000
# The characters that are shown of unchanged text beside a change, and of a change. Then the number of pieces shown.
AROUND = 100
MAX_LENGTH = 2_000
MAX_PIECES = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A part that is in both texts (same), only in the first (gone) or only in the second (new).

    `left_out` is the number of characters between `text` and `end` that are not shown.
    """

    kind: Literal["same", "gone", "new"]
    text: str
    left_out: int = 0
    end: str = ""

    @property
    def shown(self) -> str:
        """The text. If it is a change of line breaks only, these are marked."""
        return self.text if self.kind == "same" or self.text.strip() else self.text.replace("\n", "⏎\n")


def difference(before: str, after: str) -> list[Piece]:
    """Compare two texts. Joined, the same and gone pieces are the first text, the same and new pieces the second."""
    return list(_pieces(_Comparison().changes(before, after)))


def pieces_for_display(before: str, after: str) -> list[Piece]:
    """Compare two texts for display.

    Shorten long pieces, and replace the pieces after the first 200 by their length.
    """
    pieces = difference(before, after)
    kept = [_shorten(piece, number, len(pieces)) for number, piece in enumerate(pieces[:MAX_PIECES])]
    rest = sum(len(piece.text) for piece in pieces[MAX_PIECES:])
    return [*kept, Piece("same", "", rest)] if rest else kept


class _Comparison:
    """Compares two texts within one budget of pairs."""

    def __init__(self) -> None:
        self._pairs = MAX_PAIRS

    def changes(self, before: str, after: str, level: int = 0) -> Iterator[tuple[str, str]]:
        """Yield consecutive stretches of the texts, each as a pair of its old and new form."""
        if not before or not after or level == len(_LEVELS):
            yield before, after
            return
        one, other = (
            [part.group() for part in islice(_LEVELS[level].finditer(text), MAX_PARTS + 1)] for text in (before, after)
        )
        if max(len(one), len(other)) > MAX_PARTS:
            yield before, after
            return
        head = _count_same(one, other)
        tail = _count_same(one[head:][::-1], other[head:][::-1])
        middle, their_middle = one[head : len(one) - tail], other[head : len(other) - tail]
        yield "".join(one[:head]), "".join(one[:head])
        pairs = len(middle) * len(their_middle)
        if pairs > self._pairs:
            yield from self.changes("".join(middle), "".join(their_middle), level + 1)
        else:
            self._pairs -= pairs
            for _tag, start, end, their_start, their_end in SequenceMatcher(None, middle, their_middle).get_opcodes():
                old, new = "".join(middle[start:end]), "".join(their_middle[their_start:their_end])
                yield from [(old, new)] if old == new else self.changes(old, new, level + 1)
        yield "".join(one[len(one) - tail :]), "".join(one[len(one) - tail :])


def _count_same(one: list[str], other: list[str]) -> int:
    """Count the parts that both lists start with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _pieces(changes: Iterator[tuple[str, str]]) -> Iterator[Piece]:
    """Join neighbors, and unchanged text that is shorter than both changes around it, which is easier to read."""
    groups = groupby(filter(any, changes), lambda change: change[0] == change[1])
    runs = [(is_same, *("".join(texts) for texts in zip(*group, strict=True))) for is_same, group in groups]
    gone = new = ""
    for index, (is_same, old, their) in enumerate(runs):
        shortest = min(max(len(gone), len(new)), max(map(len, runs[index + 1][1:])) if index + 1 < len(runs) else 0)
        if is_same and ("\n\n" in old or len(old) > shortest):
            yield from _change(gone, new)
            yield Piece("same", old)
            gone = new = ""
        else:
            gone, new = gone + old, new + their
    yield from _change(gone, new)


def _change(gone: str, new: str) -> Iterator[Piece]:
    if gone:
        yield Piece("gone", gone)
    if new:
        yield Piece("new", new)


def _shorten(piece: Piece, number: int, count: int) -> Piece:
    """Keep the beginning of a change, and the parts of unchanged text that are beside changes."""
    text, start, end = piece.text, MAX_LENGTH, 0
    if piece.kind == "same" and count > 1:
        start, end = AROUND if number else 0, AROUND if number < count - 1 else 0
    if len(text) <= start + end + AROUND:
        return piece
    return Piece(piece.kind, text[:start], len(text) - start - end, text[len(text) - end :])
