"""The tools of MCP servers in the forms that models and vendors use."""

from __future__ import annotations

import os
import shutil
from base64 import b64encode
from pathlib import Path

import mcp_types as types
import pytest

from agents.mcp.config import ServerConfig
from agents.mcp.pool import Servers
from agents.mcp.results import read_result
from agents.mcp.tools import sends_out_of, tool_name
from agents.messages import Source
from agents.sandbox import probe
from agents.sandbox.command import Limits, Sandbox
from agents.tools import SendsOut, ToolContext


def test_names_are_short_unique_and_of_allowed_characters() -> None:
    assert tool_name("files", "read.file", []) == "files__read_file"
    long = tool_name("files", "a" * 100, [])
    assert len(long) == 64
    assert long != tool_name("files", "a" * 101, [])
    assert tool_name("files", "read/file", ["files__read_file"]) not in ("files__read_file", "files__read.file")


@pytest.mark.parametrize(
    ("hints", "sends_out"),
    [
        (types.ToolAnnotations(), "always"),
        (types.ToolAnnotations(open_world_hint=False), "always"),
        (types.ToolAnnotations(read_only_hint=True), "address"),
        (types.ToolAnnotations(read_only_hint=True, open_world_hint=True), "address"),
        (types.ToolAnnotations(read_only_hint=True, open_world_hint=False), "never"),
    ],
)
def test_a_tool_that_only_reads_can_send_addresses(hints: types.ToolAnnotations, sends_out: SendsOut) -> None:
    """UI-15: a tool that reads pages changes nothing, but an address that it opens can contain data."""
    assert sends_out_of(hints) == sends_out


WHOLE = types.CallToolResult(
    content=[
        types.TextContent(text="hello"),
        types.ImageContent(data="MTIz", mime_type="image/png"),
        types.AudioContent(data="MTIz", mime_type="audio/wav"),
        types.ResourceLink(uri="a://b", name="b", description="A file"),
        types.ResourceLink(uri="https://b.example/", name="b", title="B", description="A page"),
        types.EmbeddedResource(resource=types.TextResourceContents(uri="a://c", text="inside")),
        types.EmbeddedResource(resource=types.BlobResourceContents(uri="a://d", blob="MTIz")),
        types.EmbeddedResource(resource=types.BlobResourceContents(uri="a://e", blob="?")),
    ]
)


async def test_each_type_of_content_has_its_text_and_files(tmp_path: Path) -> None:
    """UI-16: data is stored in the workspace, web links can be cited, and the text for the model names both."""
    changes: list[int] = []
    context = ToolContext(sandbox=Sandbox(tmp_path), files_changed=lambda: changes.append(1))
    read = await read_result(WHOLE, "server", "draw it", context)
    assert read.text.split("\n\n") == [
        "hello",
        "[image, image/png, 3 bytes: users see it; it is in the session's folder as tool-results/draw-it-1.png]",
        "[audio, audio/wav, 3 bytes: users see it; it is in the session's folder as tool-results/draw-it-1.wav]",
        "[link to a resource] a://b: A file",
        "[1] https://b.example/: A page",
        "[resource a://c]\ninside",
        "[resource a://d, 3 bytes: users see it; it is in the session's folder as tool-results/draw-it-1.bin]",
        "[resource a://e: it is damaged]",
    ]
    assert read.sources == (Source(1, "B", "https://b.example/"),)
    assert [(file.path[13:], file.media_type, file.size) for file in read.files] == [
        ("draw-it-1.png", "image/png", 3),
        ("draw-it-1.wav", "audio/wav", 3),
        ("draw-it-1.bin", "", 3),
    ]
    assert (tmp_path / read.files[0].path).read_bytes() == b"123"
    assert len(changes) == 3
    again = await read_result(WHOLE, "server", "draw it", context)
    assert again.files[0].path == "tool-results/draw-it-2.png"


async def test_files_are_not_kept_where_they_cannot_be(tmp_path: Path) -> None:
    """UI-16: without a workspace, and behind a link that a command has made, no file is stored and the text says so."""
    without = await read_result(WHOLE, "server", "x", ToolContext())
    assert "[image, image/png, 3 bytes: it was not stored]" in without.text
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/tool-results").symlink_to(tmp_path / "elsewhere")
    linked = await read_result(WHOLE, "server", "x", ToolContext(sandbox=Sandbox(tmp_path / "work")))
    assert "[image, image/png, 3 bytes: it could not be stored]" in linked.text
    assert (list((tmp_path / "elsewhere").iterdir()), linked.files) == ([], ())


async def test_a_full_workspace_takes_no_files(tmp_path: Path) -> None:
    """UI-16: the limits are those of commands, and a new file counts towards them before it is stored."""
    few = Sandbox(tmp_path / "few", limits=Limits(workspace_files=2))
    read = await read_result(WHOLE, "server", "x", ToolContext(sandbox=few))
    assert "[audio, audio/wav, 3 bytes: it was not stored, because the session's folder is full]" in read.text
    assert len(read.files) == 1
    small = Sandbox(tmp_path / "small", limits=Limits(workspace_mb=1))
    data = b64encode(b"x" * 600_000).decode()
    image = types.ImageContent(data=data, mime_type="image/png")
    read = await read_result(types.CallToolResult(content=[image, image]), "server", "x", ToolContext(sandbox=small))
    assert len(read.files) == 1
    assert "[image, image/png, 600,000 bytes: it was not stored, because the session's folder is full]" in read.text


async def test_a_full_disk_takes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-16: if the disk is almost full, no files are stored, because Parley needs the rest."""
    monkeypatch.setattr("agents.sandbox.process.MIN_FREE_MB", 10**12)
    read = await read_result(WHOLE, "server", "x", ToolContext(sandbox=Sandbox(tmp_path)))
    assert read.files == ()


async def test_an_error_keeps_no_files(tmp_path: Path) -> None:
    """UI-16: files of an error are not stored, because no card would show them."""
    failed = WHOLE.model_copy(update={"is_error": True})
    read = await read_result(failed, "server", "x", ToolContext(sandbox=Sandbox(tmp_path)))
    assert (read.files, os.listdir(tmp_path)) == ((), [])
    assert "[image, image/png, 3 bytes: it was not stored]" in read.text


async def test_types_of_data_can_be_stored(tmp_path: Path) -> None:
    """UI-16: any media type of a server is cleaned for the database. PostgreSQL accepts no NUL in JSON."""
    odd = types.CallToolResult(content=[types.ImageContent(data="MTIz", mime_type="image/\x00\ud800" + "x" * 200)])
    read = await read_result(odd, "server", "x", ToolContext(sandbox=Sandbox(tmp_path)))
    [file] = read.files
    assert file.media_type == "image/\ufffd\ufffd" + "x" * 92
    link = types.ResourceLink(uri="https://b.example/\ud800", name="b")
    assert not (await read_result(types.CallToolResult(content=[link]), "server", "x", ToolContext())).sources


async def test_structured_content_alone_is_json() -> None:
    result = types.CallToolResult(content=[], structured_content={"a": "ä"})
    assert (await read_result(result, "server", "x", ToolContext())).text == '{"a": "ä"}'


def test_programs_that_the_sandbox_does_not_have_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs and paths outside of the sandbox are reported, also a link to a program in /usr that is itself
    elsewhere, because such programs end without a message."""
    monkeypatch.setattr(probe, "problem", lambda: "")
    program, data = tmp_path / "server", tmp_path / "data"
    program.touch(0o755)
    data.mkdir()

    def found(*command: str, hidden: tuple[Path, ...] = (), sandbox: bool = True) -> list[str]:
        servers = {"it": ServerConfig(command=command, sandbox=sandbox)}
        place = Sandbox(tmp_path / "workspace", hidden=hidden)
        return [why for _name, why in Servers(servers, {}, lambda name, network: place).problems()]

    has = "which has /usr and a folder of its own, /workspace"
    assert found(str(program)) == [f"{program} does not exist in its sandbox, {has}"]
    assert found("cat", f"--root={data}", str(data / "none"), "/usr/bin", "/workspace/x", "/tmp") == [  # noqa: S108
        f"{data} does not exist in its sandbox, {has}"
    ]
    assert found("cat", "/usr/bin", hidden=(Path("/usr/bin").resolve(),)) != []
    assert found(str(program), sandbox=False) == []
    link = tmp_path / "link"
    link.symlink_to("/usr/bin/env")
    monkeypatch.setattr(shutil, "which", lambda name, path=None: str(link))
    assert found("env") == [f"{link} does not exist in its sandbox, {has}"]


def test_servers_that_cannot_work_are_named() -> None:
    servers = {
        "a": ServerConfig(command=("no-such-program",), sandbox=False),
        "b": ServerConfig(url="http://x/", headers={"A": "${NONE}"}),
        "c": ServerConfig(url="http://x/"),
    }
    assert list(Servers(servers, {}).problems()) == [
        ("a", "the program no-such-program is not installed"),
        ("b", "the environment variable NONE is not set"),
    ]
