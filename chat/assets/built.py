"""What `make assets` has built: which file of static/dist/ has a script or a style sheet of static/."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings


class Built(NamedTuple):
    """Paths below static/: the file itself, and the scripts that it imports, for the browser to fetch at once."""

    file: str
    imports: list[str]


def built(source: str) -> Built:
    """Return what pages load for a source that is named in scripts/assets.js; with DEBUG, the source itself."""
    if settings.DEBUG:
        return Built(source, [])
    if source not in _manifest():
        raise FileNotFoundError(f"static/dist has no {source}: add it to scripts/assets.js and run `make assets`")
    return _manifest()[source]


@cache
def _manifest() -> dict[str, Built]:
    path = Path(settings.BASE_DIR) / "static/dist/manifest.json"
    return {source: Built(**found) for source, found in json.loads(path.read_text(encoding="utf-8")).items()}
