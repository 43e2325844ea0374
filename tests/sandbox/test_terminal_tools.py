"""The tools bash and python: the texts for the model about output, ends of commands and long output."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.messages import ToolCall, ToolResult
from agents.sandbox import probe, process, usage
from agents.sandbox.command import Limits, Sandbox
from agents.toolbox import DEFAULT_TOOLS, TOOLBOX, available
from agents.toolbox.terminal import MAX_OUTPUT_LENGTH, PREVIEW
from agents.tools import ToolContext


async def call(sandbox: Sandbox | None, name: str, **arguments: object) -> ToolResult:
    return await TOOLBOX[name].run(ToolCall("c", name, arguments), ToolContext(sandbox=sandbox))


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo out; echo err >&2", "out\nerr"),
        ("printf ''", "[No output.]"),
        ("echo out; exit 3", "out\n[Exit code 3]"),
        ("cat missing", "cat: missing: No such file or directory\n[Exit code 1]"),
        ("printf 'a\\0b\\377'", "a\ufffdb\ufffd"),
        ("pwd; id -un", "/workspace\nuser"),
    ],
)
async def test_bash_returns_what_a_command_prints(sandbox: Sandbox, command: str, result: str) -> None:
    """A failed command is a result with its output and its exit code."""
    assert await call(sandbox, "bash", command=command) == ToolResult("c", result, origin="bash")


async def test_a_command_has_no_file_as_its_input(sandbox: Sandbox) -> None:
    """Programs such as ripgrep would search the file instead of the session's folder, and find nothing."""
    result = await call(sandbox, "bash", command="[ -c /dev/stdin ] && cat && echo read")
    assert result == ToolResult("c", "read", origin="bash")


@pytest.mark.parametrize("change", ["chmod -R 644 .", "chmod 000 ."])
async def test_a_session_stays_usable_after_a_command_has_locked_its_folder(sandbox: Sandbox, change: str) -> None:
    """No later command could undo the change, because none could start in the folder."""
    await call(sandbox, "bash", command=f"echo kept > file; {change}")
    assert (await call(sandbox, "bash", command="cat file")).content == "kept"
    await call(sandbox, "bash", command=change)
    assert (await call(sandbox, "read_file", path="file")).content == "kept"


async def test_python_runs_a_program(sandbox: Sandbox) -> None:
    result = await call(sandbox, "python", code="import sys\nprint(6 * 7)\nsys.exit('no')")
    assert result == ToolResult("c", "42\nno\n[Exit code 1]", origin="python")


async def test_files_stay_for_the_next_call(sandbox: Sandbox) -> None:
    await call(sandbox, "bash", command="mkdir work; echo kept > work/file")
    assert (await call(sandbox, "python", code="print(open('work/file').read())")).content == "kept"


@pytest.mark.parametrize(
    ("limits", "command", "note"),
    [
        (Limits(), "echo begun; sleep 1000", "[Stopped after 1 seconds.]"),
        (Limits(output_bytes=1_000_000), "echo begun; yes", "[Stopped: it printed more than 1 MB.]"),
        (Limits(memory_mb=50), "echo begun; head -c 90M /dev/zero | tail", "begun"),
    ],
)
async def test_a_command_over_a_limit_is_stopped(sandbox: Sandbox, limits: Limits, command: str, note: str) -> None:
    result = await call(replace(sandbox, limits=limits), "bash", command=command, timeout=1)
    assert result.content.startswith("begun\n")
    assert note in result.content


DEEP = "python3 -c \"import os\nfor _ in range(202): os.mkdir('d'); os.chdir('d')\""
UNMEASURED = (
    "The session's folder has a folder that cannot be read, or more than 200 levels of folders. "
    "Run chmod -R u+rwX . with bash, or delete the deepest folders."
)


NOTE = f"[This command could not write files. The reason when it started: {UNMEASURED}]"


async def test_the_reason_why_no_file_can_be_written_is_reported(sandbox: Sandbox) -> None:
    """A folder that cannot be measured counts as full, but it may be small, and deleting other files would not help."""
    assert (await call(sandbox, "bash", command=f"{DEEP}; sleep 20")).content == f"[Stopped. {UNMEASURED}]"
    failed = "bash: line 1: echo: write error: File too large"
    result = await call(sandbox, "bash", command="echo text > file")
    assert result.content == f"{failed}\n{NOTE}\n[Exit code 1]"
    assert await call(sandbox, "write_file", path="file", content="text") == ToolResult("c", UNMEASURED, is_error=True)
    assert (await call(sandbox, "bash", command="rm -r d")).content == NOTE
    assert (await call(sandbox, "bash", command="echo text > file; cat file")).content == "text"


async def test_a_folder_that_cannot_be_read_is_named_as_the_reason(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call(sandbox, "bash", command="mkdir closed")

    def scandir(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(path)
        return os.scandir(path)

    monkeypatch.setattr(usage, "os", SimpleNamespace(scandir=scandir))
    assert (await call(sandbox, "bash", command="ls")).content == f"closed\n{NOTE}"


async def test_a_command_on_a_full_disk_is_stopped_with_this_reason(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MIN_FREE_MB", 10**12)
    result = await call(sandbox, "bash", command="sleep 20")
    assert result.content == "[Stopped. The disk of this machine is almost full.]"


async def test_long_output_goes_to_a_file(sandbox: Sandbox) -> None:
    """The model gets the beginning and the end, and can read the rest from the file."""
    lines = "".join(f"Line {number}\n" for number in range(1, 20_001))
    result = await call(sandbox, "bash", command="for i in $(seq 20000); do echo Line $i; done")
    assert result.content.startswith(lines[:PREVIEW])
    assert result.content.endswith(lines[-PREVIEW:].rstrip("\n"))
    assert len(result.content) < 2 * PREVIEW + 400
    assert (sandbox.workspace / ".parley/output-1.txt").read_text() == lines
    assert "The whole output is in .parley/output-1.txt: read it with read_file" in result.content
    again = await call(sandbox, "read_file", path=".parley/output-1.txt", offset=10_000, limit=2)
    assert again.content == "Line 10000\nLine 10001\n\n[Lines 10000 to 10001 of 20000. Read on with offset=10002.]"
    result = await call(sandbox, "bash", command=f"head -c {MAX_OUTPUT_LENGTH + 1} /dev/zero | tr '\\0' x")
    assert ".parley/output-2.txt" in result.content


async def test_output_up_to_the_limit_is_given_whole(sandbox: Sandbox) -> None:
    result = await call(sandbox, "bash", command=f"head -c {MAX_OUTPUT_LENGTH} /dev/zero | tr '\\0' x")
    assert result.content == "x" * MAX_OUTPUT_LENGTH


async def test_a_link_does_not_lead_long_output_out_of_the_workspace(sandbox: Sandbox) -> None:
    outside = sandbox.workspace.parent / "outside"
    outside.mkdir()
    (sandbox.workspace / ".parley").symlink_to(outside)
    result = await call(sandbox, "bash", command="seq 20000")
    assert "The whole output could not be saved." in result.content
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [{"command": ""}, {"command": "x" * 30_001}, {"command": "ls", "timeout": 601}, {"timeout": 1}]
)
async def test_arguments_out_of_range_are_refused(sandbox: Sandbox, arguments: dict[str, object]) -> None:
    assert (await call(sandbox, "bash", **arguments)).is_error


async def test_without_a_session_there_is_no_workspace() -> None:
    assert await call(None, "bash", command="ls") == ToolResult("c", "There are no session files here.", is_error=True)
    assert await call(None, "list_files") == ToolResult("c", "There are no session files here.", is_error=True)


async def test_a_workspace_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = await call(Sandbox(tmp_path / "file" / "s_1"), "bash", command="ls")
    assert result == ToolResult("c", "The sandbox is not available: File exists.", is_error=True)


def test_what_runs_commands_needs_approval() -> None:
    assert {tool.name for tool in TOOLBOX.values() if tool.approval} == {"bash", "python"}


def test_tools_that_need_a_sandbox_are_left_out_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available(["gone", "bash", "calculator"]) == (TOOLBOX["bash"], TOOLBOX["calculator"])
    monkeypatch.setattr(probe, "problem", lambda: "no")
    assert available(["bash", *(tool.name for tool in DEFAULT_TOOLS)]) == DEFAULT_TOOLS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"PROGRAMS": {"no-such-program": "bubblewrap"}}, "these programs are not installed: bubblewrap"),
        ({"_COMMAND": ("bash", "-c", "echo broken >&2")}, "broken"),
    ],
)
def test_the_probe_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], reason: str
) -> None:
    probe._problem.cache_clear()
    for name, value in changes.items():
        monkeypatch.setattr(probe, name, value)
    assert probe.problem() == reason
    probe._problem.cache_clear()
