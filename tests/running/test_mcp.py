"""Tools of MCP servers in real turns: with a connection, with an approval, and without the server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings

from agents.mcp import connection
from agents.messages import ToolCall
from agents.providers.scripted import Script
from chat.models import McpServer, RunState, Session, SessionRun, User, Workspace
from chat.services.runs import answering
from tests.support.mcp_server import serving
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode

SERVER = Path(__file__).parent.parent / "agents/mcp/server.py"
ADD = ToolCall("a1", "tests__add", {"first": 40, "second": 2})
# A tool that the server does not mark as read-only.
FAIL = ToolCall("f1", "tests__fail", {})


def config(*command: str) -> dict[str, Any]:
    return {
        "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
        "mcp": {"tests": {"command": list(command), "sandbox": False}},
        "agents": {"agent": {"model": "scripted/one", "tools": ["tests__*"]}},
    }


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer timeout, because starting a program takes more than 2 seconds on a busy machine."""
    monkeypatch.setattr(connection, "FIRST_WAIT", 60.0)


async def start(node: TestNode, script: Script, *command: str) -> None:
    """Start the node with an agent that uses the tools of a server."""
    node.script(script, config(*command))
    await node.restart()


async def results(node: TestNode, session: Session) -> list[tuple[str, str]]:
    """Return (status, result) of each call."""
    return [(row.status, row.result) for row in await node.rows(session) if row.type == "tool_group"]


async def test_first_response_has_the_tools_of_a_server_that_starts_for_it(node: TestNode, ana: User) -> None:
    await start(node, [[ADD], ["42."]], sys.executable, str(SERVER))
    session = await node.session(ana)
    await node.send(session, ana, "What is 40 and 2?")
    await node.idle(session)
    assert await results(node, session) == [("complete", "42")]
    assert "tests__add" in [tool.name for tool in node.provider.requests[0].tools]
    await node.do(check_rest, session)


async def test_tool_that_may_change_something_waits_for_people(node: TestNode, ana: User) -> None:
    """UI-12: a tool that may change something waits for approval. The model reads the server's own error."""
    await start(node, [[FAIL], ["Oh."]], sys.executable, str(SERVER))
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.until(lambda: SessionRun.objects.get(pk=session.pk).state == RunState.WAITING)
    (row,) = [row for row in await node.rows(session) if row.status == "waiting"]
    await node.do(
        answering.answer, session=session, author=ana, message_id=row.pk, value={"approved": True, "scope": "once"}
    )
    await node.idle(session)
    ((status, result),) = await results(node, session)
    assert (status, "tool fail" in result) == ("failed", True)
    await node.do(check_rest, session)


async def test_server_that_cannot_start_changes_no_turn(node: TestNode, ana: User) -> None:
    """The turn runs without the server's tools, and a call of one of them returns an error."""
    await start(node, [[ADD], ["It is not there."]], "/no/such/program")
    session = await node.session(ana)
    await node.send(session, ana, "What is 40 and 2?")
    await node.idle(session)
    ((status, result),) = await results(node, session)
    assert (status, "There is no tool named 'tests__add'" in result) == ("failed", True)
    assert node.provider.requests[0].tools == ()
    await node.do(check_rest, session)


def names_of_tools(node: TestNode) -> list[str]:
    """Return the names of the server's tools in the last request."""
    return [tool.name for tool in node.provider.requests[-1].tools if tool.name.startswith("tests__")]


async def test_server_of_a_workspace_follows_its_changes(
    node: TestNode, ana: User, workspace: Workspace, settings: Settings
) -> None:
    """A server's tools appear without a restart, and disappear when the server is switched off."""
    settings.MCP_INTERNAL_HOSTS = ("127.0.0.1",)
    with serving() as first, serving() as second:
        node.script([[ADD], ["42."], ["Again."], ["Gone."]])
        await node.restart()
        server = await node.do(McpServer.objects.create, workspace=workspace, name="tests", url=first, approval="never")
        session = await node.session(ana)
        await node.send(session, ana, "What is 40 and 2?")
        await node.idle(session)
        assert await results(node, session) == [("complete", "42")]

        def change(**values: Any) -> None:
            McpServer.objects.filter(pk=server.pk).update(revision=F("revision") + 1, **values)

        await node.do(change, url=second, tools=["add"])
        await node.send(session, ana, "And now?")
        await node.idle(session)
        assert names_of_tools(node) == ["tests__add"]
        await node.do(change, is_enabled=False)
        await node.send(session, ana, "And now?")
        await node.idle(session)
        assert names_of_tools(node) == []
    await node.do(check_rest, session)
