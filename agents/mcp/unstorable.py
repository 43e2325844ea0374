"""Replace characters that cannot be stored in the messages of MCP servers, before the SDK reads them.

The SDK refuses a whole message that contains half a surrogate pair, for example a list with one description that was
cut within an emoji. NUL is replaced, too, because databases refuse it. Pure.
"""

from __future__ import annotations

import re

# Escapes of JSON: a backslash, a surrogate pair, the beginning of an escape at the end of the data, and characters that
# cannot be stored. All other escapes contain no second backslash, so that they need not be matched.
_ESCAPES = re.compile(
    rb"""\\(?:
        \\
        | u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
        | (?P<begun> (?:u[0-9a-fA-F]{0,3})?\Z | u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z)
        | (?P<unstorable> u[dD][89a-fA-F][0-9a-fA-F]{2} | u0000)
    )""",
    re.VERBOSE,
)
_REPLACEMENT = rb"\ufffd"


class StorableJson:
    """JSON that arrives in pieces, with U+FFFD instead of NUL and lone surrogates.

    An escape at the end of a piece waits for the next piece.
    """

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun = b""

    def add(self, piece: bytes) -> bytes:
        """Return the data that the piece completes, or b""."""
        data, self._begun = self._begun + piece, b""
        return _ESCAPES.sub(self._replace, data)

    def end(self) -> bytes:
        """Return the rest of the data: an escape that was not completed, else b""."""
        begun, self._begun = self._begun, b""
        return begun

    def _replace(self, escape: re.Match[bytes]) -> bytes:
        if escape["begun"] is not None:
            self._begun = escape[0]
            return b""
        return escape[0] if escape["unstorable"] is None else _REPLACEMENT


def storable_json(data: bytes) -> bytes:
    """Return JSON with U+FFFD instead of NUL and lone surrogates."""
    json = StorableJson()
    return json.add(data) + json.end()
