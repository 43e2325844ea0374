"""What a command printed, as a terminal shows it: ANSI colours, and the first lines of long output (UI-10)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

TOOLS = frozenset({"bash", "shell", "execute", "run"})
WHOLE_LINES = 500
FIRST_LINES = 200

_ESCAPE = re.compile(r"\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_BASIC = {1: "bold", 2: "dim", 3: "italic", 4: "underline"}


@dataclass(frozen=True, slots=True)
class Screen:
    """Safe HTML of the output: what is shown at once, and the rest behind "show all"."""

    shown: SafeString
    rest: SafeString
    lines: int


def screen(output: str) -> Screen:
    """Lay out `output`: up to 500 lines whole, of more the first 200 and the rest apart."""
    lines = _overwritten(output).rstrip("\n").split("\n")
    cut = FIRST_LINES if len(lines) > WHOLE_LINES else len(lines)
    shown, style = _coloured("\n".join(lines[:cut]), frozenset())
    rest, _ = _coloured("\n".join(lines[cut:]), style)
    return Screen(shown, rest, len(lines))


def _overwritten(output: str) -> str:
    """Keep what a carriage return leaves on the screen: the last writing of each line."""
    text = output.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def _coloured(text: str, style: frozenset[str]) -> tuple[SafeString, frozenset[str]]:
    parts: list[str] = []
    position = 0
    for match in _ESCAPE.finditer(text):
        parts.append(_span(text[position : match.start()], style))
        position = match.end()
        if match[2] == "m":
            style = _styled(style, match[1])
    parts.append(_span(text[position:], style))
    return mark_safe("".join(parts)), style  # noqa: S308  # every part is escaped in _span


def _span(text: str, style: frozenset[str]) -> str:
    if not text or not style:
        return escape(text, quote=False)
    return f'<span class="{" ".join(sorted(style))}">{escape(text, quote=False)}</span>'


def _styled(style: frozenset[str], parameters: str) -> frozenset[str]:
    codes = [int(code) if code.isdigit() else 0 for code in parameters.split(";")]
    while codes:
        code = codes.pop(0)
        if code in (38, 48):  # 256 colours and true colour: not shown, but their parameters must be eaten
            del codes[: 2 if codes[:1] == [5] else 4]
        else:
            style = _after(style, code)
    return style


def _after(style: frozenset[str], code: int) -> frozenset[str]:
    if code == 0:
        return frozenset()
    if code in _BASIC:
        return style | {_BASIC[code]}
    if 30 <= code <= 37 or 90 <= code <= 97:
        return _without(style, "fg") | {f"fg{code % 10 + (8 if code >= 90 else 0)}"}
    if code == 39:
        return _without(style, "fg")
    if code == 22:
        return style - {"bold", "dim"}
    return style


def _without(style: frozenset[str], prefix: str) -> frozenset[str]:
    return frozenset(name for name in style if not name.startswith(prefix))
