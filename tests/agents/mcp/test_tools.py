"""The tools of MCP servers in the forms that models and vendors take."""

from __future__ import annotations

import mcp_types as types

from agents.mcp.config import ServerConfig
from agents.mcp.pool import Servers
from agents.mcp.tools import schema_for_models, text_of, tool_name


def test_names_are_short_unique_and_of_allowed_characters() -> None:
    assert tool_name("files", "read.file", []) == "files__read_file"
    long = tool_name("files", "a" * 100, [])
    assert len(long) == 64
    assert long != tool_name("files", "a" * 101, [])
    assert tool_name("files", "read/file", ["files__read_file"]) not in ("files__read_file", "files__read.file")


def test_schemas_are_objects() -> None:
    assert schema_for_models({"$schema": "x", "title": "t"}) == {"type": "object", "properties": {}}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert schema_for_models(schema) == schema
    assert schema_for_models({"type": "object", "description": "x" * 30_000}) == {"type": "object", "properties": {}}


def test_each_type_of_content_has_its_text() -> None:
    result = types.CallToolResult(
        content=[
            types.TextContent(text="hello"),
            types.ImageContent(data="MTIz", mime_type="image/png"),
            types.AudioContent(data="MTIz", mime_type="audio/wav"),
            types.ResourceLink(uri="a://b", name="b", description="A file"),
            types.EmbeddedResource(resource=types.TextResourceContents(uri="a://c", text="inside")),
            types.EmbeddedResource(resource=types.BlobResourceContents(uri="a://d", blob="MTIz")),
        ]
    )
    assert text_of(result).split("\n\n") == [
        "hello",
        "[image, image/png, 3 bytes: it cannot be shown to you]",
        "[audio, audio/wav, 3 bytes: it cannot be played to you]",
        "[link to a resource] a://b: A file",
        "[resource a://c]\ninside",
        "[resource a://d, 3 bytes: it is not text]",
    ]


def test_structured_content_alone_is_json() -> None:
    assert text_of(types.CallToolResult(content=[], structured_content={"a": "ä"})) == '{"a": "ä"}'


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
