"""The tools and resources of MCP servers as tools of Parley."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import mcp_types as types

from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.mcp.config import SEPARATOR, ServerConfig
from agents.mcp.connection import Connection
from agents.mcp.results import read_contents, read_result, resource_line
from agents.messages import Json
from agents.safe_text import clean, cut
from agents.schemas import schema_for_models, with_names_for_models
from agents.tools import SendsOut, Tool, ToolContext

# The longest name of a tool that vendors allow.
MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 4_000
READ_RESOURCE = "read_resource"


def tools_of(connection: Connection, config: ServerConfig) -> Sequence[Tool]:
    """Return the server's tools that are known now, and a tool that reads its resources if the server offers them.

    They are made once for each list of the server, because making them takes several milliseconds for a large one, and
    each request to a model needs them.
    """
    lists = connection.tools, connection.resources, connection.has_resources, config
    if connection.made_tools is None or connection.made_tools[0] != lists:
        connection.made_tools = lists, _made_tools(connection, config)
    return connection.made_tools[1]


def _made_tools(connection: Connection, config: ServerConfig) -> list[Tool]:
    found: dict[str, Tool] = {}
    # Sorted, because a server may change the order of its list and the vendor's cache would then be missed.
    for tool in sorted(connection.tools, key=lambda each: each.name):
        if config.tools is None or tool.name in config.tools:
            name = tool_name(connection.name, tool.name, found)
            found[name] = _tool(name, tool, connection, config)
    if connection.has_resources and (config.tools is None or READ_RESOURCE in config.tools):
        name = tool_name(connection.name, READ_RESOURCE, found)
        found[name] = _reader(name, connection, config)
    return list(found.values())


def tool_name(server: str, tool: str, taken: Iterable[str]) -> str:
    """Return a name that vendors allow and that is not taken. It is always the same for the same list of tools."""
    name = f"{server}{SEPARATOR}{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= MAX_NAME_LENGTH and name not in taken:
        return name
    digest = hashlib.sha256(f"{server} {tool} {name in taken}".encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME_LENGTH - 9]}_{digest}"


def _tool(name: str, tool: types.Tool, connection: Connection, config: ServerConfig) -> Tool:
    schema, renamed = with_names_for_models(schema_for_models(tool.input_schema))

    async def call(arguments: Json, context: ToolContext) -> ForeignText:
        named = {renamed.get(argument, argument): value for argument, value in arguments.items()}
        ask = context.ask
        ask_users = None if ask is None else lambda question: ask(question, config.answer_limit)
        result = await connection.call(tool.name, named, context.report, ask_users)
        read = await read_result(result, connection.name, tool.name, context)
        if result.is_error:
            raise ToolError(read.text or f"{name} failed without saying why.", origin=read.origin)
        return read

    hints = tool.annotations or types.ToolAnnotations()
    is_read_only = bool(hints.read_only_hint)
    return Tool(
        name=name,
        description=clean(cut(tool.description or tool.title or tool.name, MAX_DESCRIPTION_LENGTH)),
        parameters=schema,
        function=call,
        arguments=None,
        time_limit=config.time_limit,
        approval=config.approval == "always" or (config.approval == "unless_read_only" and not is_read_only),
        foreign=True,
        sends_out=sends_out_of(hints),
        context="context",
    )


def sends_out_of(hints: types.ToolAnnotations) -> SendsOut:
    """Return what a tool can send out. A tool that only reads can still open addresses, unless its world is closed."""
    if not hints.read_only_hint:
        return "always"
    return "never" if hints.open_world_hint is False else "address"  # the protocol's default is an open world


def _reader(name: str, connection: Connection, config: ServerConfig) -> Tool:
    async def read(arguments: Json, context: ToolContext) -> ForeignText:
        uri = arguments.get("uri")
        if not isinstance(uri, str):
            raise ToolError(f"{name} needs the argument uri, a string.")
        return await read_contents((await connection.read(uri)).contents, connection.name, "resource", context)

    named = "\n".join(resource_line(resource) for resource in connection.resources)
    return Tool(
        name=name,
        description=cut(f"Read a resource of {connection.name} by URI. It has:\n{named or 'none'}", 4_000),
        parameters={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
        function=read,
        arguments=None,
        time_limit=config.time_limit,
        approval=config.approval == "always",
        foreign=True,
        sends_out="address",
        context="context",
    )
