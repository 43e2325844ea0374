"""The arguments of a call while the model writes them. The values of unfinished JSON text are shown readably."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Literal

from django.utils.safestring import SafeString, mark_safe

from agents.safe_text import clean
from chat.rendering.markdown.live_text import LiveText
from chat.rendering.markdown.render import in_blocks
from chat.rendering.markdown.stream import Append, Op

# In characters. A value is drawn in pieces of about this length, so that no frame redraws more.
PIECE = 2_000
# In characters. A longer key is not part of JSON that a tool accepts.
MAX_KEY_LENGTH = 200
_SPACE = re.compile(r"[\s,{]+")
_KEY = re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL)
_COLON = re.compile(r"[\s:]+")
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])")
_RAW = re.compile(r'[^"{}\[\],]+')
_MAX_ESCAPE_LENGTH = 12

Mode = Literal["start", "between", "key", "colon", "string", "raw", "raw string", "plain"]


class ArgumentsStream:
    """The blocks of growing arguments: for each value a heading, and its text with decoded escapes.

    The class has the methods of a MarkdownStream that LiveText needs. It reads each character once.
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.is_exact = True
        self.provisional: dict[int, str] = {}
        self._mode: Mode = "start"
        self._held = ""
        self._open: list[str] = []
        self._length = 0
        self._depth = 0
        self._ops: list[Op] = []

    def start(self, now: float, seconds: float | None = None) -> None:
        """Begin a frame. There is no budget, because drawing costs little."""

    def feed(self, text: str) -> list[Op]:
        """Read more of the JSON text, and return the blocks that are complete."""
        text, at = self._held + text, 0
        while at < len(text) and (end := self._read(text, at)) > at:
            at = end
        self._held = text[at:]
        ops, self._ops = self._ops, []
        return ops

    def finish(self) -> list[Op]:
        """Freeze the open block, and return it."""
        self._freeze()
        ops, self._ops = self._ops, []
        return ops

    def complete(self, index: int, html: str) -> Op:
        """Raise IndexError, because no block is drawn elsewhere."""
        raise IndexError(index)

    def tail_html(self) -> str:
        return _pre("".join(self._open)) if self._open else ""

    def _read(self, text: str, at: int) -> int:
        """Read one token. Return the index of its end, or `at` if more text is needed."""
        match self._mode:
            case "start" | "between":
                return self._between(text, at)
            case "key":
                return self._key(text, at)
            case "colon":
                end = _end(_COLON, text, at)
                if end < len(text):
                    self._mode = "string" if text[end] == '"' else "raw"
                    return end + 1 if text[end] == '"' else self._raw(text, end)
                return end
            case "string" | "raw string":
                return self._string(text, at)
            case "raw":
                return self._raw(text, at)
            case _:
                self._add(text[at:])
                return len(text)

    def _between(self, text: str, at: int) -> int:
        if self._mode == "start" and text[at:].lstrip()[:1] not in ("{", ""):
            self._mode = "plain"
            return self._read(text, at)
        end = _end(_SPACE, text, at)
        if end > at:
            self._mode = "between"
            return end
        self._mode = "key" if text[at] == '"' else "between"
        return at + 1

    def _key(self, text: str, at: int) -> int:
        found = _KEY.match(text, at)
        if found is None:
            if len(text) - at <= MAX_KEY_LENGTH:
                return at
            self._mode = "plain"
            return self._read(text, at)
        self._freeze()
        self._append(f'<p class="tool-part">{escape(_decoded(found[1]))}</p>')
        self._mode, self._depth = "colon", 0
        return found.end()

    def _string(self, text: str, at: int) -> int:
        is_raw = self._mode == "raw string"
        if text[at] == '"':
            self._mode = "raw" if is_raw else "between"
            self._add('"' if is_raw else "")
            return at + 1
        if text[at] != "\\":
            end = _end(_PLAIN, text, at)
            self._add(text[at:end])
            return end
        found = _ESCAPE.match(text, at)
        # The first half of a surrogate pair waits for the second half.
        if found is None or (len(found[0]) == 6 and found[0][2:4].lower() in ("d8", "d9", "da", "db")):
            if len(text) - at < _MAX_ESCAPE_LENGTH:
                return at
            found = found or re.compile(r"\\.", re.DOTALL).match(text, at)
        escaped = found[0] if found else text[at]
        self._add(escaped if is_raw else _decoded(escaped))
        return at + len(escaped)

    def _raw(self, text: str, at: int) -> int:
        char = text[at]
        if self._depth == 0 and char in ",}":
            self._mode = "between"
            return at + 1
        if char in '"{}[],':
            self._depth += (char in "{[") - (char in "}]")
            self._mode = "raw string" if char == '"' else "raw"
            self._add(char)
            return at + 1
        end = _end(_RAW, text, at)
        self._add(text[at:end])
        return end

    def _add(self, text: str) -> None:
        if not text:
            return
        self._open.append(text)
        self._length += len(text)
        if self._length > PIECE:
            whole = "".join(self._open)
            cut = whole.rfind("\n") + 1 or len(whole)
            self._append(_pre(whole[:cut]))
            self._open = [whole[cut:]] if whole[cut:] else []
            self._length = len(whole) - cut

    def _freeze(self) -> None:
        if self._open:
            self._append(_pre("".join(self._open)))
        self._open, self._length = [], 0

    def _append(self, html: str) -> None:
        self.blocks.append(html)
        self._ops.append(Append(html))


class LiveArguments(LiveText):
    """Makes the frames of arguments that a model is writing."""

    def __init__(self, message_id: str) -> None:
        super().__init__(message_id, stream=ArgumentsStream())

    def _remember(self, text: str, blocks: tuple[str, ...]) -> None:
        """Do nothing, because the cached blocks of a text are those of Markdown."""


def arguments_html(text: str) -> SafeString:
    """Draw arguments as HTML, as far as they are written."""
    stream = ArgumentsStream()
    stream.feed(text)
    stream.finish()
    return mark_safe(in_blocks(tuple(stream.blocks)))  # noqa: S308  # escaped


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _decoded(text: str) -> str:
    try:
        return clean(str(json.loads(f'"{text}"', strict=False)))
    except ValueError:
        return text


def _pre(text: str) -> str:
    # HTML drops a newline after <pre>, so one is added.
    return f'<pre class="written">\n{escape(text, quote=False)}</pre>'
