"""MCP servers of workspaces in the admin."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import McpServer, SecurityEvent, Workspace

pytestmark = pytest.mark.django_db


def form(workspace: Workspace, **more: str) -> dict[str, str]:
    return {
        "workspace": str(workspace.pk),
        "name": "tickets",
        "url": "https://tickets.example.com/mcp",
        "headers": "Authorization: Bearer very-secret",
        "tools": "find\ncomment",
        "approval": "always",
        "time_limit": "30",
        "is_enabled": "on",
        **more,
    }


def test_staff_add_change_and_delete_a_server(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01: secrets are kept unless others are entered, and never shown."""
    assert admin_client.post(reverse("admin:chat_mcpserver_add"), form(workspace)).status_code == 302
    server = McpServer.objects.get()
    assert (server.tools, server.time_limit, server.for_all_agents) == (["find", "comment"], 30.0, False)
    secrets = server.secret_headers
    page = reverse("admin:chat_mcpserver_change", args=[server.pk])
    assert "very-secret" not in admin_client.get(page).content.decode()
    assert admin_client.post(page, form(workspace, headers="", name="again", tools="")).status_code == 302
    server.refresh_from_db()
    assert (server.name, server.tools, server.secret_headers, server.revision) == ("again", None, secrets, 3)
    assert (
        admin_client.post(reverse("admin:chat_mcpserver_delete", args=[server.pk]), {"post": "yes"}).status_code == 302
    )
    kinds = list(SecurityEvent.objects.filter(object_type="mcpserver").order_by("pk").values_list("kind", flat=True))
    assert kinds == ["mcp_server_added", "mcp_server_changed", "mcp_server_removed"]


def test_what_cannot_work_is_refused(admin_client: Client, workspace: Workspace) -> None:
    for wrong in ({"url": "https://10.0.0.1/"}, {"headers": "nonsense"}, {"name": "a b"}, {"time_limit": "0"}):
        refused = admin_client.post(reverse("admin:chat_mcpserver_add"), form(workspace, **wrong))
        assert (refused.status_code, "errorlist" in refused.content.decode()) == (200, True)
    assert not McpServer.objects.exists()
