"""Servers from npm, which use another SDK: the reference server over a pipe and HTTP, a file server, and a memory
server."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.elicitation import Elicitation
from agents.mcp.config import ServerConfig
from agents.messages import Json, ToolCall
from agents.sandbox.command import Sandbox
from agents.tools import ToolContext
from tests.agents.mcp.test_servers import opened, run, tools

SERVERS = Path("node_modules/@modelcontextprotocol").resolve()
EVERYTHING = SERVERS / "server-everything/dist/index.js"

# A tool that the server offers only to clients that can ask users.
ASKING = "trigger-elicitation-request"


@asynccontextmanager
async def reference_server(transport: str) -> AsyncIterator[ServerConfig]:
    if transport == "pipe":
        yield ServerConfig(command=("node", str(EVERYTHING), "stdio"), sandbox=False)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *("node", str(EVERYTHING), "streamableHttp"),
        env={**os.environ, "PORT": str(port)},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        while b"listening on" not in (line := await process.stderr.readline()):
            assert line, "the server has not started"
        yield ServerConfig(url=f"http://127.0.0.1:{port}/mcp", internal_hosts=("127.0.0.1",))
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.parametrize("transport", ["pipe", "http"])
async def test_reference_server_works(transport: str, tmp_path: Path) -> None:
    """UI-16: texts, images, structured content, links, resources, progress and errors of the reference server are
    supported."""
    workspace, reports = tmp_path / "workspace", list[str]()
    async with reference_server(transport) as config, opened(config) as servers:
        found = await tools(servers)
        assert (await run(found["echo"], message="hello")).content == "Echo: hello"
        context = ToolContext(sandbox=Sandbox(workspace))
        drawn = await found["get-tiny-image"].run(ToolCall("1", "it__get-tiny-image", {}), context)
        (file,) = drawn.files
        assert (workspace / file.path).read_bytes().startswith(b"\x89PNG")
        assert "[image, image/png, 4,033 bytes:" in drawn.content
        weather = await run(found["get-structured-content"], location="New York")
        assert '"conditions":"Cloudy"' in weather.content
        assert "[link to a resource] demo://resource/" in (await run(found["get-resource-links"], count=1)).content
        assert "This is a plaintext resource" in (await run(found["get-resource-reference"])).content
        read = await run(found["read_resource"], uri="demo://resource/dynamic/text/1")
        assert "This is a plaintext resource" in read.content
        await run(found["trigger-long-running-operation"], reports.append, duration=0.2, steps=2)
        assert [text.strip() for text in reports] == ["1 of 2", "2 of 2"]
        assert (await run(found["get-sum"], a="two", b=3)).is_error


@pytest.mark.parametrize("transport", ["pipe", "http"])
async def test_reference_server_asks_people(transport: str) -> None:
    """UI-18: a form of the server arrives with fields of each kind of the protocol."""
    seen: list[Elicitation] = []

    async def ask(question: Elicitation, seconds: float) -> Json:
        seen.append(question)
        return {"action": "decline"}

    async with reference_server(transport) as config, opened(config) as servers:
        tool = (await tools(servers, lambda found: "trigger-elicitation-request" in found))[
            "trigger-elicitation-request"
        ]
        result = await tool.run(ToolCall("1", tool.name, {}), ToolContext(ask=ask))
    assert "declined" in result.content
    assert {field.type for field in seen[0].fields} >= {"text", "number", "yes_no", "choice", "choices", "date"}


async def test_server_of_files_works(tmp_path: Path) -> None:
    """UI-16: the file server asks for the client's folders, describes results by a schema, and refuses other paths."""
    command = ("node", str(SERVERS / "server-filesystem/dist/index.js"), str(tmp_path))
    note = tmp_path / "note.txt"
    async with opened(ServerConfig(command=command, sandbox=False)) as servers:
        found = await tools(servers)
        assert not found["read_text_file"].approval
        assert found["write_file"].approval
        assert not (await run(found["write_file"], path=str(note), content="one\ntwo\n")).is_error
        edits = [{"oldText": "two", "newText": "three"}]
        changed = await run(found["edit_file"], path=str(note), edits=edits)
        assert "-two\n+three" in changed.content
        assert note.read_text() == "one\nthree\n"
        assert "one\nthree" in (await run(found["read_text_file"], path=str(note))).content
        assert "note.txt" in (await run(found["list_directory"], path=str(tmp_path))).content
        outside = await run(found["read_text_file"], path="/etc/passwd")
        assert outside.is_error
        assert "outside allowed directories" in outside.content


async def test_server_of_a_memory_keeps_it_over_a_restart(tmp_path: Path) -> None:
    """UI-16: the program gets the variables of its configuration, and its memory survives a restart."""
    config = ServerConfig(
        command=("node", str(SERVERS / "server-memory/dist/index.js")),
        env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")},
        sandbox=False,
    )
    async with opened(config) as servers:
        entity = {"name": "Parley", "entityType": "product", "observations": ["It is a chat."]}
        assert not (await run((await tools(servers))["create_entities"], entities=[entity])).is_error
    async with opened(config) as servers:
        found = await tools(servers)
        assert "It is a chat." in (await run(found["search_nodes"], query="parley")).content
        assert "It is a chat." in (await run(found["read_graph"])).content
