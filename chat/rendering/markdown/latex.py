"""Rewrite LaTeX that the converter to MathML does not know as LaTeX that it knows."""

import re

from latex2mathml import commands
from latex2mathml.symbols_parser import convert_symbol

_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+)(\*?)\}")
# Environments that are replaced by arrays, with their columns.
_COLUMNS = {
    **dict.fromkeys(("aligned", "align", "alignedat", "split"), "rl" * 4),
    **dict.fromkeys(("gathered", "gather", "multline"), "c"),
}
_MATRICES = {f"{kind}matrix" for kind in ("", "p", "b", "B", "v", "V", "small")}
_FONT = re.compile(r"\\math[a-z]+")


def prepare(source: str) -> str:
    """Return a formula that the converter knows. Raise ValueError if it has an unknown environment or font."""
    for font in _FONT.findall(source):
        if not _is_font(font):
            raise ValueError(f"{font} is not known")
    return _ENVIRONMENT.sub(_environment, source)


def _is_font(name: str) -> bool:
    """Return whether the converter knows a command that begins with \\math. It ignores all others."""
    return (
        name in commands.LOCAL_FONTS
        or name in commands.CONVERSION_MAP
        or name in commands.MATH_NON_FONT_COMMANDS
        or convert_symbol(name) is not None
    )


def _environment(match: re.Match[str]) -> str:
    which, name, star = match.groups()
    if name == "equation":
        return ""
    if name in _MATRICES or (name in ("array", "cases") and not star):
        return rf"\{which}{{{name}}}"
    if name not in _COLUMNS:
        raise ValueError(f"{name} is not a known environment")
    return r"\end{array}" if which == "end" else rf"\begin{{array}}{{{_COLUMNS[name]}}}"
