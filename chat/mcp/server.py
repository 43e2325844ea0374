"""The MCP server: the SDK's server with the tools of this package, and with sessions as resources."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import mcp_types as types
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext as _
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.requests import Request

from agents.messages import Json
from chat.api.errors import default_detail
from chat.api.streams import watch_session
from chat.api.waiting import Wait
from chat.command_frames import MalformedCommand
from chat.db import Threads, is_unavailable
from chat.errors import ServiceError, unavailable
from chat.live.credentials import Token
from chat.live.turn_wait import TurnWait
from chat.mcp.caller import SCOPE_KEY, Caller
from chat.mcp.tools import (
    TOOLS,
    ListSessions,
    McpTool,
    Pending,
    ReadSession,
    list_sessions,
    read_session,
    turn_result,
)
from chat.models import SessionRole

logger = logging.getLogger(__name__)
T = TypeVar("T")
THREADS = 4
SCHEME = "parley://sessions/"
MARKDOWN = "text/markdown"
INSTRUCTIONS = (
    "Parley is a chat in which a team and its agents work in shared sessions. You act in the name of the token's user. "
    "Find a session with list_sessions or search, read it with read_session, and take part with send_message."
)


class ParleyServer:
    """Answers the requests of authenticated callers. Use it on one event loop."""

    def __init__(self) -> None:
        self._threads = Threads(THREADS, "parley-mcp")
        server: Server[Any] = Server(
            "parley",
            title="Parley",
            version="1",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )
        # Stateless, because any process may get the next request. The endpoint has checked host, origin and size.
        self.manager = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        )

    async def close(self) -> None:
        """Close the database connections."""
        await self._threads.close()

    async def _list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        caller = _caller(context)
        return types.ListToolsResult(tools=[_describe(each) for each in TOOLS.values() if _may(caller, each)])

    async def _call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller, tool = _caller(context), TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        try:
            if not _may(caller, tool):
                raise ServiceError("read_only_token", _("This token is read-only."))
            given = tool.arguments.model_validate(params.arguments or {})
            result = await self._run(caller, lambda: tool.run(caller, given))
            if isinstance(result, Pending):
                result = await self._wait_for_turn(context, caller, result)
        except ValidationError as error:
            return _failure(_explain(error))
        except Exception as error:
            return _failure(_sentence(error, params.name))
        if isinstance(result, str):
            return types.CallToolResult(content=[types.TextContent(text=result)])
        text = json.dumps(result, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=result)

    async def _wait_for_turn(self, context: ServerRequestContext[Any], caller: Caller, pending: Pending) -> Json:
        """Wait for the turn as a REST request does. Regularly report to the client that the agent is still working."""
        subscriber = TurnWait(caller.user, SessionRole.VIEWER, Token(caller.token.pk), name=pending.name)
        wait = Wait(caller.user, pending.session_id, pending.sent, pending.seconds, subscriber)
        chunks: AsyncIterator[str] = (
            watch_session(pending.session_id, subscriber, wait.chunks, wait.at_once)
            if pending.seconds
            else wait.at_once()
        )
        body, beats = "", 0
        async for chunk in chunks:
            if chunk.isspace():
                beats += 1
                await context.session.report_progress(beats, message="The agent is working.")
            else:
                body = chunk
        return turn_result(caller, pending, {"turn_id": None, "sequence": None, **json.loads(body)})

    async def _list_resources(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        caller = _caller(context)
        given = _validate(ListSessions, {"cursor": params.cursor if params else None, "limit": 50})
        page = await self._run_for_resource(caller, lambda: list_sessions(caller, given))
        resources = [
            types.Resource(
                uri=f"{SCHEME}{each['id']}", name=each["title"] or each["id"], mime_type=MARKDOWN, title=each["title"]
            )
            for each in page["sessions"]
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=page["next"])

    async def _list_templates(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=SCHEME + "{id}", name="session", title="A session as Markdown", mime_type=MARKDOWN
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        caller, uri = _caller(context), str(params.uri)
        if not uri.startswith(SCHEME):
            raise MCPError(types.INVALID_PARAMS, f"Not a session of Parley: {uri[:200]}")
        given = _validate(ReadSession, {"session": uri.removeprefix(SCHEME), "limit": 200})
        text = await self._run_for_resource(caller, lambda: str(read_session(caller, given)))
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)]
        )

    async def _run_for_resource(self, caller: Caller, function: Callable[[], T]) -> T:
        """Run a function for a resource. Raise MCPError."""
        try:
            return await self._run(caller, function)
        except Exception as error:
            raise MCPError(types.INVALID_PARAMS, _sentence(error, "a resource")) from error

    async def _run(self, caller: Caller, function: Callable[[], T]) -> T:
        return await self._threads.run(caller.run, function)


def _caller(context: ServerRequestContext[Any]) -> Caller:
    request: Request = context.request  # type: ignore[assignment]  # never None over HTTP
    caller: Caller = request.scope[SCOPE_KEY]
    return caller


def _may(caller: Caller, tool: McpTool) -> bool:
    return caller.may_write or not tool.writes


def _describe(tool: McpTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={"type": "object", "properties": {}, **tool.arguments.model_json_schema()},
        annotations=types.ToolAnnotations(
            title=tool.title, read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False
        ),
    )


def _validate(kind: type[Any], values: Json) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise MCPError(types.INVALID_PARAMS, _explain(error)) from error


def _explain(error: ValidationError) -> str:
    found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)[:10]]
    return "; ".join(found)


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _sentence(error: Exception, what: str) -> str:
    """Return why a call failed, as a sentence. Log errors that the caller cannot fix."""
    match error:
        case ServiceError():
            after = f" Try again after {error.details['retry_after']} s." if "retry_after" in error.details else ""
            return f"{error.message} ({error.code}){after}"
        case MalformedCommand():
            return str(error)
        case DatabaseError() | InterfaceError() if is_unavailable(error):
            logger.warning("Could not answer an MCP client's %s: %s", what, error)
            return unavailable()
        case _:
            logger.error("An MCP client's %s failed", what, exc_info=error)
            return default_detail(500)
