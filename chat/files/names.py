"""Clean file names for display and headers."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 255
LONGEST_ENDING = 20
# Joiners have no place of their own but make emoji and some scripts what they are.
JOINERS = "\u200c\u200d"
# Control, format (such as bidi overrides), surrogate and line-breaking characters: misleading or not storable.
HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


def clean(name: str) -> str:
    """Keep the last part of a path, without characters that deceive, in 255 characters that keep its ending."""
    visible = "".join(char for char in name if char in JOINERS or unicodedata.category(char) not in HIDDEN)
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", visible))[-1]
    return _shortened(" ".join(last.split())) or "file"


def _shortened(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > LONGEST_ENDING:
        return name[:LONGEST]
    return stem[: LONGEST - len(ending) - 1] + dot + ending
