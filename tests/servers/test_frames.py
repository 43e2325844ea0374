"""Frames that both servers send: a client reads exactly what was sent, with and without compression."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from chat.live.socket_queue import SharedFrame
from chat.servers.frames import FEW_SOCKETS, LARGE, STREAM, FrameEncoder
from chat.servers.uvicorn_compression import Inflate
from tests.servers.conftest import MAX_MESSAGE_CHARS, Person

ALPHABET = st.sampled_from(["a", "the ", "\n", "é", "漢", "😀", '{"type":"text_delta"}'])
LENGTHS = st.sampled_from([0, 1, 50, 300, LARGE])
TEXTS = st.builds(lambda part, length: (part * length)[: LARGE * 2], ALPHABET, LENGTHS)


class Reader:
    """A client that has accepted compression with a context of any size."""

    def __init__(self, *, compresses: bool, keeps_context: bool = True) -> None:
        self._protocol = ClientProtocol(parse_uri("ws://localhost/"), state=State.OPEN, max_size=None)
        if compresses:
            self._protocol.extensions = [PerMessageDeflate(not keeps_context, True, 15, 15)]

    def read(self, data: bytes) -> list[str]:
        self._protocol.receive_data(data)
        assert self._protocol.parser_exc is None
        return [bytes(event.data).decode() for event in self._protocol.events_received() if isinstance(event, Frame)]


@given(
    bits=st.sampled_from([0, 9, 11, 15]),
    keeps_context=st.booleans(),
    steps=st.lists(st.tuples(TEXTS, st.sampled_from([0, 1, FEW_SOCKETS + 1]), st.booleans()), max_size=30),
)
def test_client_reads_what_was_sent(bits: int, keeps_context: bool, steps: list[tuple[str, int, bool]]) -> None:
    """LIVE-01: a client reads the frames of one or many sockets, small and large, with pauses, in any order."""
    encoder = FrameEncoder(bits, keeps_context=keeps_context)
    reader = Reader(compresses=bool(bits), keeps_context=keeps_context)
    for text, receivers, rests in steps:
        frame = SharedFrame.of(text, receivers) if receivers else text
        assert reader.read(encoder.encode(frame)) == [text]
        if rests:
            encoder.rest()


def test_frames_of_a_stream_are_compressed_with_those_before() -> None:
    """A delta compresses well after similar ones. A frame for many sockets is compressed once for all of them."""
    start = '{"type":"text_delta","id":"m_b38b8e8a3cd8bc86","offset":'
    deltas = [f'{start}{15 * n},"text":" of the {n}"}}' for n in range(20)]
    encoder = FrameEncoder(15)
    sizes = [len(encoder.encode(delta)) for delta in deltas]
    assert max(sizes[STREAM + 2 :]) < 30 < len(deltas[0]) < sizes[0]

    shared, others = SharedFrame.of("a message " * 50, FEW_SOCKETS + 1), [FrameEncoder(15), FrameEncoder(15)]
    first, second = [other.encode(shared) for other in others]
    assert first is second
    assert len(first) < 60


def test_context_is_forgotten_at_rest() -> None:
    """An idle socket has no compressor: its context is dropped if nothing was compressed between two checks."""
    encoder = FrameEncoder(15)
    for _ in range(STREAM):
        encoder.encode("text")
        assert encoder._context is None  # a few frames need no context
    encoder.encode("text")
    encoder.rest()
    assert encoder._context is not None
    encoder.rest()
    assert encoder._context is None


def test_a_read_is_not_decompressed_without_bounds() -> None:
    """Frames that unpack to more than the room for them are refused, and frames that no one reads are not unpacked."""
    inflate = Inflate(PerMessageDeflate(True, False, 15, 11))
    packer = zlib.compressobj(wbits=-15)
    packed = (packer.compress(b" " * 1_000_000) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    inflate.room = 2_500_000
    sizes = [len(inflate.decode(Frame(Opcode.TEXT, packed, rsv1=True), max_size=1_000_000).data) for _ in range(2)]
    assert sizes == [1_000_000, 1_000_000]
    with pytest.raises(PayloadTooBig):
        inflate.decode(Frame(Opcode.TEXT, packed, rsv1=True), max_size=1_000_000)

    inflate.is_unread = True
    assert inflate.decode(Frame(Opcode.TEXT, packed, rsv1=True)).data == b""
    assert inflate.decode(Frame(Opcode.PING, b"?")).data == b"?"


@pytest.mark.server
async def test_servers_compress_for_clients_that_offer_it(person: Person) -> None:
    """Both servers accept compression in both directions, also for refusals and answers (LIVE-01)."""
    session = await person.session()
    async with await person.socket(session, compress=15) as socket:
        assert socket.compress == 15
        await socket.send_json({"type": "sync", "ref": "x" * 200, "since": 0, "have": {}})
        changes = await socket.receive_json()
        assert changes["type"] == "changes"
        await socket.send_json({"type": "rename", "ref": "2", "title": "Renamed"})
        titles: list[str] = []
        while not titles:
            event = await socket.receive_json()
            titles += [event["session"]["title"]] if event["type"] == "session_updated" else []
        assert titles == ["Renamed"]


@pytest.mark.server
async def test_compressed_frame_beyond_the_limit_is_refused(person: Person) -> None:
    """A small frame is not unpacked beyond the limit of a command."""
    session = await person.session()
    async with await person.socket(session, compress=15) as socket:
        await socket.send_str(" " * (MAX_MESSAGE_CHARS * 40))
        async for _ in socket:
            pass
        assert socket.close_code == 1009
