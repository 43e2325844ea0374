"""What a terminal's control sequences mean for a look: classes, of sixteen colours that are readable on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

Style = frozenset[str]
PLAIN: Style = frozenset()

_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike", 21: "underline"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}
_GROUND = {3: "fg", 9: "fg", 4: "bg", 10: "bg"}
_STEPS = (0, 95, 135, 175, 215, 255)
# Red, green, yellow, blue, magenta, cyan: numbers 1 to 6, and 9 to 14 where they are bright.
_HUES = ((255, 0, 0), (0, 255, 0), (255, 255, 0), (0, 0, 255), (255, 0, 255), (0, 255, 255))
_BRIGHT = 225


def styled(style: Style, parameters: str) -> Style:
    """Return the style after `ESC [ parameters m`."""
    codes = iter(
        [[int(part[:6]) if part.isdigit() else 0 for part in code.split(":")] for code in parameters.split(";")]
    )
    for code, *more in codes:
        if code in (38, 48):
            style = _coloured(style, "fg" if code == 38 else "bg", _colour(more or _operands(codes)))
        elif code != 4 or more != [0]:
            style = _after(style, code)
        else:  # 4:0 is no underline
            style -= {"underline"}
    return style


def _after(style: Style, code: int) -> Style:
    if code == 0:
        return PLAIN
    if code in _ON:
        return style | {_ON[code]}
    if code in _OFF:
        return style.difference(_OFF[code])
    ground, colour = _GROUND.get(code // 10), code % 10
    if ground is None or colour == 8:
        return style
    return _coloured(style, ground, None if colour == 9 else colour + (8 if code >= 90 else 0))


def _coloured(style: Style, ground: str, colour: int | None) -> Style:
    others = frozenset(name for name in style if not name.startswith(ground))
    return others if colour is None else others | {f"{ground}{colour}"}


def _operands(codes: Iterator[list[int]]) -> list[int]:
    """Take what belongs to 38 or 48: 5 and a number, or 2 and red, green, blue."""
    kind = next(codes, [0])[0]
    return [kind, *(code[0] for _, code in zip(range({5: 1, 2: 3}.get(kind, 0)), codes, strict=False))]


def _colour(operands: list[int]) -> int | None:
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
    """By its hue, so that a dark blue is a blue that can be read."""
    most = max(red, green, blue)
    if most - min(red, green, blue) < 32:
        return 0 if most < 70 else 8 if most < 150 else 7 if most < 235 else 15
    pure = (red * 255 // most, green * 255 // most, blue * 255 // most)
    hue = 1 + min(range(6), key=lambda index: _distance(_HUES[index], pure))
    return hue + 8 if most >= _BRIGHT else hue


def _distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    """By the eye: green counts most."""
    red, green, blue = (a - b for a, b in zip(one, other, strict=True))
    return 3 * red * red + 4 * green * green + 2 * blue * blue
