"""The manifest of `make assets`: the files of static/dist/ that contain the scripts and style sheets of static/."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings


class Built(NamedTuple):
    """A built file, and the scripts that it imports, which browsers should preload. Paths are relative to static/."""

    file: str
    imports: list[str]


def built_file(source: str) -> Built:
    """Return the file that pages load for a source that scripts/assets.js lists, or with DEBUG the source itself.

    Raise FileNotFoundError if the manifest does not contain the source.
    """
    if settings.DEBUG:
        return Built(source, [])
    if source not in _manifest():
        raise FileNotFoundError(f"static/dist has no {source}: add it to scripts/assets.js and run `make assets`")
    return _manifest()[source]


@cache
def _manifest() -> dict[str, Built]:
    path = Path(settings.BASE_DIR) / "static/dist/manifest.json"
    return {source: Built(**found) for source, found in json.loads(path.read_text(encoding="utf-8")).items()}
