"""docs/behaviours.md agrees with the tests: each id in them exists, and each row has a test that contains its id."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
# UTF-16 has the form of an id, but is not a row.
ID = re.compile(r"\b(?!UTF-)[A-Z]{2,5}-\d\d\b")
ROW = re.compile(rf"^\| ({ID.pattern}) \| (.*) \|$", re.MULTILINE)
LISTED = ROW.findall((ROOT / "docs/behaviours.md").read_text())
ROWS = dict(LISTED)
PLANNED = {name for name, text in ROWS.items() if text.startswith("*Planned*")}
NAMED = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.(?:py|md|js|css|html|toml))?)`")
PLACES = (ROOT, ROOT / "chat", ROOT / "agents", ROOT / "agents/providers", ROOT / "static/js", ROOT / "tests")


def tracked(*suffixes: str) -> list[Path]:
    """Return the repository's files with one of the suffixes. Without git, as in a source archive, search folders."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\n") if listed.returncode == 0 else []
    paths = [ROOT / name for name in names if name] or [
        path for folder in ("agents", "chat", "config", "docs", "tests") for path in (ROOT / folder).rglob("*")
    ]
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of the module and of each class and function in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield getattr(node, "name", "module"), ast.get_docstring(node) or ""


def test_each_id_exists() -> None:
    """An id that no row has would send readers looking for nothing."""
    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in tracked(".py", ".md", ".html", ".js", ".css")
        for name in ID.findall(path.read_text())
        if name not in ROWS
    }
    assert not unknown, "docs/behaviours.md has no such rows: " + "; ".join(sorted(unknown))


def test_each_id_has_one_row() -> None:
    assert len(LISTED) == len(ROWS)


def test_each_row_has_a_test() -> None:
    """A row without a test is a promise that nothing holds."""
    proven = {
        name
        for path in tracked(".py")
        if path.is_relative_to(ROOT / "tests") and path.name != Path(__file__).name
        for _, text in docstrings(path)
        for name in ID.findall(text)
    }
    unproven = sorted(set(ROWS) - proven - PLANNED)
    assert not unproven, f"Name them in the docstrings of the tests that prove them: {', '.join(unproven)}"


def test_each_docstring_says_something() -> None:
    """A docstring that is only an id makes the reader look it up."""
    silent = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in tracked(".py")
        for name, text in docstrings(path)
        if ID.search(text) and not re.search(r"[a-z]{3}", ID.sub("", text).replace("and", ""))
    ]
    assert not silent, "Say what the test proves, beside the id of its row: " + "; ".join(silent)


@pytest.mark.parametrize("document", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_paths_in_documents_exist(document: str) -> None:
    """A document that names a file that has moved misleads."""
    named = NAMED.findall((ROOT / "docs" / document).read_text())
    assert [path for path in named if not any((place / path).exists() for place in PLACES)] == []
