"""Where growing source may be cut: after each top-level block but the last, once a line settles that one follows."""

import re
from collections.abc import Sequence
from itertools import pairwise

from markdown_it.token import Token

from chat.rendering.markdown.growth import open_fence

# No letter is part of a block marker, so a letter settles what kind of line this is. Except behind what may be a fence
# or a formula, whose kind shows at the line's end only, and the x of a task's box.
_SETTLED = re.compile(r"(?:\[[xX]|(?!```|~~~|\$\$|\\\[|\[[xX])[\W\d_])*+[^\W\d_]")
_MARKER = re.compile(r"( *)(?:(\d+)([.)])|([-*+])) +")
_ROW = re.compile(r"\|")


def is_settled(source: str, start: int) -> bool:
    """Tell whether nothing that follows can change which block the line that starts there belongs to."""
    return _SETTLED.match(source, start) is not None


def slices(blocks: Sequence[Sequence[Token]], source: str) -> list[str]:
    """Cut source at the end of each block: a slice is a block and what precedes it."""
    lines, ends = source.split("\n"), [(block[0].map or [0, 0])[1] for block in blocks]
    return ["".join(line + "\n" for line in lines[start:end]) for start, end in pairwise([0, *ends])]


def is_row_of_table(blocks: Sequence[Sequence[Token]]) -> bool:
    """A line right after a table ends it only by lacking too many cells, which more of the line could bring."""
    if len(blocks) < 2 or blocks[-2][0].type != "table_open":
        return False
    table, line = blocks[-2][0].map, blocks[-1][0].map
    return table is not None and line is not None and table[1] == line[0]


def continuation(block: Sequence[Token], source: str) -> re.Pattern[str] | None:
    """Return how lines begin that go on with a block, so that looking for others can wait for one that does not."""
    lines = source.split("\n")
    if block[0].type == "table_open":
        return _ROW
    if block[0].type == "fence":
        closing = open_fence(block[0], lines)
        return closing and re.compile(f"(?!{closing.pattern}$)")
    items = [token for token in block if token.type == "list_item_open" and token.level == 1]
    marker = _MARKER.match(lines[(items[-1].map or [0])[0]]) if items else None
    return marker and _item(*marker.groups(), indent=marker.end())


def _item(space: str, digits: str | None, stop: str | None, bullet: str | None, *, indent: int) -> re.Pattern[str]:
    sign = re.escape(bullet) if bullet else rf"\d{{{len(digits or '')}}}\{stop}"
    return re.compile(f" {{{indent}}}|{space}{sign}[ \t]")
