"""What a command printed, as a terminal shows it: ANSI colours, and the first lines of long output (UI-10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.budget import LONGEST_STYLED
from chat.rendering.text.ansi import PLAIN, Style, styled

TOOLS = frozenset({"bash", "shell", "execute", "run"})
WHOLE_LINES = 500
FIRST_LINES = 200

_ESCAPE = re.compile(r"\x1b(?:\[([0-9;:?<=>!]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\^_=>78])|\x07")
_UP = re.compile(r"(?:\r|\x1b\[[0-9;]*[GHJK])*\x1b\[(\d{0,4})[AF]")


@dataclass(frozen=True, slots=True)
class Screen:
    """Safe HTML of the output: what is shown at once, and the rest behind "show all"."""

    shown: SafeString
    rest: SafeString
    lines: int


def screen(output: str) -> Screen:
    """Lay out `output`: up to 500 lines whole, of more the first 200 and the rest apart.

    Beyond a length control sequences are left out, whatever they mean.
    """
    text = _overwritten(output[:LONGEST_STYLED]) + "".join(_without_controls(output[LONGEST_STYLED:]))
    lines = text.rstrip("\n").split("\n")
    cut = FIRST_LINES if len(lines) > WHOLE_LINES else len(lines)
    shown, style = _coloured("\n".join(lines[:cut]), PLAIN)
    rest, _ = _coloured("\n".join(lines[cut:]), style)
    return Screen(shown, rest, len(lines))


def _without_controls(output: str) -> Iterator[str]:
    # In pieces: the interpreter cannot switch to another thread while an expression works.
    for start in range(0, len(output), LONGEST_STYLED):
        yield _ESCAPE.sub("", output[start : start + LONGEST_STYLED])


def _overwritten(output: str) -> str:
    """Keep what is left on the screen of lines that were written over: progress bars, spinners, counters."""
    text = output.replace("\r\n", "\n")
    if "\b" in text:
        text = _rubbed_out(text)
    if "\r" not in text and "\x1b[" not in text:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        if up := _UP.match(line):
            del lines[max(0, len(lines) - int(up[1] or 1)) :]
        lines.append(line.rstrip("\r").rsplit("\r", 1)[-1])
    return "\n".join(lines)


def _rubbed_out(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


def _coloured(text: str, style: Style) -> tuple[SafeString, Style]:
    parts: list[str] = []
    position = 0
    for match in _ESCAPE.finditer(text):
        parts.append(_span(text[position : match.start()], style))
        position = match.end()
        if match[2] == "m":
            style = styled(style, match[1])
    parts.append(_span(text[position:], style))
    return mark_safe("".join(parts)), style  # noqa: S308  # every part is escaped in _span


def _span(text: str, style: Style) -> str:
    if not text or not style:
        return escape(text, quote=False)
    return f'<span class="{" ".join(sorted(style))}">{escape(text, quote=False)}</span>'
