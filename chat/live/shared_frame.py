"""A text frame for several sockets, which is encoded once for all of them."""

from __future__ import annotations

from collections.abc import Callable


class SharedFrame(str):
    """The text of a frame; `encoded` keeps what the servers make of it. `receivers` counts its sockets."""

    __slots__ = ("_encoded", "receivers")

    _encoded: dict[object, bytes]
    receivers: int

    @classmethod
    def of(cls, text: str, receivers: int) -> SharedFrame:
        frame = cls(text)
        frame._encoded = {}
        frame.receivers = receivers
        return frame

    def encoded(self, form: object, encode: Callable[[str], bytes]) -> bytes:
        """Return the frame in one form; `encode` makes it for the first socket."""
        data = self._encoded.get(form)
        if data is None:
            data = self._encoded[form] = encode(self)
        return data
