"""Parley as an MCP server, with the SDK's own client over real connections, on each web server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import textwrap
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import httpx2
import mcp_types as types
import pytest
from aiohttp import ClientSession
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from agents.messages import Json
from tests.servers.conftest import Running
from tests.support.server import ROOT, run_forked

pytestmark = pytest.mark.server
MAKE = """
import json
from chat.models import User
from chat.services.people import accounts, api_tokens, workspaces
ana = User.objects.order_by("pk").first()
eve = User.objects.filter(username="eve").first() or User.objects.create_user("eve")
made = {}
for name, user in (("ana", ana), ("reader", ana), ("eve", eve), ("gone", ana)):
    scope = "read" if name == "reader" else "write"
    token, made[name] = api_tokens.create(user=user, name=name, scope=scope, days=30)
    if name == "gone":
        api_tokens.revoke(user=user, token_id=token.pk)
print(json.dumps(made))
"""
ALL = {
    "list_sessions",
    "read_session",
    "search",
    "list_agents",
    "create_session",
    "send_message",
    "read_answer",
    "stop",
}
WRITING = {"create_session", "send_message", "stop"}


@dataclass
class Tokens:
    ana: str
    reader: str
    eve: str
    gone: str


@pytest.fixture(scope="module")
def tokens(running: Running) -> Tokens:
    return Tokens(**json.loads(run_forked("manage.py", "shell", "-v0", "-c", MAKE, data=running.data)))


@asynccontextmanager
async def client(running: Running, token: str, mode: str = "legacy") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{running.address}/mcp", http_client=http)
        async with Client(transport, mode=mode) as connected:
            yield connected


async def call(connected: Client, tool: str, **arguments: object) -> Json:
    """Call a tool that succeeds; return its structured result."""
    result = await connected.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    assert not result.is_error, result.content
    made: Json = result.structured_content
    return made


async def refusal(connected: Client, tool: str, **arguments: object) -> str:
    """Call a tool that fails and return its error message."""
    result = await connected.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    assert result.is_error
    return text_of(result)


def text_of(result: object) -> str:
    assert isinstance(result, types.CallToolResult)
    (part,) = result.content
    assert isinstance(part, types.TextContent)
    return part.text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_finds_reads_and_continues_a_session(running: Running, tokens: Tokens, mode: str) -> None:
    """Both forms of the protocol work: with a handshake, and with single requests."""
    async with client(running, tokens.ana, mode) as ana:
        assert {tool.name for tool in (await ana.list_tools()).tools} == ALL
        begun = await call(ana, "create_session", title="Pears and plums", text="echo Hello", key=f"begin {mode}")
        assert (begun["outcome"], bool(begun["answer"])) == ("completed", True)
        session = begun["session"]
        again = await call(ana, "create_session", title="Pears and plums", text="echo Hello", key=f"begin {mode}")
        assert (again["session"], again["message"], again["repeated"]) == (session, begun["message"], True)

        sent = await call(ana, "send_message", session=session, text="echo Good morning", key="m1")
        assert (sent["outcome"], sent["repeated"]) == ("completed", False)
        assert sent["answer"]
        repeated = await call(ana, "send_message", session=session, text="echo Good morning", key="m1")
        assert (repeated["message"], repeated["answer"], repeated["repeated"]) == (
            sent["message"],
            sent["answer"],
            True,
        )
        later = await call(ana, "read_answer", session=session, message=sent["message"], wait=0)
        assert (later["outcome"], later["answer"]) == ("completed", sent["answer"])

        whole = text_of(await ana.call_tool("read_session", {"session": session}))
        assert whole.startswith("# Pears and plums")
        assert "Good morning" in whole
        assert sent["answer"] in whole
        listed = await call(ana, "list_sessions", query="plums", limit=100)
        assert session in [each["id"] for each in listed["sessions"]]
        found = await call(ana, "search", query="plums")
        assert session in [each["session"] for each in found["sessions"]]
        assert (await ana.read_resource(f"parley://sessions/{session}")).contents[0].uri.endswith(session)
        resources = (await ana.list_resources()).resources
        assert f"parley://sessions/{session}" in [str(each.uri) for each in resources]


async def test_a_session_is_read_page_by_page(running: Running, tokens: Tokens) -> None:
    async with client(running, tokens.ana) as ana:
        session = (await call(ana, "create_session", title="Pages"))["session"]
        for text in ("aardvark", "badger", "caracal"):
            await call(ana, "send_message", session=session, text=f"echo {text}")
        after, said, pages = 0, [], 0
        while after is not None:
            page = await call(ana, "read_session", session=session, format="steps", limit=2, after=after)
            said += [step["content"] for step in page["steps"] if step["role"] == "user"]
            after, pages = page["next"], pages + 1
        assert said == ["echo aardvark", "echo badger", "echo caracal"]
        assert pages >= 3
        first = text_of(await ana.call_tool("read_session", {"session": session, "limit": 2}))
        assert "call read_session with after=" in first
        last = text_of(await ana.call_tool("read_session", {"session": session, "last": 2}))
        assert ("caracal" in last, "aardvark" in last, "[The end.]" in last) == (True, False, True)


async def test_a_long_answer_is_polled_and_stopped(running: Running, tokens: Tokens) -> None:
    """RUN-07, RUN-13: sending returns immediately, another call waits for the answer, and a third one stops the
    agent."""
    async with client(running, tokens.ana) as ana, client(running, tokens.ana) as other:
        session = (await call(ana, "create_session", title="Slow"))["session"]
        sent = await call(ana, "send_message", session=session, text="slow", wait=0)
        assert "outcome" not in sent
        now = await call(ana, "read_answer", session=session, message=sent["message"], wait=0)
        assert (now["outcome"], "read_answer" in now["more"]) == ("running", True)
        waiting = asyncio.create_task(call(ana, "read_answer", session=session, message=sent["message"]))
        assert (await call(other, "stop", session=session))["stopping"] is True
        assert (await waiting)["outcome"] == "interrupted"


async def test_a_token_that_may_only_read_has_the_reading_tools_alone(running: Running, tokens: Tokens) -> None:
    async with client(running, tokens.ana) as ana, client(running, tokens.reader) as reader:
        session = (await call(ana, "create_session", title="Kept"))["session"]
        assert {tool.name for tool in (await reader.list_tools()).tools} == ALL - WRITING
        assert "Kept" in text_of(await reader.call_tool("read_session", {"session": session}))
        assert "read-only" in await refusal(reader, "send_message", session=session, text="echo Hello")
        assert "read-only" in await refusal(reader, "create_session")


async def test_a_stranger_learns_nothing(running: Running, tokens: Tokens) -> None:
    """LIVE-06: sessions without access are not found by any tool or resource."""
    async with client(running, tokens.ana) as ana, client(running, tokens.eve) as eve:
        begun = await call(ana, "create_session", title="Secret quince", text="echo Hello")
        session, message = begun["session"], begun["message"]
        for tool, arguments in (
            ("read_session", {}),
            ("send_message", {"text": "Hello"}),
            ("read_answer", {"message": message}),
            ("stop", {}),
        ):
            assert "Session not found" in await refusal(eve, tool, session=session, **arguments)
        assert (await call(eve, "list_sessions"))["sessions"] == []
        assert await call(eve, "search", query="quince") == {"sessions": [], "messages": []}
        with pytest.raises(MCPError, match="Session not found"):
            await eve.read_resource(f"parley://sessions/{session}")


async def test_wrong_arguments_are_explained(running: Running, tokens: Tokens) -> None:
    async with client(running, tokens.ana) as ana:
        session = (await call(ana, "create_session"))["session"]
        assert "limit" in await refusal(ana, "list_sessions", limit=1000)
        assert "extra" in await refusal(ana, "list_sessions", extra=1)
        assert "text" in await refusal(ana, "send_message", session=session)
        assert "no_such_agent" in await refusal(ana, "create_session", agent="none")
        assert "Session not found" in await refusal(ana, "read_session", session="s_\0")
        with pytest.raises(MCPError, match="Unknown tool"):
            await ana.call_tool("nothing", {})
        for uri in ("parley://sessions/", "parley://sessions/s_1", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await ana.read_resource(uri)


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


async def test_requests_that_are_not_let_in(running: Running, tokens: Tokens) -> None:
    """LIVE-06: requests need a valid token, and those from pages of other sites are refused."""
    token = {"Authorization": f"Bearer {tokens.ana}"}
    async with ClientSession(running.address) as http:

        async def status(method: str = "POST", **headers: str) -> int:
            async with http.request(method, "/mcp", json=PING, headers=ACCEPT | headers) as answer:
                if answer.status == 401:
                    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                return answer.status

        assert await status(**token) == 200
        assert await status() == 401
        assert await status(Cookie="; ".join(f"{name}={value}" for name, value in running.cookies.items())) == 401
        assert await status(Authorization=f"Bearer {tokens.gone}") == 401
        assert await status(Authorization="Bearer nonsense") == 401
        assert await status(**token, Origin="https://elsewhere.example") == 403
        assert await status(**token, Origin=running.address) == 200
        assert await status(**token, Host="elsewhere.example") == 400
        assert await status("GET", **token) == 405
        assert await status("DELETE", **token) == 405
        async with http.post("/mcp", data=b"{", headers=ACCEPT | token) as answer:
            assert answer.status == 400
        async with http.post("/mcp", data=BytesIO(b"x" * 20_000_000), headers=ACCEPT | token) as answer:
            assert (answer.status, answer.content_type) == (413, "application/problem+json")


async def test_a_revoked_token_ends_what_waits(running: Running, tokens: Tokens) -> None:
    """LIVE-06: a waiting call ends when its token is revoked."""
    made = json.loads(run_forked("manage.py", "shell", "-v0", "-c", MAKE, data=running.data))
    revoke = (
        "from chat.models import ApiToken; from chat.services.people import api_tokens\n"
        f"row = api_tokens.find_valid({made['ana']!r}); api_tokens.revoke(user=row.user, token_id=row.pk)"
    )
    async with client(running, made["ana"]) as ana, client(running, tokens.ana) as other:
        session = (await call(ana, "create_session", title="Ends"))["session"]
        sent = await call(ana, "send_message", session=session, text="slow", wait=0)
        waiting = asyncio.create_task(call(ana, "read_answer", session=session, message=sent["message"], wait=60))
        await asyncio.to_thread(run_forked, "manage.py", "shell", "-v0", "-c", revoke, data=running.data)
        assert (await waiting)["outcome"] == "unknown"
        await call(other, "stop", session=session)


async def test_the_example_of_the_document_works(running: Running, tokens: Tokens, tmp_path: Path) -> None:
    document = (ROOT / "docs/mcp.md").read_text()
    (found,) = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    example = tmp_path / "example.py"
    example.write_text(textwrap.dedent(found).replace("http://localhost:8000", running.address))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(example), stdout=PIPE, stderr=PIPE, env={**os.environ, "PARLEY_TOKEN": tokens.ana}
    )
    printed, errors = await process.communicate()
    assert (process.returncode, bool(printed.strip())) == (0, True), errors.decode()
