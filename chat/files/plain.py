"""Detect text files and their encoding."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from mimetypes import guess_type

from chat.files.contents import Contents, Unusable

# The most characters of a file's text for a model. This is about 100,000 tokens.
MAX_CHARS = 300_000
# In bytes. Only the beginning of a file is checked, because the rest would take longer and rarely change the result.
MAX_BYTES = 4 * MAX_CHARS
CUT = "\n\n[The rest is left out.]"
# Control characters that do not occur in text files. Tabs, line ends, page breaks, escapes (logs) and EOF marks do.
BINARY = re.compile(r"[\x00-\x07\x0e-\x19\x1c-\x1f]")
MOSTLY = 0.8
UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)


def read(data: bytes) -> Contents:
    """Read a text file. Raise Unusable if it is not text."""
    head, rest = data[:MAX_BYTES], data[MAX_BYTES:]
    text = next((text for _name, text in _decodings(head, whole=not rest) if not BINARY.search(text)), None)
    if text is None or (b"\0" in rest and not head.startswith(UTF_16)):
        raise Unusable("unsupported")
    return Contents("text", "text/plain", data, text=bounded(text, more=bool(rest)))


def is_named_as_text(name: str) -> bool:
    """Return whether a file's name has the extension of a text format."""
    return (guess_type(name)[0] or "").startswith("text/")


def charset_of(data: bytes) -> str:
    """Return the name of a text file's encoding, or "" if the file is not text."""
    head, rest = data[:MAX_BYTES], data[MAX_BYTES:]
    found = _decodings(head, whole=not rest)
    return next((name.removesuffix("-sig") for name, text in found if not BINARY.search(text)), "")


def bounded(text: str, *, more: bool = False) -> str:
    """Truncate a text for models, with a note if there is more of it. Drop characters that cannot be stored."""
    text = text.replace("\0", "").encode(errors="replace").decode()
    return text[:MAX_CHARS] + CUT if more or len(text) > MAX_CHARS else text


def _decodings(data: bytes, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Yield each encoding that fits, with the decoded text. The most likely encoding comes first."""
    if data.startswith(UTF_16):
        yield from _as(data, "utf-16", whole)
        return
    yield from _as(data, "utf-8-sig", whole)
    if not data.startswith(BOM_UTF8):
        yield from (found for found in _as(data, "gb18030", whole) if _is_chinese(found[1]))
        yield from _as(data, "windows-1252", whole)


def _as(data: bytes, encoding: str, whole: bool) -> Iterator[tuple[str, str]]:
    try:
        yield encoding, getincrementaldecoder(encoding)().decode(data, final=whole)
    except UnicodeDecodeError:
        return


def _is_chinese(text: str) -> bool:
    """Return whether most characters are common ones. Western text that is valid GB18030 by chance has rare ones."""
    beyond = [character for character in text if character > "\x7f"]
    common = "".join(beyond).encode("gb2312", errors="ignore")
    return len(common) // 2 >= MOSTLY * len(beyond)
