"""The changes of a call of `edit_file` or `write_file`, as the lines of a unified diff."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import Literal

from chat.snapshots import ToolSnapshot

MAX_LINES = 400
MAX_LINE_LENGTH = 1_000
MAX_CHARS = 200_000
# Pairs of lines that are compared, which takes at most 0.1 s for each drawing. With more, all lines count as changed.
MAX_PAIRS = 250_000
_AT_LINE = re.compile(r"at line (\d{1,9})\.")
_HUNK = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a diff, without its sign."""

    kind: Literal["same", "gone", "new", "place"]
    text: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """The changed lines of a file. `left_out` is set if there are more lines than are shown."""

    path: str
    lines: list[Line]
    added: int
    removed: int
    left_out: bool = False


def change_of(tool: ToolSnapshot, *, is_done: bool = True) -> FileChange | None:
    """Return the change of a call, planned or done. Return None if it is unknown or the call has failed."""
    arguments = tool.arguments
    if not isinstance(arguments, dict) or tool.is_error or not isinstance(path := arguments.get("path"), str):
        return None
    if tool.name == "edit_file":
        old, new = arguments.get("old"), arguments.get("new")
        if isinstance(old, str) and isinstance(new, str) and len(old) + len(new) <= MAX_CHARS:
            return _change(path, _edit(old, new, tool.result if is_done else ""))
    if tool.name == "write_file" and isinstance(content := arguments.get("content"), str):
        diff = tool.result.partition("\n\n")[2] if is_done else ""
        return _change(path, diff.split("\n")[2:] if diff.startswith("--- ") else [f"+{it}" for it in _lines(content)])
    return None


def _edit(old: str, new: str, result: str) -> list[str]:
    """Compare two texts. Count lines from the one that the result names."""
    found = _AT_LINE.search(result)
    before = int(found[1]) - 1 if found else 0
    gone, come = _lines(old), _lines(new)
    if len(gone) * len(come) > MAX_PAIRS:
        lines = [f"@@ -1,{len(gone)} +1,{len(come)} @@", *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
    else:
        lines = list(unified_diff(gone, come, lineterm="", n=2))[2:]

    def moved(match: re.Match[str]) -> str:
        return f"@@ -{int(match[1]) + before}{match[2]} +{int(match[3]) + before}{match[4]} @@"

    return [_HUNK.sub(moved, line) if line.startswith("@@") else line for line in lines]


def _lines(text: str) -> list[str]:
    """Split at line feeds only, because `str.splitlines` also splits at characters that do not end lines in files."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _change(path: str, lines: list[str]) -> FileChange:
    shown = [_line(line[:MAX_LINE_LENGTH]) for line in islice(lines, MAX_LINES)]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return FileChange(path, shown, added, removed, left_out=len(lines) > MAX_LINES)


def _line(line: str) -> Line:
    match line[:1]:
        case "+":
            return Line("new", line[1:])
        case "-":
            return Line("gone", line[1:])
        case "@" | "[":
            return Line("place", line)
        case _:
            return Line("same", line[1:])
