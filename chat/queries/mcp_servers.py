"""The MCP servers of a workspace, as its agents use them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents.mcp.config import SEPARATOR, AddedServer, ServerConfig
from agents.registry import AgentPreset
from chat.access import sharing_workspace
from chat.agents_setup import registry
from chat.models import McpServer, Session
from chat.security.encryption import DecryptionError, decrypt

logger = logging.getLogger(__name__)

IN_USE: Mapping[str, Any] = {"is_enabled": True, "removed_at": None}


def with_servers(preset: AgentPreset, session: Session) -> AgentPreset:
    """Add the servers of the session's workspace, and the tools of servers that are for all agents, with one query."""
    rows = list(McpServer.objects.filter(workspace__in=sharing_workspace(session), **IN_USE).order_by("name"))
    if not rows or session.mode == Session.Mode.CHAT:
        return preset
    given = [pattern(row) for row in rows if row.for_all_agents and not is_shadowed(row)]
    tools = tuple(dict.fromkeys((*preset.tools, *given)))
    return replace(preset, tools=tools, servers=tuple(as_added(row) for row in rows))


def patterns_in(workspace_id: int) -> set[str]:
    """Return the patterns by which agents of a workspace may name its servers."""
    return {pattern(row) for row in McpServer.objects.filter(workspace=workspace_id, **IN_USE)}


def patterns_for(session: Session) -> set[str]:
    """Return the patterns by which agents of a session may name the servers of its workspace."""
    return {pattern(row) for row in McpServer.objects.filter(workspace__in=sharing_workspace(session), **IN_USE)}


def all_patterns() -> list[str]:
    """Return the patterns of the servers of all workspaces."""
    names = McpServer.objects.filter(**IN_USE).order_by("name").values_list("name", flat=True).distinct()
    return [f"{name}{SEPARATOR}*" for name in names]


def pattern(row: McpServer) -> str:
    return f"{row.name}{SEPARATOR}*"


def is_shadowed(row: McpServer) -> bool:
    """Return whether the operator has configured a server of this name, which is used instead."""
    return row.name in registry().server_names()


def as_added(row: McpServer) -> AddedServer:
    """Return a server as the agent engine takes it. If its secrets can no longer be decrypted, it has none."""
    is_signed_in = bool(row.sign_in_status)
    return AddedServer(server_id(row), str(row.revision), row.name, config_of(row), headers_of(row), is_signed_in)


def server_id(row: McpServer) -> str:
    """Return the server's id for the agent engine."""
    return f"row {row.pk}"


def row_id(server: AddedServer) -> int:
    """Return the primary key of a server's row."""
    return int(server.id.removeprefix("row "))


def config_of(row: McpServer) -> ServerConfig:
    """Return the settings of a workspace's server in the form of the configuration file."""
    return ServerConfig.model_validate(
        {
            "url": row.url,
            "internal_hosts": settings.MCP_INTERNAL_HOSTS,
            "tools": row.tools,
            "time_limit": row.time_limit,
            "approval": row.approval,
        }
    )


def headers_of(row: McpServer) -> Mapping[str, str]:
    """Return the decrypted headers, or none if SECRET_KEY has changed since they were stored."""
    if not row.secret_headers:
        return {}
    try:
        headers: dict[str, str] = json.loads(decrypt(row.secret_headers))
    except DecryptionError:
        logger.warning("Could not decrypt the headers of the MCP server %s. Enter them again", row.name)
        return {}
    return headers
