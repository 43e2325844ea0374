"""The compression of sockets on uvicorn: how it is negotiated, and how incoming frames are decompressed."""

from __future__ import annotations

from collections.abc import Sequence

from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.frames import CTRL_OPCODES, Frame
from websockets.typing import ExtensionParameter

from chat.servers.frames import WINDOW_BITS, FrameEncoder


class Inflate(PerMessageDeflate):
    """Negotiated compression. The library decompresses incoming frames; `FrameEncoder` compresses outgoing ones.

    The library decompresses all frames of a read before the protocol gets the first one, so `room` limits the bytes
    that one read can produce. Frames that no one will read are not decompressed (`is_unread`).
    """

    def __init__(self, agreed: PerMessageDeflate) -> None:
        self.room = 0
        self.is_unread = False
        no_context, bits = agreed.remote_no_context_takeover, agreed.remote_max_window_bits
        super().__init__(no_context, True, bits, agreed.local_max_window_bits)
        self._keeps_context = not agreed.local_no_context_takeover

    def outgoing(self) -> FrameEncoder:
        return FrameEncoder(self.local_max_window_bits, keeps_context=self._keeps_context)

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        if self.is_unread and frame.opcode not in CTRL_OPCODES:
            return Frame(frame.opcode, b"", frame.fin)
        decoded = super().decode(frame, max_size=max(1, self.room if max_size is None else min(self.room, max_size)))
        self.room -= len(decoded.data)
        return decoded

    def encode(self, frame: Frame) -> Frame:
        """Return a frame unchanged, because each frame may also be sent without compression."""
        return frame


class DeflateFactory(ServerPerMessageDeflateFactory):
    """Accepts compression. Clients keep no context, so that an idle socket has none."""

    def process_request_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> tuple[list[ExtensionParameter], PerMessageDeflate]:
        response, agreed = super().process_request_params(params, accepted_extensions)
        return response, Inflate(agreed)


DEFLATE = DeflateFactory(client_no_context_takeover=True, server_max_window_bits=WINDOW_BITS)
