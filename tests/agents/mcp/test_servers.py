"""Connections to real MCP servers: what they offer, and how failures are handled."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.mcp import connection
from agents.mcp.config import AddedServer, ServerConfig
from agents.mcp.examine import examine
from agents.mcp.pool import PromptRefusedError, Servers
from agents.messages import ToolCall, ToolResult
from agents.sandbox.command import Sandbox
from agents.sandbox.folder import make_folder
from agents.tools import Tool, ToolContext
from tests.support.mcp_server import answering, http_answer

SERVER = str(Path(__file__).with_name("server.py"))
NONSENSE = Path(__file__).with_name("nonsense.py")


def program(*arguments: str, **settings: Any) -> ServerConfig:
    return ServerConfig(command=(sys.executable, SERVER, *arguments), sandbox=False, **settings)


@asynccontextmanager
async def opened(
    config: ServerConfig, env: dict[str, str] | None = None, workspace: Path | None = None
) -> AsyncIterator[Servers]:
    def sandbox_of(name: str, network: bool) -> Sandbox:
        return Sandbox(workspace or Path(), network=network)

    servers = Servers({"it": config}, env or {}, sandbox_of if workspace else None)
    servers.open()
    try:
        yield servers
    finally:
        await servers.close()


async def tools(servers: Servers, ready: Callable[[dict[str, Tool]], bool] = bool) -> dict[str, Tool]:
    """Wait until the server has the wanted tools."""
    async with asyncio.timeout(30):
        while True:
            found = {tool.name.removeprefix("it__"): tool for tool in servers.tools(["it__*"])}
            if ready(found):
                return found
            await asyncio.sleep(0.01)


ANSWERS = {
    b"": "closed the connection before it answered",
    b"rubbish\r\n\r\n": "the answer of {host} is not valid",
    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n": "the address answered, but not as an MCP server does",
    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi": "but not as an MCP server does",
}


def address_of(url: str) -> AddedServer:
    hosts = ("127.0.0.1", "nosuch.invalid")
    return AddedServer("row 1", "1", "notes", ServerConfig(url=url, internal_hosts=hosts))


@pytest.mark.parametrize("answer", ANSWERS)
async def test_what_does_not_answer_as_a_server_is_explained(answer: bytes) -> None:
    """UI-19: an answer that is not from an MCP server is explained in plain words, without an exception's text."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        problem = (await examine(address_of(f"http://{host}/mcp"))).problem
    assert ANSWERS[answer].format(host=host) in problem


async def test_server_that_cannot_be_reached_is_explained() -> None:
    """UI-19: an unknown name, a closed port and a server without TLS have their own explanations."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    assert (await examine(address_of("https://nosuch.invalid/"))).problem == "no server was found at nosuch.invalid"
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        secure = (await examine(address_of(f"https://{host}/"))).problem
    assert secure == f"{host} did not accept a secure connection (TLS)"
    assert (await examine(address_of(f"http://{host}/"))).problem == f"{host} refused the connection"


async def run(tool: Tool, report: Callable[[str], None] = lambda text: None, **arguments: Any) -> ToolResult:
    return await tool.run(ToolCall("1", tool.name, arguments), ToolContext(report=report))


async def test_a_program_gives_its_tools() -> None:
    async with opened(program()) as servers:
        found = await tools(servers)
        assert found["add"].foreign
        assert not found["add"].approval
        assert found["fail"].approval
        assert found["add"].parameters["type"] == "object"
        assert "notes://first: The first note." in found["read_resource"].description
        assert (await run(found["add"], first=2, second=3)).content == "5"
        wrong = await run(found["add"], first="two", second=3)
        assert wrong.is_error
        assert "first" in wrong.content
        failing = await run(found["fail"])
        assert failing.is_error
        assert failing.origin == wrong.origin == "it"
        assert "fail" in failing.content
        assert (await run(found["picture"])).content == "[image, image/png, 6 bytes: it was not stored]"
        assert "a note" in (await run(found["read_resource"], uri="notes://first")).content
        assert "[cut after 50,000 characters]" in (await run(found["huge"])).content


async def test_an_argument_is_passed_on_by_the_name_that_the_server_gave_it() -> None:
    """UI-16: models use a name that vendors accept, and the server gets its own."""
    async with opened(ServerConfig(command=(sys.executable, str(NONSENSE)), sandbox=False)) as servers:
        repeat = (await tools(servers))["repeat"]
        assert list(repeat.parameters["properties"]) == ["_filter", "page"]
        assert repeat.parameters["required"] == ["_filter"]
        assert (await run(repeat, _filter="a", page=2)).content == '{"$filter": "a", "page": 2}'


async def test_a_refused_prompt_has_the_words_of_the_server() -> None:
    """UI-17: users read the server's message, without the parts for models."""
    async with opened(program()) as servers:
        await tools(servers)
        with pytest.raises(PromptRefusedError) as refused:
            await asyncio.to_thread(servers.fill_prompt, "it__nothing", {}, ["it__*"])
        assert "nothing" in refused.value.reason
        assert "MCP server" not in refused.value.reason


async def test_prompt_is_filled_in_a_process_that_has_not_listed_the_prompts() -> None:
    """UI-17: another process may have listed them, or this one may have closed the connection since."""
    async with opened(program()) as servers:
        text = await asyncio.to_thread(servers.fill_prompt, "it__review", {"code": "x = 1"}, ["it__*"])
        assert "x = 1" in text


async def test_a_program_has_no_secrets_of_parley(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    async with opened(program(env={"TOKEN": "${MINE}"}), {"MINE": "1"}) as servers:
        names = (await run((await tools(servers))["variables"])).content
        assert "TOKEN" in names
        assert "SECRET_KEY" not in names


@pytest.mark.parametrize("tool", ["die", "too_huge"])
async def test_a_connection_that_breaks_in_a_call_is_made_again(tool: str) -> None:
    async with opened(program()) as servers:
        found = await tools(servers)
        assert (await run(found[tool])).is_error
        assert (await run(found["add"], first=2, second=3)).content == "5"


async def test_a_call_that_is_answered_with_nonsense_fails() -> None:
    async with opened(ServerConfig(command=(sys.executable, str(NONSENSE)), sandbox=False)) as servers:
        found = await tools(servers)
        result = await run(found["babble"])
        assert result.is_error
        assert "ended before it answered" in result.content
        assert (await run(found["home"])).content == str(Path.home())


async def test_a_refused_call_ends_no_connection_of_a_server_without_ping() -> None:
    """A refused call does not end the connection, because other sessions have calls on it."""
    async with opened(ServerConfig(command=(sys.executable, str(NONSENSE)), sandbox=False)) as servers:
        found = await tools(servers)
        before = (await run(found["process"])).content
        assert "not now" in (await run(found["refuse"])).content
        assert [(await run(found["process"])).content for _ in range(3)] == [before] * 3


async def test_lists_that_a_server_refuses_cost_no_tools(caplog: pytest.LogCaptureFixture) -> None:
    """UI-16: prompts refused by an error, and resources refused by an invalid result, do not affect the tools."""
    command = (sys.executable, str(NONSENSE), "lists")
    async with opened(ServerConfig(command=command, sandbox=False)) as servers:
        found = await tools(servers)
        assert (await run(found["home"])).content == str(Path.home())
    assert "no prompts today" in caplog.text


async def test_invalid_items_of_a_list_do_not_cost_the_valid_ones(caplog: pytest.LogCaptureFixture) -> None:
    """UI-16: invalid tools, prompts and resources are left out, and the log names each with the reason, once."""
    command = (sys.executable, str(NONSENSE), "invalid")
    async with opened(ServerConfig(command=command, sandbox=False)) as servers:
        found = await tools(servers)
        assert sorted(found) == ["babble", "home", "process", "read_resource", "refuse", "repeat"]
        assert (await run(found["home"])).content == str(Path.home())
        assert "notes://first: Cut within an emoji\ufffd" in found["read_resource"].description
        prompts = await asyncio.to_thread(servers.prompts, ["it__*"])
        assert [prompt.name for prompt in prompts] == ["it__greet"]
        await run(found["babble"])  # ends the connection, so the lists are read again
        assert (await run(found["home"])).content == str(Path.home())
    said = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert [line.split(" of ")[0] for line in said] == ["Invalid tools", "Invalid resources", "Invalid prompts"]
    assert "no_schema (inputSchema: Field required); no_object (inputSchema.type: Input should be" in said[0]
    assert "number 3 (name: Input should be a valid string); number 4 (" in said[0]
    assert "; half\ufffd (name: Contains characters that are not valid); home (name: Another item of" in said[0]


async def test_a_program_runs_in_a_sandbox(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    make_folder(workspace)
    (workspace / "nonsense.py").write_text(NONSENSE.read_text())
    async with opened(ServerConfig(command=("python3", "nonsense.py")), workspace=workspace) as servers:
        found = await tools(servers)
        assert (await run(found["home"])).content == "/workspace"


async def test_a_call_that_is_stopped_is_cancelled_at_the_server() -> None:
    async with opened(program()) as servers:
        found = await tools(servers)
        begun = asyncio.Event()
        said: list[str] = []

        def report(text: str) -> None:
            said.append(text)
            begun.set()

        call = asyncio.create_task(run(found["never"], report))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert said == ["1 of 3: begun\n"]
        async with asyncio.timeout(30):
            while "never" not in (await run(found["was_cancelled"])).content:
                pass


async def test_a_call_that_is_never_answered_ends_with_its_time_limit() -> None:
    async with opened(program(time_limit=0.05)) as servers:
        found = await tools(servers)
        result = await run(found["never"])
        assert result == ToolResult("1", "it__never took longer than 0.05 seconds and was stopped.", is_error=True)


async def test_two_sessions_use_one_connection_at_the_same_time() -> None:
    async with opened(program()) as servers:
        meet = (await tools(servers))["meet"]
        results = await asyncio.gather(run(meet, name="a"), run(meet, name="b"))
        assert [result.content for result in results] == ["a", "b"]


async def test_tools_are_made_once_for_each_list() -> None:
    """A server's list is large, and each request to a model needs its tools."""
    async with opened(program()) as servers:
        found = await tools(servers)
        again = await tools(servers)
        assert all(again[name] is tool for name, tool in found.items())


async def test_a_changed_list_is_read_again() -> None:
    async with opened(program()) as servers:
        found = await tools(servers)
        assert "more" not in found
        await run(found["grow"])
        found = await tools(servers, lambda found: "more" in found)
        assert (await run(found["more"])).content == "more"


# A server that reports a change with each list. Its tool returns the number of lists so far.
RESTLESS = """
import json, sys
lists = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"content": [{"type": "text", "text": str(lists)}]}
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        server = {"name": "restless", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    if asked["method"] == "tools/list":
        lists += 1
        result = {"tools": [{"name": "lists", "inputSchema": {"type": "object"}}]}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def test_a_server_that_always_reports_changes_is_listed_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-16: a server cannot occupy the process by reporting a change with each list. Its tools can still be called."""
    async with opened(ServerConfig(command=(sys.executable, "-c", RESTLESS), sandbox=False)) as servers:
        found = await tools(servers)
        await asyncio.sleep(0.5)
        assert int((await run(found["lists"])).content) <= 3
        monkeypatch.setattr(connection, "LIST_PAUSE", 0.01)
        async with asyncio.timeout(30):
            while int((await run(found["lists"])).content) < 5:  # it is still listed again
                pass


async def test_a_slow_start_is_waited_for_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn waits a limited time for a starting server. Its first response has no tools, and the next one has them."""
    monkeypatch.setattr(connection, "FIRST_WAIT", 1.0)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with opened(program("after", str(gate))) as servers:
        assert servers.tools(["it__*"]) == ()
        await asyncio.sleep(0)
        assert await servers.settle(["it__*"])
        assert servers.tools(["it__*"]) == ()
        assert not await servers.settle(["it__*"])
        await asyncio.to_thread(gate.write_text, "")
        assert "add" in await tools(servers)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ServerConfig(command=("no-such-program",), sandbox=False), "the program no-such-program is not installed"),
        (ServerConfig(command=("cat",)), "its program cannot run in a sandbox"),
        (ServerConfig(command=("echo", "hello"), sandbox=False), "it closed the connection"),
        (
            ServerConfig(
                command=("sh", "-c", r"printf '\033[31mNo such file:\a data.db\033[0m.\n\n' >&2"), sandbox=False
            ),
            "keeps trying to connect. Its last error output: No such file: data.db.",
        ),
        (ServerConfig(command=("cat",), sandbox=False, env={"A": "${NONE}"}), "variable NONE is not set"),
        (ServerConfig(url="http://127.0.0.1:1/mcp"), "its address is not public"),
    ],
)
async def test_a_server_that_does_not_work_has_no_tools(
    config: ServerConfig, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that does not work offers no tools, and the log has the reason once."""
    caplog.set_level(logging.WARNING, "agents.mcp.connection")
    async with opened(config) as servers:
        assert servers.tools(["it__*"]) == ()
        await asyncio.sleep(0)
        await servers.settle(["it__*"])
        assert servers.tools(["it__*"]) == ()
    said = [record.getMessage() for record in caplog.records if record.name == "agents.mcp.connection"]
    assert len(said) == 1
    assert words in said[0]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@asynccontextmanager
async def http_server(
    port: int | None = None, **settings: Any
) -> AsyncIterator[tuple[ServerConfig, asyncio.subprocess.Process]]:
    port = port or free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, "http", str(port), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        while b"running on" not in (line := await process.stderr.readline()):
            assert line, "the server has not started"
        yield ServerConfig(url=f"http://127.0.0.1:{port}/mcp", **settings), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_web_address_gives_its_tools() -> None:
    async with http_server(internal_hosts=("127.0.0.1",)) as (config, _), opened(config) as servers:
        found = await tools(servers)
        assert (await run(found["add"], first=2, second=3)).content == "5"
        assert (await run(found["fail"])).is_error


@pytest.mark.parametrize("gone", [("ping", "tools/call", "tools/list", "initialize"), ("ping", "tools/call")])
async def test_a_web_server_without_sessions_that_is_gone_is_not_connected(gone: tuple[str, ...]) -> None:
    """A server whose address answers all requests with 404 is disconnected. A server that only lacks methods is not."""
    missing, begun = set[str](), 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal begun
        message = await request.json() if request.method == "POST" else {}
        if message.get("method") in missing:
            return web.Response(status=404)
        begun += message.get("method") == "initialize"
        return http_answer(message)

    async with answering(answer) as config, opened(config) as servers:
        tool = next(iter((await tools(servers)).values()))
        (connected,) = servers._connections.values()
        missing.update(gone)
        assert "Not Found" in (await run(tool)).content
        async with asyncio.timeout(20):
            await asyncio.gather(*connected._probes)
        assert (connected._session is None) == ("initialize" in gone)
        missing.clear()
        assert "Not Found" not in (await run(tool)).content
        assert begun == (2 if "initialize" in gone else 1)


async def test_a_call_ends_the_pause_before_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-16: a call connects to the server immediately, however long the pause before the next attempt would be."""
    monkeypatch.setattr(connection, "PAUSES", (0.0, 3600.0))
    monkeypatch.setattr(connection, "MIN_PAUSE", 0.01)
    port = free_port()
    async with AsyncExitStack() as first:
        config, process = await first.enter_async_context(http_server(port, internal_hosts=("127.0.0.1",)))
        async with opened(config) as servers:
            found = await tools(servers)
            process.kill()
            await process.wait()
            for _ in range(3):
                assert (await run(found["add"], first=2, second=3)).is_error
            async with http_server(port):
                assert (await run(found["add"], first=2, second=3)).content == "5"


async def test_a_call_on_a_closed_connection_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-16: a turn can have tools of a server whose settings were changed since; their calls fail immediately."""
    monkeypatch.setattr(connection, "PAUSES", (3600.0,))
    monkeypatch.setattr(connection, "MIN_PAUSE", 0.01)
    async with http_server(internal_hosts=("127.0.0.1",)) as (config, process), opened(config) as servers:
        found = await tools(servers)
        process.kill()
        await process.wait()
        assert (await run(found["add"], first=2, second=3)).is_error
    async with asyncio.timeout(20):
        refused = await run(found["add"], first=2, second=3)
    assert (refused.is_error, "not available now" in refused.content) == (True, True)


async def test_a_call_to_a_web_address_that_dies_fails() -> None:
    async with http_server(internal_hosts=("127.0.0.1",)) as (config, _), opened(config) as servers:
        found = await tools(servers)
        assert (await run(found["die"])).is_error
        again = await run(found["add"], first=2, second=3)
        assert again.is_error
