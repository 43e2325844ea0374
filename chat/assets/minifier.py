"""Minify scripts, where the minifier is installed: it has no packages for Macs, whose scripts stay as they are.

It brings the runtime of Go, which takes memory and signals of its process for good. So it gets a process of its own.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

logger = logging.getLogger(__name__)

# All scripts take less than a second.
TIMEOUT = 60.0


def installed_version() -> str:
    """Return the version of the minifier, "" if there is none."""
    try:
        return version("tdewolff-minify")
    except PackageNotFoundError:
        return ""


def minified(scripts: Mapping[str, str]) -> dict[str, str]:
    """Minify texts of scripts by their names. Where that fails, they stay as they are."""
    if not installed_version():
        return dict(scripts)
    try:
        done = subprocess.run(  # noqa: S603  # our own file
            [sys.executable, __file__], input=json.dumps(scripts), capture_output=True, text=True, timeout=TIMEOUT
        )
        done.check_returncode()
        made: dict[str, str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        logger.warning("Scripts are delivered without being minified: %s", error)
        return dict(scripts)
    return made


if __name__ == "__main__":
    import minify  # type: ignore  # it ships no types, and is not there on Macs

    made = {name: minify.string("application/javascript", text) for name, text in json.load(sys.stdin).items()}
    json.dump(made, sys.stdout)
