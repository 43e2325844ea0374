"""The tags between which some servers leave the reasoning of a model in its answer: <think> and </think>.

vLLM and SGLang separate the reasoning only if they are started with a parser for it, LM Studio only for some models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

OPEN, CLOSE = "<think>", "</think>"
# The most white space, in characters, before the opening tag.
MAX_SPACE = 100
# A closing tag on a line of its own.
_CLOSE_LINE = re.compile(rf"^[ \t]*{CLOSE}[ \t]*$", re.MULTILINE)


class ThinkingSplitter:
    """A splitter of an answer that arrives in pieces of any length. The tags may be split between pieces.

    Only a tag at the beginning of the answer counts, because a model may also write about these tags. Each character
    is read once.
    """

    def __init__(self) -> None:
        self._may_open = True
        self._thinks = False
        self._trims = False
        # The end of the text so far, if it may be the beginning of a tag.
        self._held = ""

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield the next text in one or two pieces, each with whether it is reasoning."""
        text, self._held = self._held + text, ""
        if self._may_open:
            begin = text.lstrip()
            if OPEN.startswith(begin) and begin != OPEN and len(text) < MAX_SPACE:
                self._held = text
                return
            self._may_open, self._thinks = False, begin.startswith(OPEN)
            text, self._trims = (begin[len(OPEN) :], True) if self._thinks else (text, False)
        if self._thinks:
            text, tag, rest = text.partition(CLOSE)
            if not tag:
                text, self._held = _without_open_tag(text)
            yield self._trimmed(text), True
            if not tag:
                return
            self._thinks, self._trims, text = False, True, rest
        yield self._trimmed(text), False

    def end(self) -> tuple[str, bool]:
        """Return the rest of the text, with whether it is reasoning. All later text belongs to the answer."""
        rest, thinks = self._held, self._thinks
        self._held, self._may_open, self._thinks, self._trims = "", False, False, False
        return rest, thinks

    def _trimmed(self, text: str) -> str:
        """Return the text without the white space directly after a tag."""
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        return text


def without_thinking(reply: str) -> str:
    """Return a whole answer without the reasoning at its beginning.

    If the template of the model ends with the opening tag, the answer has only the closing one.
    """
    close = _CLOSE_LINE.search(reply)
    if close is None:
        return reply
    thinking = reply[: close.start()].lstrip().removeprefix(OPEN)
    return reply if OPEN in thinking else reply[close.end() :].lstrip()


def _without_open_tag(text: str) -> tuple[str, str]:
    """Return the text without a beginning of the closing tag at its end, and this beginning, or ""."""
    place = text.rfind(CLOSE[0], max(0, len(text) - len(CLOSE) + 1))
    return (text[:place], text[place:]) if place >= 0 and CLOSE.startswith(text[place:]) else (text, "")
