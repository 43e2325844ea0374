"""Clean file names for display and headers."""

from __future__ import annotations

import re
import unicodedata

MAX_LENGTH = 255
MAX_ENDING_LENGTH = 20
# Joiners have no width, but emoji and some scripts need them.
JOINERS = "\u200c\u200d"
# Control, format (such as bidi overrides), surrogate and line-breaking characters, which mislead or cannot be stored.
HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


def clean(name: str) -> str:
    """Return the last part of a path, without misleading characters, in at most 255 characters with its extension."""
    visible = "".join(char for char in name if char in JOINERS or unicodedata.category(char) not in HIDDEN)
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", visible))[-1]
    return _shortened(" ".join(last.split())) or "file"


def of_upload(name: str | None) -> str:
    """Return the name of a file from a form. Browsers, curl and many HTTP libraries write a quotation mark as %22.

    See https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data.
    """
    return (name or "").replace("%22", '"')


def _shortened(name: str) -> str:
    if len(name) <= MAX_LENGTH:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > MAX_ENDING_LENGTH:
        return name[:MAX_LENGTH]
    return stem[: MAX_LENGTH - len(ending) - 1] + dot + ending
