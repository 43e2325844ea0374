"""The page of a workspace's MCP servers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.models import McpServer, Membership, User, Workspace
from tests.support.mcp_server import NONSENSE, serving

pytestmark = pytest.mark.django_db
SECRET = "Bearer very-secret"


@pytest.fixture
def page(ana: User, workspace: Workspace) -> Client:
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.ADMIN)
    client = Client()
    client.force_login(ana)
    return client


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as address:
        yield address


def form(url: str, **more: str) -> dict[str, str]:
    return {
        "part": "add",
        "name": "tests",
        "url": url,
        "headers": f"Authorization: {SECRET}",
        "tools": "",
        "approval": "unless_read_only",
        "time_limit": "60",
        "for_all_agents": "on",
        "is_enabled": "on",
        **more,
    }


def test_a_page_without_servers_says_what_one_is_and_leads_to_the_form(page: Client, workspace: Workspace) -> None:
    """UI-16: the button goes to the first field of the form. Neither is shown once there is a server."""
    where = reverse("mcp-servers", args=[workspace.pk])
    empty = page.get(where).content.decode()
    assert ("An MCP server gives agents" in empty, 'href="#new-name"' in empty) == (True, True)
    assert 'id="new-name"' in empty
    page.post(where, form("https://example.com/mcp"))
    assert "No MCP servers yet" not in page.get(where).content.decode()


def test_a_server_is_added_tested_changed_and_removed(
    page: Client, workspace: Workspace, address: str, settings: Settings
) -> None:
    settings.MCP_INTERNAL_HOSTS = ("127.0.0.1",)
    where = reverse("mcp-servers", args=[workspace.pk])
    assert where in page.get(reverse("workspace-settings", args=[workspace.pk])).content.decode()
    assert page.post(where, form(address)).status_code == 302
    server = McpServer.objects.get()
    shown = page.get(where).content.decode()
    assert ("secret headers: Authorization" in " ".join(shown.split()), SECRET in shown) == (True, False)
    tested = page.post(where, {"part": "test", "server": server.pk}).content.decode()
    assert ("<code>add</code>" in tested, "Add two numbers." in tested, "read-only" in tested) == (True, True, True)

    changed = form(address, part="change", server=str(server.pk), headers="", name="again", tools="add\nfail")
    del changed["for_all_agents"]
    assert page.post(where, changed).status_code == 302
    server.refresh_from_db()
    assert (server.name, server.tools, server.for_all_agents) == ("again", ["add", "fail"], False)
    assert server.secret_headers
    assert page.post(where, {**changed, "forget_headers": "yes"}).status_code == 302
    server.refresh_from_db()
    assert server.secret_headers == ""
    assert page.post(where, {"part": "remove", "server": server.pk}).status_code == 302
    assert f'id="server-{server.pk}-name"' not in page.get(where).content.decode()
    assert page.post(where, {"part": "restore", "undo": server.pk}).status_code == 302
    assert "“again” restored." in page.get(where).content.decode()
    assert McpServer.objects.get().removed_at is None


def test_form_says_what_keeps_replaces_and_deletes_the_stored_secrets(page: Client, workspace: Workspace) -> None:
    """UI-16: entered headers replace all stored ones, and another host deletes them. The form and the notice say so."""
    where = reverse("mcp-servers", args=[workspace.pk])
    added = form("https://example.com/mcp", headers="Authorization: a\nX-Team: b", client_id="id", client_secret="s")
    page.post(where, added)
    server = McpServer.objects.get()
    shown = page.get(where).content.decode()
    assert "Stored: Authorization, X-Team. Leave the field empty to keep them; what you enter replaces all" in shown
    assert "An OAuth client is stored. Leave both fields empty to keep it, or enter another one." in shown
    assert "A change of the host deletes the stored secrets." in shown

    change = {"part": "change", "server": str(server.pk), "headers": ""}
    kept = page.post(where, form("https://example.com/other", **change), follow=True).content.decode()
    server.refresh_from_db()
    assert (bool(server.secret_headers), "were deleted" in kept) == (True, False)
    moved = page.post(where, form("https://other.example/mcp", **change), follow=True).content.decode()
    server.refresh_from_db()
    assert (server.secret_headers, server.oauth_client) == ("", "")
    assert "“tests” saved. The secrets for the previous host were deleted." in moved
    assert ("Stored: " in moved, "A change of the host" in moved) == (False, False)


def test_invalid_tools_are_named_with_the_reason(page: Client, workspace: Workspace, settings: Settings) -> None:
    """UI-16: the test of a server shows its valid tools, and which tools are left out."""
    settings.MCP_INTERNAL_HOSTS = ("127.0.0.1",)
    where = reverse("mcp-servers", args=[workspace.pk])
    with serving(sys.executable, str(NONSENSE), "invalid", "http") as address:
        page.post(where, form(address))
        tested = page.post(where, {"part": "test", "server": McpServer.objects.get().pk}).content.decode()
    valid, invalid = tested.split("6 tools are invalid and are left out:")
    assert ("It has 5 tools:" in valid, "<code>home</code>" in valid) == (True, True)
    assert ("<code>no_schema</code>" in invalid, "inputSchema: Field required" in invalid) == (True, True)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Couldn’t connect: no server was found at name.invalid."),
        ("zh-hans", "无法连接：找不到服务器 name.invalid。"),
        ("zh-hant", "無法連線：找不到伺服器 name.invalid。"),
    ],
)
def test_a_server_that_does_not_answer_says_why(page: Client, workspace: Workspace, language: str, words: str) -> None:
    """UI-13: the reason is in the user’s language."""
    where = reverse("mcp-servers", args=[workspace.pk])
    page.post(where, form("https://name.invalid/mcp"))
    asked = {"part": "test", "server": McpServer.objects.get().pk}
    tested = page.post(where, asked, headers={"Accept-Language": language})
    assert (tested.status_code, words in tested.content.decode()) == (200, True)


def test_what_is_refused_stays_in_the_form(page: Client, workspace: Workspace) -> None:
    refused = page.post(reverse("mcp-servers", args=[workspace.pk]), form("http://example.com/mcp"))
    text = refused.content.decode()
    assert (refused.status_code, 'value="http://example.com/mcp"' in text) == (422, True)
    assert "Enter a web address that begins with https://" in text
    for nonsense in ({}, {"part": "nothing"}, {"part": "test", "server": "x"}, {"part": "change"}, {"part": "add"}):
        assert page.post(reverse("mcp-servers", args=[workspace.pk]), nonsense).status_code in (302, 422)


def test_members_have_no_such_page(workspace: Workspace, bo: User) -> None:
    client = Client()
    client.force_login(bo)
    assert client.get(reverse("mcp-servers", args=[workspace.pk])).status_code == 403
    settings_page = reverse("workspace-settings", args=[workspace.pk])
    assert reverse("mcp-servers", args=[workspace.pk]) not in client.get(settings_page).content.decode()


def test_fields_that_few_servers_need_are_folded_away(
    page: Client, workspace: Workspace, address: str, settings: Settings
) -> None:
    """UI-16: the fields that few servers need are folded, unless one has a value or the form was refused."""
    settings.MCP_INTERNAL_HOSTS = ("127.0.0.1",)
    path = reverse("mcp-servers", args=[workspace.pk])

    def are_open(html: str) -> list[bool]:
        return [bool(found) for found in re.findall(r'<details class="more-fields"( open)?\s*>', html)]

    assert are_open(page.get(path).content.decode()) == [False]
    assert are_open(page.post(path, form(address, time_limit="0")).content.decode()) == [True]
    page.post(path, form(address))
    page.post(path, form(address, name="tests2", tools="add"))
    assert are_open(page.get(path).content.decode()) == [False, True, False]


def test_change_of_older_settings_is_refused_until_the_user_decides(page: Client, workspace: Workspace) -> None:
    """The form of a second tab neither overwrites a newer change nor loses what was entered."""
    where = reverse("mcp-servers", args=[workspace.pk])
    page.post(where, form("https://example.com/mcp"))
    server = McpServer.objects.get()
    change = {"part": "change", "server": str(server.pk), "revision": str(server.revision), "headers": ""}
    page.post(where, form("https://example.com/first", **change))
    refused = page.post(where, form("https://example.com/second", **change))
    text = refused.content.decode()
    assert (refused.status_code, 'value="https://example.com/second"' in text) == (422, True)
    assert "The saved settings have changed since you opened this form." in text
    server.refresh_from_db()
    assert server.url == "https://example.com/first"
    assert f'name="replace" value="{server.revision}"' in text
    page.post(where, form("https://example.com/second", **change, replace=str(server.revision)))
    server.refresh_from_db()
    assert server.url == "https://example.com/second"


def test_entries_for_a_removed_server_move_to_the_form_of_a_new_one(page: Client, workspace: Workspace) -> None:
    where = reverse("mcp-servers", args=[workspace.pk])
    page.post(where, form("https://example.com/mcp"))
    server = McpServer.objects.get()
    page.post(where, {"part": "remove", "server": str(server.pk)})
    change = {"part": "change", "server": str(server.pk), "revision": str(server.revision)}
    refused = page.post(where, form("https://example.com/typed", **change))
    text = refused.content.decode()
    assert refused.status_code == 422
    assert "This MCP server was removed in the meantime." in text
    assert 'value="https://example.com/typed"' in text[text.index('id="add"') :]
