"""Errors about environment variables that contain API keys. A key that is written in place of the name is not shown."""

from __future__ import annotations

import re


def not_set(name: str) -> str:
    """Return a sentence which says that a variable is not set. A name in an unusual form may be a key: it is not shown.

    Such names are valid, because Docker and Kubernetes can set variables with any name.
    """
    if re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        return f"the environment variable {name} is not set"
    return "the environment variable that it names is not set (it must be a name, not the key itself)"
