"""Commands of a session's agent, and the session's folder from the first command until the session is erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.messages import ToolCall
from chat import agents_setup
from chat.models import ChatMessage, Session, User
from chat.projections.context import TOOL_INTERRUPTED
from chat.services.deletion.sessions import erase_rows
from chat.services.sessions.actions import delete
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import CONFIG, TestNode

TOOLS: dict[str, Any] = CONFIG | {
    "agents": {"agent": {"model": "scripted/one", "tools": ["bash"], "approval": {"allow": ["bash"]}}}
}


@pytest.fixture
def workspaces(settings: Settings, tmp_path: Path) -> Path:
    settings.WORKSPACES = str(tmp_path / "workspaces")
    return tmp_path / "workspaces"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*")}


def bash(number: int, command: str) -> ToolCall:
    return ToolCall(f"c{number}", "bash", {"command": command})


async def say(node: TestNode, session: Session, author: User) -> list[str]:
    """Run a turn; return the results of its tools."""
    await node.send(session, author, "Go")
    await node.idle(session)
    return [row.result for row in await node.rows(session) if row.type == "tool_group"]


async def test_a_session_has_a_folder_of_its_own(node: TestNode, ana: User, workspaces: Path) -> None:
    """The first command creates the folder, later turns use it, and no other session sees it."""
    node.script(
        [
            ["Hello"],
            [bash(1, "echo kept > file")],
            ["Done"],
            [bash(2, "cat file")],
            ["Done"],
            [bash(3, "ls -A")],
            ["."],
        ],
        TOOLS,
    )
    mine, other = await node.session(ana), await node.session(ana)
    await say(node, mine, ana)
    assert names(workspaces) == set()
    await say(node, mine, ana)
    assert await say(node, mine, ana) == ["[No output.]", "kept"]
    assert await say(node, other, ana) == ["attachments"]
    assert names(workspaces) == {mine.pk, other.pk}


async def test_commands_put_nothing_among_attachments(node: TestNode, ana: User, workspaces: Path) -> None:
    """UI-15: addresses in attachments count as those of users, so the model must not write any into their folder.

    This also holds in a session without attachments.
    """
    node.script(
        [
            [bash(1, "echo https://evil.example > attachments/a; ln -s .. attachments/b; mv attachments c")],
            ["Done"],
            [bash(2, "rm -r attachments; ln -sfn . attachments; ls -A attachments")],
            ["Done"],
        ],
        TOOLS,
    )
    session = await node.session(ana)
    await say(node, session, ana)
    first, second = await say(node, session, ana)
    assert first.count("Read-only file system") == 2
    assert "Device or resource busy" in first
    assert "Device or resource busy" in second
    assert [path.name for path in (workspaces / session.pk).rglob("*")] == ["attachments"]


async def test_stop_ends_a_command(node: TestNode, ana: User, workspaces: Path) -> None:
    """RUN-08, UI-10: the output is in the row while the command runs, and stays after a stop."""
    node.script([[bash(1, "echo begun; sleep 1000")], ["Done"]], TOOLS)
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.until(ChatMessage.objects.filter(session=session, status="running", result="begun\n").exists)
    await node.cancel(session, ana)
    await node.idle(session)
    assert ("tool_group", "interrupted", f"begun\n{TOOL_INTERRUPTED}") in await node.shown(session)


@pytest.mark.django_db
def test_the_folder_goes_with_the_session_for_good(ana: User, workspaces: Path) -> None:
    """The folder is deleted with the erased session. Until then, the session can be restored with its files."""
    session = create_session(owner=ana)
    folder = agents_setup.sandbox(session.pk).workspace
    folder.mkdir(parents=True)
    (folder / "file").touch()
    delete(user=ana, session_id=session.pk)
    assert (folder / "file").exists()
    erase_rows(session.pk)
    assert list(workspaces.iterdir()) == []


def test_a_name_that_leads_elsewhere_is_no_workspace(workspaces: Path) -> None:
    for name in ("..", "a/b", ""):
        with pytest.raises(ValueError, match="cannot name a folder"):
            agents_setup.sandbox(name)


def test_parleys_own_folders_are_hidden_from_commands(settings: Settings, workspaces: Path) -> None:
    assert {Path(settings.DATA_DIR).resolve(), Path(settings.BASE_DIR), workspaces} <= set(
        agents_setup.sandbox("s_1").hidden
    )
