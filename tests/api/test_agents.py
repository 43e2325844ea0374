"""Agents of workspace members, managed over the API."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import User, Workspace
from tests.api.asking import Asker, token_of

pytestmark = pytest.mark.django_db


def test_make_share_change_copy_and_archive(ana: User, bo: User, workspace: Workspace) -> None:
    """UI-21: agents are managed as on the page.

    `GET /agents` lists the agents that new sessions of the workspace can have.
    """
    asker, other = Asker(token_of(ana)), Asker(token_of(bo))
    place = f"/api/workspaces/{workspace.pk}/agents"
    body: dict[str, Any] = {
        "title": "Writer",
        "icon": "square-pen",
        "system_prompt": "Write.",
        "tools": [],
        "prompts": [{"text": "Write a letter", "title": "Letter", "icon": "file-text"}],
    }
    made = asker.post(place, body).json()
    assert {name: made[name] for name in body} == body
    assert (made["shared"], made["archived"], made["made_by"], made["may_change"]) == (False, False, "Ana", True)
    name = made["name"]
    assert other.get(f"{place}/{name}").status_code == 404
    assert name not in [each["name"] for each in other.get("/api/agents").json()["agents"]]

    shared = asker.patch(f"{place}/{name}", {"shared": True, "title": "Author", "revision": made["revision"]}).json()
    assert (shared["title"], shared["system_prompt"], shared["prompts"]) == ("Author", "Write.", body["prompts"])
    stale = asker.patch(f"{place}/{name}", {"title": "Late", "revision": made["revision"]})
    assert (stale.status_code, stale.json()["code"]) == (409, "agent_changed")
    seen = other.get(f"/api/agents?workspace={workspace.pk}").json()["agents"][-1]
    assert (seen["name"], seen["title"], seen["icon"]) == (name, "Author", "square-pen")
    begun = other.post("/api/sessions", {"agent": name}).json()
    assert (begun["agent"], begun["system_prompt"]) == (name, "Write.")
    copied = other.post(f"{place}/{name}/copy").json()
    assert (copied["title"], copied["may_change"]) == ("Author (copy)", True)

    assert asker.patch(f"{place}/{name}", {"archived": True}).json()["archived"]
    assert [each["name"] for each in other.get(place).json()["agents"]] == [copied["name"]]
    assert other.post("/api/sessions", {"agent": name}).json()["code"] == "no_such_agent"
    assert asker.patch(f"{place}/{name}", {"prompts": [], "archived": False}).json()["prompts"] == []
