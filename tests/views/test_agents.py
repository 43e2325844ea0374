"""The form for agents that members of a workspace make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from agents.added_tools import load_added_tools
from agents.config import Config
from agents.registry import Registry
from agents.toolbox import TOOLBOX
from chat import agents_setup
from chat.models import AgentPreset, McpServer, User, Workspace
from chat.rendering.text.tool_texts import GROUPS
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from tests.support.agreement import agree

pytestmark = pytest.mark.django_db
TOOL = '''
from agents.tools import tool

@tool()
def look_up(number: str) -> str:
    """Look an invoice up.

    For the model alone.
    """
    return number
'''


@pytest.fixture(autouse=True)
def _configured(tmp_path: Path) -> Iterator[None]:
    """A configuration with a tool of the operator, which an agent of staff has."""
    (tmp_path / "look_up.py").write_text(TOOL)
    config = {
        "providers": {"house": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": {"one": {}}}},
        "agents": {
            "assistant": {
                "model": "house/one",
                "tools": ["calculator", "confirmation", "look_up", "bash", "write_file"],
            }
        },
    }
    agents_setup.install(Registry(Config.model_validate(config), {}, added=load_added_tools(tmp_path)))
    yield
    agents_setup.reset()


@pytest.fixture
def browser(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


def test_tools_of_the_operator_are_described(browser: Client, workspace: Workspace) -> None:
    """UI-21: tools of the operator are described for users, like Parley's own."""
    html = browser.get(reverse("new-agent", args=[workspace.pk])).content.decode()
    assert "Look an invoice up." in html
    assert "For the model alone" not in html
    assert "Asks people to confirm something important" in html
    assert "You get" not in html


def test_a_new_agent_has_what_changes_nothing(browser: Client, workspace: Workspace) -> None:
    """UI-21: a new agent has the default agent's tools except those that run, change or send something, which must be
    chosen."""
    McpServer.objects.create(workspace=workspace, name="tracker", url="https://tracker.example/mcp")
    html = browser.get(reverse("new-agent", args=[workspace.pk])).content.decode()
    boxes = {name: "checked" in rest for name, rest in re.findall(r'name="tools"\s+value="([^"]+)"([^>]*)>', html)}
    assert [name for name, checked in boxes.items() if checked] == ["calculator", "confirmation", "look_up"]
    assert {"bash", "write_file", "tracker__*"} <= set(boxes)
    assert "All tools of the MCP server tracker" in html


def test_tools_have_names_for_people(browser: Client, ana: User, workspace: Workspace) -> None:
    """UI-21: tools are shown in groups with a readable and a technical name, and agents by their titles."""
    McpServer.objects.create(workspace=workspace, name="tracker", url="https://tracker.example/mcp")
    html = browser.get(reverse("new-agent", args=[workspace.pk])).content.decode()
    assert '<bdi>Calculator</bdi> <code class="help">calculator</code>' in html
    assert '<bdi>tracker</bdi> <code class="help">tracker__*</code>' in html
    agree(
        [name for names in GROUPS.values() for name in names],
        TOOLBOX,
        missing="Give {} a name for people in GROUPS of chat/rendering/text/tool_texts.py.",
        extra="Remove {} from GROUPS of chat/rendering/text/tool_texts.py: no tool has that name.",
    )
    headings = re.findall(r'role="group" aria-label="([^"]+)">\s*<p class="agent-tools-heading"', html)
    assert headings == ["General", "Questions to people", "Files and commands", "MCP servers", "More"]


def test_a_conflict_is_shown_until_the_user_decides(browser: Client, ana: User, workspace: Workspace) -> None:
    """UI-21: a second click does not overwrite the changes that another user has made in the meantime."""
    row = members_agents.make(author=ana, workspace_id=workspace.pk, given=AgentSettings("Mine"))
    key: dict[str, Any] = {"author": ana, "workspace_id": workspace.pk, "name": row.name}
    page = reverse("workspace-agent", args=[workspace.pk, row.name])

    def revision(html: str) -> str:
        [found] = re.findall(r'name="revision" value="(\d+)"', html)
        return str(found)

    def title() -> str:
        return AgentPreset.objects.get().title

    opened = revision(browser.get(page).content.decode())
    members_agents.change(given=AgentSettings("Theirs"), **key)
    form = {"title": "Ours", "icon": "sparkles", "revision": opened}
    for _click in range(2):
        refused = browser.post(page, form)
        html = refused.content.decode()
        assert (refused.status_code, title()) == (422, "Theirs")
        assert revision(html) == opened
        assert 'value="Ours"' in html
        assert "Replace the saved version with mine" in html
    [newer] = re.findall(r'name="replace" value="(\d+)"', html)
    members_agents.change(given=AgentSettings("Theirs again"), **key)
    assert browser.post(page, {**form, "replace": newer}).status_code == 422
    assert title() == "Theirs again"
    assert browser.post(page, {**form, "replace": str(int(newer) + 1)}).status_code == 302
    assert title() == "Ours"


@pytest.mark.parametrize("name", ["file-text", "Document", " document ", "文档"])
def test_an_icon_has_the_name_that_people_see(browser: Client, workspace: Workspace, name: str) -> None:
    """UI-21: an opening prompt accepts an icon's name in the user's language and in English, and its technical name."""
    browser.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    form = {"title": "Mine", "icon": "sparkles", "prompts": f"{name} | Notes | Write the notes"}
    assert browser.post(reverse("new-agent", args=[workspace.pk]), form).status_code == 302
    row = AgentPreset.objects.get()
    assert row.prompts == [{"text": "Write the notes", "title": "Notes", "icon": "file-text"}]
    page = browser.get(reverse("workspace-agent", args=[workspace.pk, row.name]))
    assert "文档 | Notes | Write the notes" in page.content.decode()


def test_an_unknown_icon_is_refused_at_its_field(browser: Client, workspace: Workspace) -> None:
    """UI-21: the refusal names the line, and the page focuses the field."""
    form = {"title": "Mine", "icon": "sparkles", "prompts": "What is new?\r\n\r\nskull | Notes | Write"}
    refused = browser.post(reverse("new-agent", args=[workspace.pk]), form)
    html = refused.content.decode()
    assert refused.status_code == 422
    [field] = re.findall(r"<textarea[^>]*id=\"id_prompts\"[^>]*>", html)
    assert 'aria-invalid="true"' in field
    assert "id_prompts_error" in field
    assert html.count("Line 3: there is no icon “skull”. Choose one of: ") == 1
    assert "autofocus" not in html
