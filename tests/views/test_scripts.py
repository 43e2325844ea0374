"""The page's scripts: folders import downwards, and only entry points act when they are imported."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.agreement import agree

SCRIPTS = Path(settings.BASE_DIR) / "static/js"
PANEL = Path(settings.BASE_DIR) / "templates/chat/session/panel_frame.html"
# Each folder may import from those before it. Modules loaded on demand, such as by a button, may be anywhere.
ORDER = ("net", "ui", "messages", "composer", "panel", "sidebar", "dialogs", "header", "pages")
MODULES = {path.relative_to(SCRIPTS).as_posix(): path.read_text() for path in sorted(SCRIPTS.rglob("*.js"))}
# Lines of a module without side effects: comments, imports, declarations, and their ends.
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
    """Modules have no import cycles, in which a module would run before its imports."""
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
    """Modules export `connect`, which the page calls, so that importing one does not add listeners."""
    acting = [
        f"{name}: {line}"
        for name, text in MODULES.items()
        if not name.startswith("pages/") or name == "pages/common.js"
        for line in text.splitlines()
        if not DECLARES.match(line)
    ]
    assert acting == []


def test_panel_fetches_each_of_its_tabs() -> None:
    """panel.js handles each tab of the panel. Any other tab would open empty, with an error in the console."""
    template, script = PANEL.read_text(), MODULES["panel/panel.js"]
    tabs = set(re.findall(r'data-tab="([^"]+)"', template))
    fetched = re.search(r"function fetchContent\(\) \{\s*return \{(.*?)\}\[selectedTab\(\)\]", script, re.DOTALL)
    assert fetched, (
        "Let fetchContent in static/js/panel/panel.js return { tab: function, … }[selectedTab()](), or change this."
    )
    agree(
        re.findall(r"(\w+):", fetched[1]),
        tabs,
        missing="Name the tab {} of panel_frame.html in fetchContent of static/js/panel/panel.js.",
        extra="Remove {} from fetchContent of static/js/panel/panel.js: panel_frame.html has no such tab.",
    )
    # The panel itself fetches the content of "about" again.
    agree(
        [*re.findall(r'selectedTab\(\) === "(\w+)"', script), "about"],
        tabs,
        missing="Call the `refreshAfter` of the tab {} for each frame in `connect` of static/js/panel/panel.js.",
        extra="Remove {} from `connect` of static/js/panel/panel.js: panel_frame.html has no such tab.",
    )
    agree(
        [*re.findall(r"^  data-(\w+)=", template, re.MULTILINE), "about"],
        {*tabs, "address"},
        missing="Give the panel in panel_frame.html the address of the tab {} as its attribute data-NAME.",
        extra="Remove data-{} from the panel in panel_frame.html: no tab has this name.",
    )
