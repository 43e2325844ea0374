"""Terminal output as HTML. Control sequences become CSS classes, and long output is split (UI-10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.rendering.budget import MAX_STYLED_LENGTH

# Tools whose cards show a terminal.
TOOLS = frozenset({"bash", "python", "shell", "execute", "run"})
WHOLE_LINES = 500
FIRST_LINES = 200

_ESCAPE = re.compile(r"\x1b(?:\[([0-9;:?<=>!]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\^_=>78])|\x07")
_UP = re.compile(r"(?:\r|\x1b\[[0-9;]*[GHJK])*\x1b\[(\d{0,4})[AF]")

Style = frozenset[str]
PLAIN: Style = frozenset()

_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike", 21: "underline"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}
_GROUND = {3: "fg", 9: "fg", 4: "bg", 10: "bg"}
_STEPS = (0, 95, 135, 175, 215, 255)
# Red, green, yellow, blue, magenta and cyan. They have the numbers 1 to 6, or 9 to 14 if they are bright.
_HUES = ((255, 0, 0), (0, 255, 0), (255, 255, 0), (0, 0, 255), (255, 0, 255), (0, 255, 255))
_BRIGHT = 225


@dataclass(frozen=True, slots=True)
class Screen:
    """Safe HTML of the output. `shown` is visible first, and the `rest` is behind "show all"."""

    shown: SafeString
    rest: SafeString
    lines: int


def screen(output: str) -> Screen:
    """Render `output`. Show up to 500 lines completely, or the first 200 lines of longer output.

    Control sequences after the first `MAX_STYLED_LENGTH` characters are dropped.
    """
    # In pieces, because the interpreter cannot switch to another thread during a match of a regular expression.
    starts = range(MAX_STYLED_LENGTH, len(output), MAX_STYLED_LENGTH)
    rest = "".join(_ESCAPE.sub("", output[start : start + MAX_STYLED_LENGTH]) for start in starts)
    text = _overwritten(output[:MAX_STYLED_LENGTH]) + rest
    lines = text.rstrip("\n").split("\n")
    cut = FIRST_LINES if len(lines) > WHOLE_LINES else len(lines)
    shown, style = _colored("\n".join(lines[:cut]), PLAIN)
    return Screen(shown, _colored("\n".join(lines[cut:]), style)[0], len(lines))


def _overwritten(output: str) -> str:
    """Keep only the last state of lines that the command has overwritten, such as progress bars."""
    text = output.replace("\r\n", "\n")
    if "\b" in text:
        text = _without_backspaces(text)
    if "\r" not in text and "\x1b[" not in text:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        if up := _UP.match(line):
            del lines[max(0, len(lines) - int(up[1] or 1)) :]
        lines.append(line.rstrip("\r").rsplit("\r", 1)[-1])
    return "\n".join(lines)


def _without_backspaces(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


def _colored(text: str, style: Style) -> tuple[SafeString, Style]:
    parts: list[str] = []
    position = 0
    for match in _ESCAPE.finditer(text):
        parts.append(_span(text[position : match.start()], style))
        position = match.end()
        if match[2] == "m":
            style = _styled(style, match[1])
    parts.append(_span(text[position:], style))
    return mark_safe("".join(parts)), style  # noqa: S308  # every part is escaped in _span


def _span(text: str, style: Style) -> str:
    if not text or not style:
        return escape(text, quote=False)
    return f'<span class="{" ".join(sorted(style))}">{escape(text, quote=False)}</span>'


def _styled(style: Style, parameters: str) -> Style:
    """Return the style after `ESC [ parameters m`."""
    codes = iter(
        [[int(part[:6]) if part.isdigit() else 0 for part in code.split(":")] for code in parameters.split(";")]
    )
    for code, *more in codes:
        if code in (38, 48):
            style = _with_color(style, "fg" if code == 38 else "bg", _color(more or _operands(codes)))
        elif code != 4 or more != [0]:
            style = _after(style, code)
        else:  # 4:0 turns underlining off
            style -= {"underline"}
    return style


def _after(style: Style, code: int) -> Style:
    if code == 0:
        return PLAIN
    if code in _ON:
        return style | {_ON[code]}
    if code in _OFF:
        return style.difference(_OFF[code])
    ground, color = _GROUND.get(code // 10), code % 10
    if ground is None or color == 8:
        return style
    return _with_color(style, ground, None if color == 9 else color + (8 if code >= 90 else 0))


def _with_color(style: Style, ground: str, color: int | None) -> Style:
    others = frozenset(name for name in style if not name.startswith(ground))
    return others if color is None else others | {f"{ground}{color}"}


def _operands(codes: Iterator[list[int]]) -> list[int]:
    """Take the operands of 38 or 48: either 5 and a number, or 2 and red, green, blue."""
    kind = next(codes, [0])[0]
    return [kind, *(code[0] for _, code in zip(range({5: 1, 2: 3}.get(kind, 0)), codes, strict=False))]


def _color(operands: list[int]) -> int | None:
    match operands:
        case [5, number] if number < 16:
            return number
        case [5, number] if number < 232:
            cube = number - 16
            return _nearest(_STEPS[cube // 36], _STEPS[cube // 6 % 6], _STEPS[cube % 6])
        case [5, number] if number < 256:
            return _nearest(*[8 + 10 * (number - 232)] * 3)
        case [2, *_, red, green, blue]:
            return _nearest(min(red, 255), min(green, 255), min(blue, 255))
    return None


@lru_cache(maxsize=4_096)
def _nearest(red: int, green: int, blue: int) -> int:
    """Return the nearest of 16 colors by hue, so that a dark blue becomes a readable blue."""
    most = max(red, green, blue)
    if most - min(red, green, blue) < 32:
        return 0 if most < 70 else 8 if most < 150 else 7 if most < 235 else 15
    pure = (red * 255 // most, green * 255 // most, blue * 255 // most)
    hue = 1 + min(range(6), key=lambda index: _distance(_HUES[index], pure))
    return hue + 8 if most >= _BRIGHT else hue


def _distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    """Return the distance between two colors, weighted by how sensitive the eye is to each component."""
    red, green, blue = (a - b for a, b in zip(one, other, strict=True))
    return 3 * red * red + 4 * green * green + 2 * blue * blue
