"""Which modules a page's script needs, so that the browser fetches them at once instead of one import after another."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from django.contrib.staticfiles import finders

from chat.caches import kept_unless_debug

_IMPORT = re.compile(r'^(?:import|export) (?:[^"]*? from )?"(\.[^"]+)";', re.MULTILINE)


@kept_unless_debug
def modules_of(script: str) -> tuple[str, ...]:
    """Name, by their paths below static/, all modules that a script imports, directly or not, in a stable order.

    What it imports later (`import(…)`) is not among them.
    """
    found: set[str] = set()
    waiting = [script]
    while waiting:
        module = waiting.pop()
        imported = {posixpath.normpath(f"{posixpath.dirname(module)}/{path}") for path in _imports(module)}
        waiting.extend(imported - found)
        found |= imported
    return tuple(sorted(found - {script}))


def _imports(module: str) -> list[str]:
    place = finders.find(module)
    if place is None:
        raise FileNotFoundError(f"static/{module} is imported, but is not there")
    return _IMPORT.findall(Path(place).read_text(encoding="utf-8"))
