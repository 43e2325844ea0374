"""Rewrite LaTeX that the converter to MathML does not know as LaTeX that it knows."""

import re

from latex2mathml import commands
from latex2mathml.symbols_parser import convert_symbol

# Characters for the lines of arrays, because the converter loses their places: before the content of a row for the line
# above it, and at the start of an array for the line before the column of that number.
ROW_LINE = "\ue000"
_COLUMN_LINES = 0xE001
LINES = re.compile("[\ue000-\uefff]")


def _command(rest: str) -> re.Pattern[str]:
    """Return a pattern for a command: an even number of backslashes before it, the first group, are line breaks."""
    return re.compile(rf"(?<!\\)((?:\\\\)*)\\{rest}")


_REWRITTEN = (
    (re.compile(r"(\\\\)\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in|mu)\s*\]"), r"\1"),  # the space after a line
    (_command(r"label\s*\{[^{}]*\}"), r"\1"),
    (_command(r"(?:nonumber|notag|allowbreak|relax)(?![A-Za-z])"), r"\1 "),
    (_command(r"hline(?![A-Za-z])"), rf"\1{ROW_LINE}"),
    (_command(r"(tag\*?)\s*\{"), r"\1\\qquad\\\2{"),
    (_command(r"(R|N|Z|Q|C)(?![A-Za-z])"), r"\1\\mathbb{\2}"),
    (_command(r"(?:mathds|mathbbm)(?![A-Za-z])"), r"\1\\mathbb"),
    (_command(r"arg\s*\\(max|min)(?![A-Za-z])"), r"\1\\arg\2 "),
    (_command(r"operatorname\*?\s*\{\s*(arg|lim)\s*(?:~|\\[,:; ])\s*(max|min|sup|inf)\s*\}"), r"\1\\\2\3 "),
    (_command(r"arg(?![A-Za-z])"), r"\1\\operatorname{arg}"),
    (_command(r"operatorname(?:\*|withlimits)?\s*\{(?![A-Za-z\s*]+\})"), r"\1\\mathrm{"),
    (_command(r"text(\{[^{}$]*(?<!\\)\$[^{}$]+(?<!\\)\$[^{}$]*\})"), r"\1\\hbox\2"),
)
_ARRAY = re.compile(r"\\begin\s*\{array\}(?:\s*\[[tcb]\])?\s*\{([lcr|\s]+)\}")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+)(\*?)\}(\s*\[[tcb]\])?(\s*\{\d+\})?")
# Environments that are replaced by arrays, with their columns.
_COLUMNS = {
    **dict.fromkeys(("aligned", "align", "alignat", "alignedat", "flalign", "split"), "rl" * 4),
    **dict.fromkeys(("gathered", "gather", "multline"), "c"),
    "eqnarray": "rcl",
}
# Environments that are replaced by others.
_REPLACED = {
    "equation": ("", ""),
    "subarray": (r"\begin{array}", r"\end{array}"),
    "dcases": (r"\begin{cases}", r"\end{cases}"),
    **dict.fromkeys(("rcases", "drcases"), (r"\left.\begin{array}{ll}", r"\end{array}\right\}")),
}
_MATRICES = {f"{kind}matrix" for kind in ("", "p", "b", "B", "v", "V", "small")}
_PART = re.compile(r"\\(?:begin|end|left|right)(?![A-Za-z])|\\.|[{}&]", re.DOTALL)
_FONT = re.compile(r"\\math[a-z]+")


def prepare(source: str) -> str:
    """Return a formula that the converter knows. Raise ValueError if it has an unknown environment or font."""
    if LINES.search(source):
        raise ValueError("the formula has characters for private use")
    for pattern, replacement in _REWRITTEN:
        source = pattern.sub(replacement, source)
    while (source := source.rstrip()).endswith(r"\\"):
        source = source[:-2]
    for font in _FONT.findall(source):
        if not _is_font(font):
            raise ValueError(f"{font} is not known")
    source = _ENVIRONMENT.sub(_environment, source)
    if len(_ARRAY.findall(source)) != source.count(r"\begin{array}"):
        raise ValueError("an array has columns that are not known")
    return _in_rows(_ARRAY.sub(_array, source))


def column_lines(marks: str) -> list[int]:
    """Return the columns before which an array has a line, from the characters at its start."""
    return sorted({ord(mark) - _COLUMN_LINES for mark in marks if mark != ROW_LINE})


def _is_font(name: str) -> bool:
    """Return whether the converter knows a command that begins with \\math. It ignores all others."""
    return (
        name in commands.LOCAL_FONTS
        or name in commands.CONVERSION_MAP
        or name in commands.MATH_NON_FONT_COMMANDS
        or convert_symbol(name) is not None
    )


def _environment(match: re.Match[str]) -> str:
    which, name, star, position, count = match.groups(default="")
    is_end = which == "end"
    if name in _REPLACED:
        return _REPLACED[name][is_end] + position + count
    if name in _MATRICES or (name in ("array", "cases") and not star):
        return rf"\{which}{{{name}}}{position}{count}"
    if name not in _COLUMNS:
        raise ValueError(f"{name} is not a known environment")
    if is_end:
        return r"\end{array}" + position + count
    return rf"\begin{{array}}{{{_COLUMNS[name]}}}{'' if name.endswith('at') else count}"


def _array(match: re.Match[str]) -> str:
    kinds = "".join(match[1].split())
    columns, marks = "", ""
    for kind in kinds:
        if kind == "|":
            marks += chr(_COLUMN_LINES + len(columns))
        else:
            columns += kind
    return rf"\begin{{array}}{{{columns}}}{marks}"


def _in_rows(source: str) -> str:
    """Put the lines of a formula that has line breaks outside of any environment below each other."""
    depth, is_broken, is_aligned = 0, False, False
    for part in _PART.findall(source):
        if part in ("{", r"\begin", r"\left"):
            depth += 1
        elif part in ("}", r"\end", r"\right"):
            depth -= 1
        elif depth == 0:
            is_broken |= part == r"\\"
            is_aligned |= part == "&"
    columns = "rl" * 4 if is_aligned else "c"
    return rf"\begin{{array}}{{{columns}}}{source}\end{{array}}" if is_broken else source
