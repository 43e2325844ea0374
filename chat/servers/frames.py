"""Encode the server's text frames (RFC 6455), compressed if the client accepts compression (RFC 7692).

Both servers use this module and only negotiate themselves. Frames from a server have no mask, so a frame for several
sockets is the same bytes for all of them.
"""

from __future__ import annotations

import zlib
from functools import partial

from chat.live.socket_queue import SharedFrame

# The window of a socket's compression. Its 2 KB contain the frames of the last seconds.
WINDOW_BITS = 11
MEMORY_LEVEL = 2
# In bytes. A frame of this size gains nothing from the frames before it, and is compressed quickly.
LARGE = 2_048
# If more sockets than this get a frame, it is compressed once for all of them instead of once per socket.
FEW_SOCKETS = 8
# The number of frames in a short time after which a context begins. A socket that only joins a session needs none.
STREAM = 12
# In characters. Without a context, shorter frames do not become smaller.
WORTHWHILE = 200
TEXT, COMPRESSED_TEXT = 0x81, 0xC1
END = b"\x00\x00\xff\xff"


class FrameEncoder:
    """Encodes the frames of one socket.

    A context, which compresses a frame with those before it, needs 16 KB. While frames follow each other it is kept;
    otherwise `rest` drops it. A frame that is compressed separately also ends the context, because it is in the
    client's window.
    """

    __slots__ = ("_bits", "_context", "_count", "_is_used", "_keeps_context")

    def __init__(self, window_bits: int = 0, *, keeps_context: bool = True) -> None:
        """Create an encoder. `window_bits` is the client's limit, or 0 without compression.

        `keeps_context`: the client accepts a context.
        """
        self._bits = min(window_bits, WINDOW_BITS)
        self._keeps_context = keeps_context
        self._context: zlib._Compress | None = None
        self._is_used = False
        self._count = 0

    def encode(self, text: str) -> bytes:
        """Return a text as one frame."""
        if isinstance(text, SharedFrame) and text.receivers > FEW_SOCKETS:
            is_small = not self._bits or len(text) < WORTHWHILE
            if not is_small:
                self._context = None
            return text.encoded(is_small or self._bits, plain if is_small else partial(deflate, bits=self._bits))
        if not self._bits:
            return text.encoded(True, plain) if isinstance(text, SharedFrame) else plain(text)
        if self._keeps_context and len(text) <= LARGE:
            self._count += 1
            if self._count > STREAM:
                return self._in_context(text)
        if len(text) < WORTHWHILE:
            return plain(text)
        self._context = None
        return deflate(text, bits=self._bits)

    def rest(self) -> None:
        """Drop the context if nothing was compressed with it since the last call."""
        if not self._is_used:
            self._context, self._count = None, 0
        self._is_used = False

    def _in_context(self, text: str) -> bytes:
        context = self._context
        if context is None:
            context = self._context = _compressor(zlib.Z_DEFAULT_COMPRESSION, self._bits)
        self._is_used = True
        return _framed(COMPRESSED_TEXT, _compress(context, text))


def plain(text: str) -> bytes:
    """Return a text as one uncompressed frame."""
    return _framed(TEXT, text.encode())


def deflate(text: str, *, bits: int) -> bytes:
    """Return a text as one frame that is compressed separately."""
    level = zlib.Z_BEST_SPEED if len(text) > LARGE else zlib.Z_DEFAULT_COMPRESSION
    return _framed(COMPRESSED_TEXT, _compress(_compressor(level, bits), text))


def _compressor(level: int, bits: int) -> zlib._Compress:
    return zlib.compressobj(level, zlib.DEFLATED, -bits, MEMORY_LEVEL)


def _compress(compressor: zlib._Compress, text: str) -> bytes:
    data = compressor.compress(text.encode())
    return (data + compressor.flush(zlib.Z_SYNC_FLUSH)).removesuffix(END)


def _framed(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((kind, size)) + payload
    if size < 2**16:
        return bytes((kind, 126)) + size.to_bytes(2, "big") + payload
    return bytes((kind, 127)) + size.to_bytes(8, "big") + payload
