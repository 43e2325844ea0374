"""What differs between two texts, word by word: pure, and bounded however long they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

Kind = Literal["same", "gone", "new"]
# Words, or single letters of scripts that put no spaces between words; what is between them is kept as it is.
_LETTER = r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]"
_WORDS = re.compile(rf"{_LETTER}+|\n|[^\S\n]+|.", re.DOTALL)
_INSIDE = re.compile(rf"{_LETTER}{{2}}")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
# Beyond so many words, then lines, and so many changes among them, the rest is told as a whole: the costs grow with the
# first and with the square of the second.
MOST_PARTS = 20_000
MOST_CHANGES = 500
# What is shown: characters of unchanged text around a change, of a change, and changes in all.
AROUND = 100
LONGEST = 2_000
MOST_PIECES = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that both have (same), the first alone (gone) or the second alone (new).

    `left_out` counts the characters that it has between `text` and `end`, and that are not shown.
    """

    kind: Kind
    text: str
    left_out: int = 0
    end: str = ""

    @property
    def shown(self) -> str:
        """The text; a change that is nothing but line breaks would not be seen without a mark."""
        return self.text if self.kind == "same" or self.text.strip() else self.text.replace("\n", "⏎\n")


def difference(before: str, after: str) -> list[Piece]:
    """Compare two texts: the same and gone pieces together are the first, the same and new ones the second."""
    head = _shared(before, after)
    tail = _shared(before[head:], after[head:], from_end=True)
    middle = _middle(before[head : len(before) - tail], after[head : len(after) - tail])
    return _joined([("same", before[:head]), *middle, ("same", before[len(before) - tail :])])


def shown(before: str, after: str) -> list[Piece]:
    """Compare two texts for somebody to read: long stretches are cut, and what nobody would read to the end."""
    pieces = difference(before, after)
    kept = [_cut(piece, number, len(pieces)) for number, piece in enumerate(pieces[:MOST_PIECES])]
    rest = sum(len(piece.text) for piece in pieces[MOST_PIECES:])
    return [*kept, Piece("same", "", rest)] if rest else kept


def _shared(one: str, other: str, *, from_end: bool = False) -> int:
    """How many characters both begin (end) with, up to the edge of a word in both."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        alike = one[-middle:] == other[-middle:] if from_end else one[:middle] == other[:middle]
        least, most = (middle, most) if alike else (least, middle - 1)
    # Beyond a hundred letters it is no word.
    for count in range(least, max(least - 100, 0), -1):
        if not any(_is_inside(text, len(text) - count if from_end else count) for text in (one, other)):
            return count
    return 0


def _is_inside(text: str, at: int) -> bool:
    """Whether a place is inside a word."""
    return at > 0 and _INSIDE.match(text, at - 1) is not None


def _middle(before: str, after: str) -> list[tuple[Kind, str]]:
    """Compare by words; by lines where too much has changed for that, and not at all where it still has."""
    for parts in (_WORDS, _LINES):
        one, other = _first(parts, before), _first(parts, after)
        if len(one) + len(other) <= MOST_PARTS and (path := _path(one, other)) is not None:
            return list(_walked(path, one, other))
    return [("gone", before), ("new", after)]


def _first(parts: re.Pattern[str], text: str) -> list[str]:
    """The parts of a text; no more of them than show that there are too many."""
    return [found.group() for found in islice(parts.finditer(text), MOST_PARTS + 1)]


def _path(one: Sequence[str], other: Sequence[str]) -> list[dict[int, int]] | None:
    """Find the shortest way from one to the other (Myers, "An O(ND) difference algorithm", 1986); None: it is long.

    For each number of changes: how far into `one` one gets on each diagonal, which is the place in `one` less that in
    `other`.
    """
    reached = {1: 0}
    path = []
    for changes in range(MOST_CHANGES + 1):
        path.append(reached.copy())
        for diagonal in range(-changes, changes + 1, 2):
            at = _step(reached, diagonal, changes)
            while at < len(one) and at - diagonal < len(other) and one[at] == other[at - diagonal]:
                at += 1
            reached[diagonal] = at
            if at >= len(one) and at - diagonal >= len(other):
                return path
    return None


def _is_new(reached: dict[int, int], diagonal: int, changes: int) -> bool:
    """Whether one gets further to a diagonal by a part that is new than by one that is gone."""
    return diagonal == -changes or (diagonal != changes and reached[diagonal - 1] < reached[diagonal + 1])


def _step(reached: dict[int, int], diagonal: int, changes: int) -> int:
    return reached[diagonal + 1] if _is_new(reached, diagonal, changes) else reached[diagonal - 1] + 1


def _walked(path: list[dict[int, int]], one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[Kind, str]]:
    """Go the way back from its end, and tell it from its beginning."""
    at, told = (len(one), len(other)), list[tuple[Kind, str]]()
    for changes in range(len(path) - 1, -1, -1):
        diagonal = at[0] - at[1]
        is_new = _is_new(path[changes], diagonal, changes)
        start = _step(path[changes], diagonal, changes)
        told += [("same", part) for part in reversed(one[start : at[0]])]
        if changes:
            told.append(("new", other[start - diagonal - 1]) if is_new else ("gone", one[start - 1]))
        at = (start, start - diagonal - 1) if is_new else (start - 1, start - diagonal)
    return reversed(told)


def _joined(parts: Sequence[tuple[Kind, str]]) -> list[Piece]:
    """Put together what belongs together; what is less than the changes around it is read sooner as a part of them."""
    runs = [_Run.of(list(run)) for _same, run in groupby((p for p in parts if p[1]), lambda part: part[0] == "same")]
    pieces: list[Piece] = []
    change = _Run("", "")
    for run, following in zip(runs, [*runs[1:], None], strict=False):
        if run.same and not (change.size and following and run.is_swallowed(change, following)):
            pieces += [*change.pieces(), Piece("same", run.same)]
            change = _Run("", "")
        else:
            change = _Run(change.gone + run.gone + run.same, change.new + run.new + run.same)
    return [*pieces, *change.pieces()]


@dataclass(frozen=True, slots=True)
class _Run:
    """What stands together: what is gone and what is new, or what is the same."""

    gone: str
    new: str
    same: str = ""

    @classmethod
    def of(cls, parts: Sequence[tuple[Kind, str]]) -> _Run:
        texts = {kind: "".join(text for each, text in parts if each == kind) for kind in ("gone", "new", "same")}
        return cls(**texts)

    @property
    def size(self) -> int:
        return max(len(self.gone), len(self.new))

    def is_swallowed(self, before: _Run, after: _Run) -> bool:
        """Whether this is less than the changes before and after it; paragraphs stay apart."""
        return "\n\n" not in self.same and len(self.same) <= min(before.size, after.size)

    def pieces(self) -> list[Piece]:
        return [piece for piece in (Piece("gone", self.gone), Piece("new", self.new)) if piece.text]


def _cut(piece: Piece, number: int, count: int) -> Piece:
    """What is changed keeps its beginning, what is not keeps what stands beside changes."""
    text = piece.text
    start, end = LONGEST, 0
    if piece.kind == "same":
        start, end = AROUND if number else 0, AROUND if number < count - 1 else 0
        if count == 1:
            start = LONGEST
    if len(text) <= start + end + AROUND:
        return piece
    return Piece(piece.kind, text[:start], len(text) - start - end, text[len(text) - end :])
