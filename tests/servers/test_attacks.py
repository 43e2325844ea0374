"""Attacks of strangers and of malicious users; each of these once stopped or filled a server."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from io import BytesIO
from typing import cast

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, FormData, WSMsgType, WSServerHandshakeError

from chat.command_frames import BYTES_PER_CHARACTER, FRAME_OVERHEAD
from chat.servers.limits import MAX_FRAGMENTS
from tests.servers.conftest import (
    CONNECTIONS_PER_ADDRESS,
    MAX_MESSAGE_CHARS,
    SOCKETS_PER_USER,
    STREAMS_PER_USER,
    Person,
    Running,
)

pytestmark = pytest.mark.server
MEGABYTE = 1024 * 1024
MAX_FRAME_LENGTH = BYTES_PER_CHARACTER * MAX_MESSAGE_CHARS + FRAME_OVERHEAD
PATIENCE = 30


class Raw:
    """A raw connection on which the test writes any bytes."""

    def __init__(self, server: Running) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.settimeout(PATIENCE)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_on(self, data: bytes) -> None:
        """Send the same data repeatedly. Raise ConnectionError when the server closes the connection."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:  # a fast machine would otherwise send gigabytes
            self.send(data)

    def ask(self, *lines: str, body: bytes = b"") -> tuple[int, str, bytes]:
        self.send("\r\n".join([*lines, "Host: 127.0.0.1", "", ""]).encode() + body)
        return self.response()

    def response(self) -> tuple[int, str, bytes]:
        """Read a response; return its status, media type and body."""
        head = b""
        while b"\r\n\r\n" not in head:
            data = self.socket.recv(65536)
            assert data, head
            head += data
        head, body = head.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _colon, value in (line.partition(":") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += self.socket.recv(65536)
        return int(lines[0].split()[1]), headers.get("content-type", ""), body

    def rest(self) -> bytes:
        """Return everything that the server still sends before it ends the connection."""
        received = b""
        try:
            while data := self.socket.recv(65536):
                received += data
        except ConnectionError:
            pass
        return received

    def is_over(self) -> bool:
        """Return whether the server ends the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True


def problem_in(answer: tuple[int, str, bytes]) -> tuple[int, str]:
    """Return the status and the code of a problem response."""
    status, media_type, body = answer
    assert media_type == "application/problem+json", body
    problem = json.loads(body)
    assert problem["status"] == status
    assert problem["detail"]
    return status, problem["code"]


MULTIPART = "Content-Type: multipart/form-data; boundary=XX"
HUGE = f"Content-Length: {100 * MEGABYTE}"


def test_stranger_s_body_is_refused_unread(running: Running) -> None:
    """A stranger's body is refused before it is read.

    The server once held a hundred megabytes of such bodies in memory.
    """
    with Raw(running) as raw:
        status, media_type, body = raw.ask("POST /accounts/sign-in/ HTTP/1.1", MULTIPART, HUGE)
        assert (status, media_type) == (413, "text/html; charset=utf-8")
        assert b"The request is too large." in body
    for address, expected in (
        ("/api/sessions", (413, "too_large")),
        ("/api/sessions/import", (401, "signed_out")),
        ("/api/sessions/s_0/attachments", (401, "signed_out")),
    ):
        with Raw(running) as raw:
            size = HUGE if "attachments" not in address else f"Content-Length: {MEGABYTE + 1}"
            assert problem_in(raw.ask(f"POST {address} HTTP/1.1", MULTIPART, size)) == expected
    with Raw(running) as raw:
        script = ("Accept: application/json", "Accept-Language: zh-hans")
        status, media_type, body = raw.ask("POST /import/file HTTP/1.1", MULTIPART, HUGE, *script)
        assert (status, media_type, json.loads(body)["code"]) == (401, "application/json", "signed_out")


def test_stranger_s_endless_body_is_cut_off(running: Running) -> None:
    """A body without a length is counted as it arrives; for a while, data after the refusal is dropped."""
    before = running.memory()
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with Raw(running) as raw:
        raw.send(b"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            raw.send_on(chunk * 100)
    assert running.memory() - before < 20 * MEGABYTE


def test_refusal_reaches_a_client_that_is_still_sending(running: Running) -> None:
    with Raw(running) as raw:
        raw.send(b"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3000000\r\n\r\n")
        raw.send(b"x" * 3_000_000)
        assert problem_in(raw.response()) == (413, "too_large")
        assert raw.ask("GET /healthz HTTP/1.1")[0] == 200  # the rest was not parsed as another request


async def test_file_beyond_its_limit_is_refused_by_name(person: Person) -> None:
    session = await person.session()
    for address, data in (
        (f"/sessions/{session}/attachments", BytesIO(b"x" * (2 * MEGABYTE + 70_000))),
        (f"/api/sessions/{session}/attachments", BytesIO(b"x" * (2 * MEGABYTE + 70_000))),
    ):
        form = {"file": data}
        async with person.http.post(address, data=form, headers={"Accept": "application/json"}) as refused:
            assert refused.status == 413
            problem = await refused.json(content_type=None)
            assert problem["code"] == "too_large"
            assert "2 MB" in (problem.get("detail") or problem.get("message"))


@pytest.mark.parametrize("body", [b"--XX--", b"--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1"])
def test_broken_form_is_a_problem(running: Running, body: bytes) -> None:
    """A malformed form gets a problem document; Twisted's own parser answered a bare 400."""
    with Raw(running) as raw:
        length = f"Content-Length: {len(body)}"
        assert problem_in(raw.ask("POST /api/sessions/import HTTP/1.1", MULTIPART, length, body=body))[0] in (400, 401)
        assert raw.ask("POST /accounts/sign-in/ HTTP/1.1", MULTIPART, length, body=body)[0] in (400, 403)


@pytest.mark.parametrize(
    "request_lines",
    [
        ("GET /api/sessions NOT-HTTP",),
        ("POST /api/sessions HTTP/1.1", "Transfer-Encoding: chunked", "Content-Length: 3"),
        ("GET /api/sessions HTTP/1.1", "Bad Header: x"),
    ],
)
def test_what_is_not_http_is_a_problem_too(running: Running, request_lines: tuple[str, ...]) -> None:
    with Raw(running) as raw:
        assert problem_in(raw.ask(*request_lines)) == (400, "malformed")
        assert raw.is_over()


def test_broken_chunk_ends_the_connection(running: Running) -> None:
    with Raw(running) as raw:
        raw.send(b"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        raw.send(b"no length\r\n")
        assert problem_in(raw.response()) == (400, "malformed")
        assert raw.is_over()


@pytest.mark.parametrize(
    ("heads", "body"),
    [
        (("Transfer-Encoding: chunked", "Content-Length: 4"), b"0\r\n\r\n"),
        (("Transfer-Encoding: identity",), b""),
    ],
)
def test_a_request_in_an_uncertain_body_is_not_answered(running: Running, heads: tuple[str, ...], body: bytes) -> None:
    """The connection ends. A proxy that takes other bytes for the body would attribute the second response wrongly."""
    with Raw(running) as raw:
        hidden = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        assert problem_in(raw.ask("POST /api/sessions HTTP/1.1", *heads, body=body + hidden)) == (400, "malformed")
        assert not raw.rest()


UPGRADE = (
    "GET /ws/me HTTP/1.1",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.mark.parametrize("more", [("Content-Length: 9",), tuple(f"X-{number}: x" for number in range(200))])
def test_handshake_that_cannot_be_read_is_answered(running: Running, more: tuple[str, ...]) -> None:
    """uvicorn kept such connections open without an answer. A stranger could occupy all connections with them."""
    with Raw(running) as raw:
        assert raw.ask(*UPGRADE, *more, body=b"123456789")[0] >= 400


def test_malformed_request_outside_the_api_gets_a_plain_text_error(running: Running) -> None:
    with Raw(running) as raw:
        status, media_type, body = raw.ask("GET / NOT-HTTP")
        assert (status, media_type) == (400, "text/plain; charset=utf-8")
        assert b"The request is malformed." in body


@pytest.mark.parametrize("address", ["/api/sessions", "/"])
async def test_head_that_does_not_end_is_cut_off(running: Running, address: str) -> None:
    """A request whose headers never end is answered with 408. A thousand such connections once kept all users out."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(f"GET {address} HTTP/1.1\r\n".encode())
    response = asyncio.ensure_future(reader.read())
    while not response.done():
        writer.write(b"X: y\r\n")
        await asyncio.wait([response], timeout=0.1)
    head, _gap, body = (await response).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout")
    assert (b'"code": "too_slow"' in body) == (address != "/")
    writer.close()


async def test_silent_connection_is_closed(running: Running) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    writer.close()


def test_connections_of_one_address_are_bounded(running: Running) -> None:
    """Connections of an address are limited, because a thousand idle ones left no file descriptors for the database."""
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_PER_ADDRESS):
            stack.enter_context(Raw(running))
        with Raw(running) as refused:
            status, _media_type, body = refused.response()
            assert status == 429
            assert b"Too many connections" in body
    while True:  # the server may not have noticed yet that all of them are closed
        with Raw(running) as raw:
            if raw.ask("GET /healthz HTTP/1.1")[0] == 200:
                break


async def test_sockets_of_one_user_are_bounded(person: Person) -> None:
    """Sockets of a user are limited, because nine hundred of them left no connections for others."""
    session = await person.session()
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(await person.socket(session)) for _ in range(SOCKETS_PER_USER)]
        for each in sockets:
            await each.send_json({"type": "ping"})
            await each.receive_json()
        async with await person.socket(session) as refused:
            await refused.receive()
            assert refused.close_code == 4429
        await sockets[0].close()
        await until_let_in(person, session)


async def until_let_in(person: Person, session: str) -> None:
    """Open sockets until the server accepts one without closing it immediately."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with await person.socket(session) as socket:
                await socket.send_json({"type": "ping"})
                if (await socket.receive()).type == WSMsgType.TEXT:
                    return


async def test_streams_of_one_user_are_bounded(person: Person) -> None:
    session = await person.session()
    address = f"/api/sessions/{session}/steps/stream"
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS_PER_USER):
            stream = await stack.enter_async_context(person.http.get(address))
            await stream.content.readline()
        async with person.http.get(address) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
            assert (await refused.json(content_type=None))["code"] == "too_many_streams"


async def test_waiting_requests_count_as_streams(person: Person) -> None:
    """LIVE-03: each waiting request holds a connection.

    One beyond the limit is refused and can be repeated with its key.
    """
    session = await person.session()
    address = f"/api/sessions/{session}/messages?wait=600"
    async with AsyncExitStack() as stack:
        stream = await stack.enter_async_context(person.http.get(f"/api/sessions/{session}/steps/stream"))
        await stream.content.readline()
        waiting = [
            await stack.enter_async_context(person.http.post(address, json={"text": "slow"}))
            for _ in range(STREAMS_PER_USER - 1)
        ]
        body = {"text": "help", "key": "once"}
        async with person.http.post(address, json=body) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
            assert (await refused.json(content_type=None))["code"] == "too_many_streams"
        async with person.http.post(f"/api/sessions/{session}/cancel") as cancelled:
            assert cancelled.status == 200
        assert [(await each.json())["outcome"] for each in waiting] == ["interrupted"]
        async with person.http.post(address, json=body) as sent:
            assert (sent.status, (await sent.json())["outcome"]) == (201, "completed")


async def test_strangers_and_other_origins_get_no_socket(person: Person, running: Running) -> None:
    """LIVE-06: sockets of strangers and of other origins are refused, because another program on the same host also
    gets the cookie."""
    session = await person.session()
    for origin in ("http://127.0.0.1:9999", f"https://127.0.0.1:{running.port}", "http://localhost:3000", "null"):
        with pytest.raises(WSServerHandshakeError, match="403"):
            await person.socket(session, origin=origin)
    async with (
        ClientSession(running.address) as stranger,
        stranger.ws_connect(f"/ws/sessions/{session}/", origin=running.address) as socket,
    ):
        await socket.receive()
        assert socket.close_code == 4401


@pytest.mark.parametrize("path", ["/ws/anything", "/ws/sessions/s_1", "/ws/sessions/s_1/page/", "/", "/ws/me/"])
async def test_socket_at_an_unknown_address_is_refused(person: Person, running: Running, path: str) -> None:
    """LIVE-06: a socket at an unknown address is refused, with a sign-in and without one."""
    async with ClientSession(running.address) as stranger:
        for http in (stranger, person.http):
            with pytest.raises(WSServerHandshakeError, match="403"):
                await http.ws_connect(path, origin=running.address)


async def settled(running: Running) -> int:
    """Wait until the server's memory stops changing; return it."""
    found: list[int] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < 5 or max(found[-5:]) - min(found[-5:]) > MEGABYTE:
            found.append(running.memory())
            await asyncio.sleep(0.1)  # another process has no event to wait for
    return found[-1]


async def large_session(person: Person) -> str:
    """Import a session with four million characters."""
    messages = [
        {"id": f"m_{number:024x}", "sequence": number, "role": "user", "text": "some words " * 36_000}
        for number in range(1, 11)
    ]
    file = {"format": "parley.session", "version": 1, "session": {"title": "Large"}, "messages": messages}
    form = FormData({"ids": "new"})
    form.add_field("file", BytesIO(json.dumps(file).encode()), filename="large.json")
    async with person.http.post("/api/sessions/import", data=form) as imported:
        assert imported.status == 201, await imported.text()
        return cast(str, (await imported.json())["sessions"][0]["id"])


def transport_of(socket: ClientWebSocketResponse) -> asyncio.Transport:
    """Return the transport of a client's connection."""
    connection = socket._conn
    assert connection is not None
    assert isinstance(connection.transport, asyncio.Transport)
    return connection.transport


async def test_socket_that_reads_nothing_fills_no_memory(person: Person, running: Running) -> None:
    """Sixty syncs of a 20 MB session once took 2.5 GB. Other users are served in the meantime."""
    session = await large_session(person)
    before = await settled(running)
    quiet = await person.socket(session)
    transport_of(quiet).pause_reading()
    for number in range(60):
        await quiet.send_json({"type": "sync", "ref": str(number)})
    async with await person.socket(session) as other:
        await other.send_json({"type": "ping"})
        assert await other.receive_json() == {"type": "pong"}
    grown = await settled(running) - before
    transport_of(quiet).abort()
    assert grown < 60 * MEGABYTE


async def test_frames_behind_a_slow_command_are_not_read(person: Person, running: Running) -> None:
    """The server once read twenty-one frames of 19 MB while it carried out one command."""
    session = await person.session()
    frame = json.dumps({"type": "rename", "title": "x" * (MAX_FRAME_LENGTH - 1000)})
    async with await person.socket(session) as socket:
        transport = transport_of(socket)
        with closing(sqlite3.connect(running.data / "parley.sqlite3", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")  # all writers wait
            await socket.send_json({"type": "rename", "title": "Slow"})
            before = await settled(running)
            sending = [asyncio.ensure_future(socket.send_str(frame)) for _ in range(21)]
            grown = await settled(running) - before
        transport.abort()  # the server of a busy machine may have closed it already
        await asyncio.gather(*sending, return_exceptions=True)
    assert grown < 50 * MEGABYTE


async def test_unfinished_frames_of_all_sockets_are_bounded(person: Person, running: Running) -> None:
    """Forty sockets with an unfinished frame each held 760 MB. The server closes the largest above a limit."""
    session = await person.session()
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(await person.socket(session)) for _ in range(SOCKETS_PER_USER)]
        transports = [transport_of(each) for each in sockets]
        for each in transports:
            each.write(unfinished_frame(MAX_FRAME_LENGTH - 1))
        assert await first_close(sockets) == 1013
        for each in transports:
            each.abort()


async def test_frame_that_does_not_grow_is_given_up(person: Person) -> None:
    session = await person.session()
    async with await person.socket(session) as socket:
        transport_of(socket).write(unfinished_frame(200_000))
        assert await first_close([socket]) == 4408


async def test_frame_beyond_the_limit_is_refused_by_its_head(person: Person) -> None:
    session = await person.session()
    async with await person.socket(session) as socket:
        transport_of(socket).write(unfinished_frame(1000, length=MAX_FRAME_LENGTH + 1))
        assert await first_close([socket]) == 1009


async def test_message_of_countless_fragments_is_refused(person: Person) -> None:
    """Empty fragments do not count as bytes. Their number was not limited, and each took memory."""
    session = await person.session()
    async with await person.socket(session) as socket:
        transport_of(socket).write(b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * MAX_FRAGMENTS)
        assert await first_close([socket]) == 1009


def unfinished_frame(size: int, length: int = MAX_FRAME_LENGTH) -> bytes:
    """Return the first bytes of a masked text frame of the given length."""
    return b"\x81\xff" + length.to_bytes(8) + b"\0\0\0\0" + b"x" * size


async def first_close(sockets: Sequence[ClientWebSocketResponse]) -> int | None:
    """Wait until one of the sockets is closed; return its code."""
    receiving = {asyncio.ensure_future(each.receive()): each for each in sockets}
    done, waiting = await asyncio.wait(receiving, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return receiving[done.pop()].close_code if done else None
