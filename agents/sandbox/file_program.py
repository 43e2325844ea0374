"""The program that works on files of a workspace. It runs in the sandbox, with Python 3.8 or later.

It reads a request, {"do": action, ...}, as JSON from its input and prints {"text": ...} or {"error": ...}.
If the system reports an error, `number` is its errno.
"""

from __future__ import annotations

import difflib
import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from itertools import islice

ROOT = "/workspace"
OUTPUTS = ".parley"
# The most characters of one answer, of one line in it, and of a matching line.
MAX_LENGTH = 50_000
MAX_LINE_LENGTH = 2_000
MAX_MATCH_LENGTH = 500
MAX_FILES = 1_000
MAX_MATCHES = 200
# If a file is replaced, its old and new text are compared up to this length, and the answer has at most this many lines
# of changes.
MAX_COMPARED_SIZE = 200_000
MAX_CHANGED = 200
# In bytes. Larger files are not searched.
MAX_SEARCHED_SIZE = 5_000_000
MAX_PATTERNS = 100
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
SKIPPED = {".git", "node_modules", "__pycache__", ".venv"}
# Git runs programs that these files name. Calls that write files need no approval, but commands do.
GIT_SETTINGS = ("/.git/", "/.gitconfig/", "/.config/git/")
# The folder of files that users attach. Web addresses in them count as those of users.
ATTACHMENTS = "attachments"


class Refused(Exception):
    """A mistake that the model can correct. The text is for the model."""


def read(path: str, offset: int, limit: int) -> str:
    """Return at most `limit` lines from line `offset` on. If more follow, add a note that says how to read them."""
    lines = _bytes_of(path).decode(errors="replace").replace("\0", "\ufffd").split("\n")
    if lines[-1] == "":
        lines.pop()
    if offset > max(1, len(lines)):
        raise Refused(f"{path} has {len(lines)} lines.")
    taken: list[str] = []
    size = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        shown = line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]} [cut: {len(line)} characters]"
        size += len(shown) + 1
        if size > MAX_LENGTH:
            break
        taken.append(shown)
    end = offset - 1 + len(taken)
    if end < len(lines):
        taken.append(f"\n[Lines {offset} to {end} of {len(lines)}. Read on with offset={end + 1}.]")
    return "\n".join(taken)


def write(path: str, content: str) -> str:
    found = _writable_place(path)
    os.makedirs(os.path.dirname(found), exist_ok=True)
    before = _known_text(found)
    _put(found, content)
    done = f"Wrote {_name(found)}: {len(content.splitlines())} lines."
    return f"{done}\n\n{_difference(before, content, _name(found))}".rstrip() if before else done


def edit(path: str, old: str, new: str) -> str:
    found = _writable_place(path)
    text = _text_of(path)
    old, new = _with_line_ends_of(text, old, new)
    count = text.count(old) if old else 0
    if count == 0:
        raise Refused(f"The text to replace is not in {path}. Read the file and copy the text exactly as it is.")
    if count > 1:
        raise Refused(f"The text to replace is in {path} {count} times. Include more of the text around it.")
    _put(found, text.replace(old, new))
    line = text[: text.index(old)].count("\n") + 1
    return f"Changed {_name(found)} at line {line}."


def _with_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """Return both texts with line ends of Windows if the file has these, because models write only those of Unix."""
    windows = text.count("\r\n")
    if windows and (windows == text.count("\n") or old not in text):
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
    return old, new


def list_files(path: str, glob: str) -> str:
    found = _place(path)
    if not os.path.isdir(found):
        raise Refused(f"{path} is not a folder.")
    patterns = _patterns(glob)
    lines: list[str] = []
    for entry in _entries(found):
        names = os.path.relpath(entry.path, found).split("/")
        if glob and not any(_fits(names, pattern) for pattern in patterns):
            continue
        if len(lines) == MAX_FILES:
            lines.append("[There are more. Give a folder or a pattern.]")
            break
        lines.append(_describe(entry))
    return "\n".join(lines) or "[No files.]"


def search(pattern: str, path: str) -> str:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise Refused(f"The pattern is not a regular expression: {error}.") from error
    found = _place(path)
    files = (entry.path for entry in _entries(found) if _is_searched(entry)) if os.path.isdir(found) else [found]
    lines: list[str] = []
    for file in files:
        for number, line in _matches(expression, file):
            if len(lines) == MAX_MATCHES:
                return "\n".join([*lines, "[There are more. Search in a folder or file, or for less.]"])
            lines.append(f"{_name(file)}:{number}: {line[:MAX_MATCH_LENGTH]}")
    return "\n".join(lines) or "[No matches.]"


def save(content: str) -> str:
    """Write a long output to a new file and return its path."""
    folder = _place(OUTPUTS)
    os.makedirs(folder, exist_ok=True)
    number = 1
    while True:
        path = os.path.join(folder, f"output-{number}.txt")
        try:
            with open(path, "x", encoding="utf-8", newline="") as file:
                file.write(content)
            return _name(path)
        except FileExistsError:
            number += 1


def _place(path: str) -> str:
    """Return the real path for a path that the model gave. Raise Refused if it is outside the workspace."""
    found = os.path.realpath(os.path.join(ROOT, path))
    if found != ROOT and not found.startswith(f"{ROOT}/"):
        raise Refused(f"{path} is outside the session's folder. Give a path relative to it.")
    return found


def _writable_place(path: str) -> str:
    """Return the real path of a file that the model may write. Raise Refused for attachments and settings of Git."""
    found = _place(path)
    if f"{_name(found)}/".startswith(f"{ATTACHMENTS}/"):
        raise Refused(f"{path} was not written: {ATTACHMENTS}/ is only for files that users attach.")
    if any(part in f"/{_name(found)}/" for part in GIT_SETTINGS):
        raise Refused(f"{path} was not written: it is a part of Git's settings. Change these with git commands.")
    return found


def _name(path: str) -> str:
    return os.path.relpath(path, ROOT)


def _bytes_of(path: str) -> bytes:
    found = _place(path)
    if not stat.S_ISREG(os.stat(found).st_mode):
        raise Refused(f"{path} is not a file.")
    with open(found, "rb") as file:
        return file.read()


def _known_text(found: str) -> str:
    """Return the text of a file that is about to be replaced, or "" if it cannot be compared."""
    try:
        if not stat.S_ISREG(os.stat(found).st_mode) or os.stat(found).st_size > MAX_COMPARED_SIZE:
            return ""
        with open(found, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _difference(before: str, after: str, name: str) -> str:
    """Return the changes as a unified diff, cut after MAX_CHANGED lines, or "" if the text is too long."""
    if len(after) > MAX_COMPARED_SIZE:
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=2)
    taken = [line[:MAX_LINE_LENGTH] for line in islice(lines, MAX_CHANGED + 1)]
    if len(taken) > MAX_CHANGED:
        taken[MAX_CHANGED:] = ["[More has changed.]"]
    return "\n".join(taken)


def _text_of(path: str) -> str:
    try:
        return _bytes_of(path).decode()
    except UnicodeDecodeError:
        raise Refused(f"{path} is not a text file.") from None


def _put(path: str, text: str) -> None:
    """Replace a file in one step, so that the old file stays if the disk is full."""
    draft = f"{path}.parley-draft"
    with open(draft, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)
    if os.path.exists(path):
        os.chmod(draft, stat.S_IMODE(os.stat(path).st_mode))
    os.replace(draft, path)


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder and of the folders in it, in order. Links to folders are not followed."""
    with os.scandir(path) as found:
        inside = sorted(found, key=lambda entry: entry.name)
    for entry in inside:
        yield entry
        if entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED:
            try:
                yield from _entries(entry.path)
            except PermissionError:
                continue


def _patterns(glob: str) -> list[list[str]]:
    """Return the patterns that a glob with alternatives, {a,b}, stands for, each as a list of the names in its path.

    A pattern of names without a slash applies in all folders.
    """
    patterns: list[list[str]] = []
    waiting = [glob]
    while waiting:
        each = waiting.pop()
        braces = BRACES.search(each)
        if braces:
            waiting += [each[: braces.start()] + choice + each[braces.end() :] for choice in braces[1].split(",")]
        else:
            names = [name for name in each.split("/") if name not in ("", ".")]
            patterns.append(names if "/" in each else ["**", *names])
        if len(patterns) + len(waiting) > MAX_PATTERNS:
            raise Refused("The pattern has too many alternatives.")
    return patterns


def _fits(names: list[str], pattern: list[str]) -> bool:
    """Return whether a path matches a pattern, in which ** stands for any number of names, or none."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(_fits(names[start:], pattern[1:]) for start in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


def _describe(entry: os.DirEntry[str]) -> str:
    name = _name(entry.path)
    if entry.is_symlink():
        return f"{name} -> {os.readlink(entry.path)}"
    return f"{name}/" if entry.is_dir() else f"{name} ({entry.stat().st_size} bytes)"


def _is_searched(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_size <= MAX_SEARCHED_SIZE


def _matches(expression: re.Pattern[str], path: str) -> Iterator[tuple[int, str]]:
    try:
        data = _bytes_of(path)
    except PermissionError:
        return
    if b"\0" not in data:
        for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
            if expression.search(line):
                yield number, line


ACTIONS: dict[str, Callable[..., str]] = {
    "read": read,
    "write": write,
    "edit": edit,
    "list": list_files,
    "search": search,
    "save": save,
}


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    answer: dict[str, object]
    try:
        answer = {"text": ACTIONS[request.pop("do")](**request)}
    except Refused as error:
        answer = {"error": str(error)}
    except (OSError, ValueError, RecursionError) as error:  # ValueError: a path with a NUL character
        text = f"{getattr(error, 'strerror', None) or error}: {getattr(error, 'filename', None) or ''}"
        answer = {"error": text, "number": getattr(error, "errno", None)}
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
