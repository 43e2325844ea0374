"""The tools of MCP servers as Parley's, and their results as text for the model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

import mcp_types as types

from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.mcp.config import SEPARATOR, ServerConfig
from agents.mcp.connection import Connection
from agents.messages import Json
from agents.safe_text import cut
from agents.tools import Tool, ToolContext

# What vendors allow for a name.
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 4_000
LONGEST_RESULT = 50_000
READ_RESOURCE = "read_resource"
# A schema of more characters is replaced by one that takes any object; the server checks the arguments anyway.
LONGEST_SCHEMA = 20_000


def tools_of(connection: Connection, config: ServerConfig) -> list[Tool]:
    """Return the server's tools as they are known now, and one that reads its resources if it has any."""
    found: dict[str, Tool] = {}
    # In an order of their own: a server may list them in another one, and the vendor would cache nothing.
    for tool in sorted(connection.tools, key=lambda each: each.name):
        if config.tools is None or tool.name in config.tools:
            name = tool_name(connection.name, tool.name, found)
            found[name] = _tool(name, tool, connection, config)
    if connection.has_resources and (config.tools is None or READ_RESOURCE in config.tools):
        name = tool_name(connection.name, READ_RESOURCE, found)
        found[name] = _reader(name, connection, config)
    return list(found.values())


def tool_name(server: str, tool: str, taken: Iterable[str]) -> str:
    """Return a name that vendors allow and that is not taken; the same one each time for the same tools."""
    name = f"{server}{SEPARATOR}{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= LONGEST_NAME and name not in taken:
        return name
    digest = hashlib.sha256(f"{server} {tool} {name in taken}".encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{digest}"


def _tool(name: str, tool: types.Tool, connection: Connection, config: ServerConfig) -> Tool:
    async def call(arguments: Json, context: ToolContext) -> ForeignText:
        result = await connection.call(tool.name, arguments, context.report)
        text = text_of(result)
        if result.is_error:
            raise ToolError(text or f"{name} failed without saying why.")
        return ForeignText(text, connection.name)

    is_read_only = bool(tool.annotations and tool.annotations.read_only_hint)
    return Tool(
        name=name,
        description=cut(tool.description or tool.title or tool.name, LONGEST_DESCRIPTION),
        parameters=schema_for_models(tool.input_schema),
        function=call,
        arguments=None,
        time_limit=config.time_limit,
        approval=config.approval == "always" or (config.approval == "unless_read_only" and not is_read_only),
        foreign=True,
        sends_out="never" if is_read_only else "always",
        context="context",
    )


def _reader(name: str, connection: Connection, config: ServerConfig) -> Tool:
    async def read(arguments: Json, context: ToolContext) -> ForeignText:
        uri = arguments.get("uri")
        if not isinstance(uri, str):
            raise ToolError(f"{name} needs the argument uri, a text.")
        text = _cut("\n\n".join(map(_contents, (await connection.read(uri)).contents)))
        return ForeignText(text, connection.name)

    listed = "\n".join(_listed(resource) for resource in connection.resources)
    return Tool(
        name=name,
        description=cut(f"Read a resource of {connection.name} by URI. It has:\n{listed or 'none'}", 4_000),
        parameters={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
        function=read,
        arguments=None,
        time_limit=config.time_limit,
        approval=config.approval == "always",
        foreign=True,
        context="context",
    )


def schema_for_models(schema: Json) -> Json:
    """Return a tool's input schema in the form that vendors take: an object, whatever the server says."""
    if len(json.dumps(schema)) > LONGEST_SCHEMA:
        return {"type": "object", "properties": {}}
    kept = {key: value for key, value in schema.items() if key not in ("$schema", "$id", "title")}
    properties = kept.get("properties")
    return {**kept, "type": "object", "properties": properties if isinstance(properties, dict) else {}}


def text_of(result: types.CallToolResult) -> str:
    """Return a result as text: its parts in their order, structured content only where no text says the same."""
    parts = [_part(part) for part in result.content]
    structured = result.structured_content
    if structured is not None and not any(isinstance(part, types.TextContent) for part in result.content):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return _cut("\n\n".join(part for part in parts if part))


def _part(part: types.ContentBlock) -> str:
    match part:
        case types.TextContent():
            return part.text
        case types.ImageContent():
            return f"[image, {part.mime_type}, {_size(part.data)}: it cannot be shown to you]"
        case types.AudioContent():
            return f"[audio, {part.mime_type}, {_size(part.data)}: it cannot be played to you]"
        case types.ResourceLink():
            return f"[link to a resource] {_listed(part)}"
        case types.EmbeddedResource():
            return _contents(part.resource)


def _contents(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    kind = f", {resource.mime_type}" if resource.mime_type else ""
    if isinstance(resource, types.TextResourceContents):
        return f"[resource {resource.uri}{kind}]\n{resource.text}"
    return f"[resource {resource.uri}{kind}, {_size(resource.blob)}: it is not text]"


def _listed(resource: types.Resource) -> str:
    words = resource.description or resource.title or resource.name
    return f"{resource.uri}: {' '.join(words.split())[:200]}"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4:,} bytes"


def _cut(text: str) -> str:
    return cut(text, LONGEST_RESULT)
