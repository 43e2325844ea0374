"""Translations for tests: a compiled catalog of a few sentences, in the format of msgfmt."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from django.utils.translation import to_locale

HEADER = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=1; plural=0;\n"
MAGIC = 0x950412DE


def write_catalog(folder: Path, language: str, sentences: Mapping[str, str]) -> None:
    """Write `sentences` (English: translation) to a catalog below a folder of LOCALE_PATHS."""
    place = folder / to_locale(language) / "LC_MESSAGES" / "django.mo"
    place.parent.mkdir(parents=True)
    pairs = sorted({"": HEADER, **sentences}.items())
    place.write_bytes(_compiled([english.encode() for english, _ in pairs], [words.encode() for _, words in pairs]))


def _compiled(english: list[bytes], words: list[bytes]) -> bytes:
    """Return a catalog in GNU gettext's format: a header, two tables of (length, offset), NUL-terminated strings."""
    strings = [*english, *words]
    offset = 28 + 8 * len(strings)
    tables, data = b"", b""
    for string in strings:
        tables += struct.pack("<II", len(string), offset + len(data))
        data += string + b"\0"
    head = struct.pack("<IIIIIII", MAGIC, 0, len(english), 28, 28 + 8 * len(english), 0, 0)
    return head + tables + data
