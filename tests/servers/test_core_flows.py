"""The main flows of users and programs, over real connections, on each server."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from io import BytesIO

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar, FormData, HttpVersion10

from agents.messages import Json
from tests.servers.conftest import MAX_MESSAGE_CHARS, Person

pytestmark = pytest.mark.server
PATIENCE = 30


async def heard(socket: ClientWebSocketResponse, **wanted: object) -> Json:
    """Wait for an event with these fields."""
    return (await all_heard(socket, wanted))[0]


async def all_heard(socket: ClientWebSocketResponse, *wanted: dict[str, object]) -> list[Json]:
    """Wait for events with these fields, which may come in any order."""
    found: dict[int, Json] = {}
    async with asyncio.timeout(PATIENCE):
        while len(found) < len(wanted):
            event: Json = await socket.receive_json()
            for number, fields in enumerate(wanted):
                if number not in found and fields.items() <= event.items():
                    found[number] = event
    return [found[number] for number in range(len(wanted))]


async def test_a_conversation_by_socket(person: Person) -> None:
    """RUN-01, RUN-07, RUN-13: a user sends a message, sees the answer stream, stops it, and forks the session."""
    session = await person.session()
    async with await person.socket(session) as socket:
        await socket.send_json({"type": "sync", "ref": "1"})
        assert (await heard(socket, type="changes"))["messages"] == []
        await socket.send_json({"type": "send", "ref": "2", "text": "slow", "key": "once"})
        asked = await heard(socket, type="ack", ref="2")
        await heard(socket, type="text_delta")
        await socket.send_json({"type": "cancel", "ref": "3"})
        # The answer comes from this process, and the event by the hub: either may be first.
        answer, _ = await all_heard(socket, {"type": "ack", "ref": "3"}, {"type": "agent_cancelled"})
        assert answer["stopping"] is True
        await socket.send_json({"type": "fork", "ref": "4", "id": asked["id"]})
        assert (await heard(socket, type="ack", ref="4"))["session"] != session


async def test_a_conversation_by_rest_and_events(person: Person) -> None:
    """LIVE-03: a program sends a message, follows the steps as they stream, and exports the session."""
    session = await person.session()
    async with person.http.get(f"/api/sessions/{session}/steps/stream") as stream:
        assert stream.content_type == "text/event-stream"
        async with person.http.post(f"/api/sessions/{session}/messages", json={"text": "Hello, 数据库 😀"}) as sent:
            assert sent.status == 201
        async for line in stream.content:
            if line.startswith(b"data:") and json.loads(line[5:]).get("snapshot", {}).get("role") == "assistant":
                break
    async with person.http.get(f"/api/sessions/{session}/export") as export:
        file = await export.read()
    assert "Hello, 数据库 😀" in json.dumps(json.loads(file), ensure_ascii=False)
    form = FormData()
    form.add_field("file", file, filename="session.json")
    form.add_field("ids", "new")
    async with person.http.post("/api/sessions/import", data=form) as imported:
        assert (imported.status, len((await imported.json())["sessions"])) == (201, 1)


async def test_files_go_up_and_come_back(person: Person) -> None:
    """A file of more than a megabyte is uploaded as a form and in chunks, from the page's script and through the
    API."""
    session = await person.session()
    words = b"words and more words\n" * 70_000
    for address in (f"/sessions/{session}/attachments", f"/api/sessions/{session}/attachments"):
        form = FormData()
        form.add_field("file", BytesIO(words), filename="words.txt", content_type="text/plain")
        async with person.http.post(address, data=form, chunked=True if "api" in address else None) as taken:
            assert taken.status == 201, await taken.text()
            attachment = await taken.json()
        async with person.http.get(f"/api/attachments/{attachment['id']}") as file:
            assert await file.read() == words


async def test_longest_message_is_taken_however_it_is_written(person: Person) -> None:
    """MSG-12: the longest message is accepted, even with each character escaped to twelve bytes."""
    session = await person.session()
    text = "😀" * MAX_MESSAGE_CHARS
    body = BytesIO(json.dumps({"text": text}).encode())
    as_json = {"Content-Type": "application/json"}
    async with person.http.post(f"/api/sessions/{session}/messages", data=body, headers=as_json) as sent:
        assert sent.status == 201, await sent.text()


async def test_client_knows_whether_a_compressed_page_is_complete(person: Person) -> None:
    """It is sent in chunks, because Firefox does not notice that a compressed page is shorter than its length.

    Only clients that do not know chunks get a length.
    """
    async with person.http.get("/") as home:
        assert home.headers["Transfer-Encoding"] == "chunked"
        assert "Content-Length" not in home.headers
    jar = CookieJar(unsafe=True)
    async with (
        ClientSession(
            person.server.address, version=HttpVersion10, cookie_jar=jar, cookies=person.server.cookies
        ) as old,
        old.get("/") as home,
    ):
        assert home.headers["Content-Encoding"] == "gzip"
        assert "Content-Length" in home.headers


async def test_long_cookies_open_pages_and_sockets(person: Person) -> None:
    """A proxy with single sign-on may set cookies of more than 8 KB."""
    person.http.headers["Cookie"] = "single_sign_on=" + "a" * 12_000  # aiohttp sends only short ones of its jar
    session = await person.session()
    async with person.http.get(f"/sessions/{session}/") as page:
        assert page.status == 200
    async with await person.socket(session) as socket:
        await socket.send_json({"type": "sync", "ref": "1"})
        await heard(socket, type="changes")


async def test_a_page_and_its_errors(person: Person) -> None:
    """The status line has a name for each status, some of which Twisted lacks. Compression and caching work."""
    async with person.http.get("/") as home:
        assert (home.status, home.headers["Server"]) == (200, "Parley")
        assert "gzip" in home.headers["Content-Encoding"]
    async with person.http.post("/settings/", data={"part": "revoke", "token": "0"}) as refused:
        assert (refused.status, refused.reason) == (422, HTTPStatus.UNPROCESSABLE_ENTITY.phrase)
