"""The list of behaviours, the code and the tests agree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ID = re.compile(r"\b(?:MSG|CTX|RUN|LIVE|UI|ADM)-\d\d\b")
ROW = re.compile(rf"^\| ({ID.pattern}) \| (.*)", re.MULTILINE)
ROWS = dict(ROW.findall((ROOT / "docs/behaviours.md").read_text(encoding="utf-8")))
PLANNED = "**Planned:**"
FOLDERS = ("agents", "bench", "chat", "config", "docs", "scripts", "static", "templates", "tests")
KINDS = {".py", ".md", ".html", ".js", ".css", ""}


def sources(*folders: str, kinds: set[str]) -> Iterator[Path]:
    """Yield the files of the repository's own folders, without installed or generated ones."""
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in kinds
                and path.is_file()
                and not {"node_modules", "vendor", "__pycache__"} & set(path.parts)
            ):
                yield path


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and text of each docstring in a Python file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if text := ast.get_docstring(node):
            yield f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}", text


def test_ids_that_are_used_exist() -> None:
    """A reader who looks an id up would not find it."""
    files = [*sources(*FOLDERS, kinds=KINDS), *ROOT.glob("*.md")]
    used = {found: path.name for path in files for found in ID.findall(path.read_text(encoding="utf-8"))}

    assert {found: name for found, name in used.items() if found not in ROWS} == {}


def test_every_row_has_a_test_that_names_it() -> None:
    """A promise would have no proof."""
    named = {
        found for path in sources("tests", kinds={".py"}) for _, text in docstrings(path) for found in ID.findall(text)
    }

    assert [row for row, text in ROWS.items() if row not in named and not text.startswith(PLANNED)] == []


def test_no_docstring_is_only_an_id() -> None:
    """A docstring would not say what it is about."""
    everything = sources("agents", "bench", "chat", "config", "tests", kinds={".py"})
    bare = [
        place
        for path in everything
        for place, text in docstrings(path)
        if ID.search(text) and not re.search(r"\w", ID.sub("", text))
    ]

    assert bare == []
