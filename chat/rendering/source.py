"""Markdown source in one form: LF line ends, no NUL, no lone surrogates; whole or in pieces."""

import re

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
