"""Markdown source: in one form (LF line ends, no NUL, no lone surrogates), whole or in pieces; and shown as it is."""

import re
from collections.abc import Iterator

from chat.rendering.markdown.sanitize import escape

PLAIN = '<pre class="plain">'
# Source is shown in blocks of at most this many characters, so that a browser need not lay out all of it at once.
LONGEST_PLAIN = 8_000

_ODD = re.compile("[\r\0\ud800-\udfff]")


def normalise(text: str) -> str:
    """Return text that a parser and UTF-8 accept (MSG-12): surrogate pairs are joined, what cannot be is U+FFFD."""
    if _ODD.search(text) is None:
        return text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


class Pieces:
    """Normalise a text that arrives in pieces, wherever it was cut."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, piece: str) -> str:
        """Return what can be said so far; half of a line end or of a surrogate pair waits for the next piece."""
        text = self._held + piece
        self._held = text[-1] if text and (text[-1] == "\r" or "\ud800" <= text[-1] <= "\udbff") else ""
        return normalise(text[: len(text) - len(self._held)])

    def end(self) -> str:
        """Return what was still waiting."""
        held, self._held = self._held, ""
        return normalise(held)


def plain(source: str) -> str:
    """Return source as a block of HTML that shows it as it is."""
    return f"{PLAIN}<code>{escape(source.strip(chr(10)))}</code></pre>"


class PlainText:
    """A growing text that is shown as its source, in blocks; however it is cut, the blocks are the same."""

    def __init__(self, text: str = "") -> None:
        self._text = text

    def add(self, text: str) -> list[str]:
        """Take more text, return the HTML of the blocks that are complete now."""
        self._text += text
        return list(self._complete())

    def end(self) -> list[str]:
        """Return the HTML of the blocks that are left."""
        blocks = [*self._complete(), self.html()]
        self._text = ""
        return list(filter(None, blocks))

    def html(self) -> str:
        """Return the HTML of what is not complete."""
        return plain(self._text) if self._text.strip() else ""

    def _complete(self) -> Iterator[str]:
        start = 0
        while len(self._text) - start > LONGEST_PLAIN:
            newline = self._text.rfind("\n", start, start + LONGEST_PLAIN)
            end = newline + 1 if newline >= 0 else start + LONGEST_PLAIN
            if (block := self._text[start:end]).strip():
                yield plain(block)
            start = end
        self._text = self._text[start:]


def plain_blocks(source: str) -> tuple[str, ...]:
    """Return all blocks of a text that is shown as its source."""
    return tuple(PlainText(source).end())
