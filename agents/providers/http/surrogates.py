"""Characters in two halves: JavaScript servers cut a stream between the two code units of an emoji."""

from __future__ import annotations

LONE = "\ufffd"


def mend(text: str) -> str:
    """Join the halves that stand side by side; one that stands alone becomes U+FFFD (MSG-12)."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class SurrogateJoiner:
    """Mends the pieces of one part, each as it comes: a half at the end of a piece waits for the next one."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return the text that is complete so far, or ""."""
        if not self._half and _is_sound(piece):
            return piece
        text = self._half + piece
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return mend(text.removesuffix(self._half))

    def end(self) -> str:
        """What is left when no piece follows."""
        half, self._half = self._half, ""
        return LONE if half else ""


def _is_sound(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
