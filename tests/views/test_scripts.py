"""The page's scripts: folders import downwards, and only entry points act when they are imported."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.agreement import agree

SCRIPTS = Path(settings.BASE_DIR) / "static/js"
# Each folder may import those before it. What is imported later, when a button is pressed, may come from anywhere.
ORDER = ("net", "ui", "messages", "composer", "panel", "sidebar", "dialogs", "header", "pages")
MODULES = {path.relative_to(SCRIPTS).as_posix(): path.read_text() for path in sorted(SCRIPTS.rglob("*.js"))}
# At the beginning of a line of a module that does nothing by itself: comments, imports, declarations, and their ends.
DECLARES = re.compile(r"(?:import |export |const |let |(?:async )?function |class |//|/\*|\*| |\}|\)|\]|\"|$)")


def test_every_module_is_in_a_known_folder() -> None:
    agree(
        ORDER,
        [posixpath.dirname(name) for name in MODULES],
        missing="Add static/js/{} to ORDER in this file, after what it may import, and to docs/architecture.md.",
        extra="Remove {} from ORDER in this file: static/js has no such folder.",
    )


@pytest.mark.parametrize("folder", ORDER)
def test_folders_import_downwards(folder: str) -> None:
    above = ORDER[ORDER.index(folder) + 1 :]
    wrong = []
    for name, text in MODULES.items():
        if not name.startswith(f"{folder}/"):
            continue
        for path in re.findall(r'^import [^(]*?"(\.[^"]+)";', text, re.MULTILINE):
            imported = posixpath.normpath(posixpath.join(folder, path))
            if imported.split("/")[0] in above:
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """A circle runs some module before what it imports."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " → ".join((*above, name))
        if name in done:
            return
        for path in re.findall(r'^import [^(]*?"(\.[^"]+)";', MODULES[name], re.MULTILINE):
            if "/vendor/" not in path:
                visit(posixpath.normpath(posixpath.join(posixpath.dirname(name), path)), (*above, name))
        done.add(name)

    for name in MODULES:
        visit(name, ())


def test_only_entry_points_act_when_they_are_imported() -> None:
    """Modules export `connect`, which the page calls: what one imports must not begin to listen by that."""
    acting = [
        f"{name}: {line}"
        for name, text in MODULES.items()
        if not name.startswith("pages/") or name == "pages/common.js"
        for line in text.splitlines()
        if not DECLARES.match(line)
    ]
    assert acting == []
