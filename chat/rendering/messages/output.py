"""What a tool was given or gave back, as its card shows it: JSON in colours, and only the beginning of what is long."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import accumulate

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.text.json_text import coloured, laid_out

FIRST_LINES = 200
FIRST_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class Output:
    """Safe HTML: what is shown at once, and the rest behind "show all"."""

    shown: SafeString
    rest: SafeString
    lines: int

    def __bool__(self) -> bool:
        return bool(self.shown)


def output(text: str, *, in_colour: bool) -> Output:
    """Lay text out if it is JSON; colours are for its beginning, as much as a person reads."""
    lines = laid_out(text).split("\n")
    cut = _cut(lines)
    first = "\n".join(lines[:cut])
    is_json = in_colour and first[:1] in ("{", "[") and len(first) <= 2 * FIRST_CHARACTERS
    shown = coloured(first) if is_json else _escaped(first)
    return Output(shown, _escaped("\n".join(lines[cut:])), len(lines))


def _cut(lines: list[str]) -> int:
    """How many lines to show: at least one, whole ones only."""
    characters = accumulate(len(line) + 1 for line in lines[:FIRST_LINES])
    return sum(1 for count in characters if count <= FIRST_CHARACTERS) or 1


def _escaped(text: str) -> SafeString:
    return mark_safe(escape(text, quote=False))  # noqa: S308  # escaped
