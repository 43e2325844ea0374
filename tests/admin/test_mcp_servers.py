"""MCP servers of workspaces in the admin."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from agents.mcp.sign_in import Client as SignInClient
from agents.mcp.sign_in import Grant
from chat.admin.mcp_servers import MASK
from chat.models import McpServer, Membership, SecurityEvent, User, Workspace
from chat.services.people import mcp_sign_in
from chat.services.people.security_log import Kind

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
    """ADM-01: secrets are kept unless new ones are entered, and are never shown."""
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


def test_change_of_an_older_version_is_refused_once(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01: the form of a second tab keeps its input, and says that it would replace a newer change."""
    admin_client.post(reverse("admin:chat_mcpserver_add"), form(workspace))
    server = McpServer.objects.get()
    page = reverse("admin:chat_mcpserver_change", args=[server.pk])
    seen = str(server.revision)
    assert admin_client.post(page, form(workspace, name="first", revision=seen)).status_code == 302
    refused = admin_client.post(page, form(workspace, name="second", revision=seen)).content.decode()
    assert "This has changed since you opened the form." in refused
    assert 'value="second"' in refused
    server.refresh_from_db()
    assert server.name == "first"
    assert admin_client.post(page, form(workspace, name="second", revision=str(server.revision))).status_code == 302
    server.refresh_from_db()
    assert server.name == "second"


def test_servers_deleted_in_the_list_are_logged(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01, UI-20: the action of the list writes one event for each server, as the page of a server does."""
    rows = [
        McpServer.objects.create(workspace=workspace, name=name, url="https://a.example/mcp") for name in ("a", "b")
    ]
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], "post": "yes"}
    admin_client.post(reverse("admin:chat_mcpserver_changelist"), chosen)
    assert not McpServer.objects.exists()
    assert SecurityEvent.objects.filter(kind=Kind.MCP_SERVER_REMOVED).count() == 2


def test_an_empty_list_says_what_a_server_is(admin_client: Client) -> None:
    """ADM-01: a search without results still says so."""
    address = reverse("admin:chat_mcpserver_changelist")
    assert "An MCP server gives the agents" in admin_client.get(address).content.decode()
    found = admin_client.get(address, {"q": "tickets"}).content.decode()
    assert ("No results." in found, "An MCP server gives the agents" in found) == (True, False)


def test_what_cannot_work_is_refused(admin_client: Client, workspace: Workspace) -> None:
    for wrong in ({"url": "https://10.0.0.1/"}, {"headers": "nonsense"}, {"name": "a b"}, {"time_limit": "0"}):
        refused = admin_client.post(reverse("admin:chat_mcpserver_add"), form(workspace, **wrong))
        assert (refused.status_code, "errorlist" in refused.content.decode()) == (200, True)
    assert not McpServer.objects.exists()


def test_client_is_kept_changed_and_removed_and_its_secret_never_shown(
    admin_client: Client, workspace: Workspace
) -> None:
    """ADM-01, UI-19: the client's id is shown, and its secret as a mask."""
    client = {"client_id": "parley", "client_secret": "very-secret-client"}
    assert admin_client.post(reverse("admin:chat_mcpserver_add"), form(workspace, **client)).status_code == 302
    server = McpServer.objects.get()
    assert mcp_sign_in.client_of(server) == SignInClient("parley", "very-secret-client")
    page = reverse("admin:chat_mcpserver_change", args=[server.pk])
    shown = admin_client.get(page).content.decode()
    assert "very-secret-client" not in shown
    assert ('value="parley"' in shown, MASK in shown) == (True, True)
    for given, stored in (
        ({"client_id": "parley"}, SignInClient("parley", "very-secret-client")),
        ({"client_id": "other", "client_secret": "new"}, SignInClient("other", "new")),
        ({"client_id": "public"}, SignInClient("public")),
        ({"client_id": ""}, None),
    ):
        assert admin_client.post(page, form(workspace, **given)).status_code == 302
        assert mcp_sign_in.client_of(McpServer.objects.get()) == stored
    refused = admin_client.post(page, form(workspace, client_secret="alone"))
    assert "Enter the OAuth client ID, too." in refused.content.decode()


def test_sign_in_is_shown_without_its_token(admin_client: Client, workspace: Workspace, ana: User) -> None:
    """ADM-01, UI-19: the page shows who signed in, when, and how long the token is valid."""
    admin_client.post(reverse("admin:chat_mcpserver_add"), form(workspace))
    server = McpServer.objects.get()
    page = reverse("admin:chat_mcpserver_change", args=[server.pk])
    assert "not connected" in admin_client.get(page).content.decode()
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.ADMIN)
    grant = Grant({"client_id": "c"}, "https://a.example/token", None, "token-a", "token-b", 4_102_444_800.0)
    mcp_sign_in.connect(author=ana, server_id=server.pk, url=server.url, grant=grant)
    shown = admin_client.get(page).content.decode()
    assert "connected · Ana · <time" in shown
    assert 'datetime="2100-01-01T00:00:00+00:00"' in shown
    assert not [token for token in ("token-a", "token-b", McpServer.objects.get().sign_in) if token in shown]
