"""Agents of workspace members, managed over the API."""

from __future__ import annotations

from typing import Any

import pytest

from chat.access import agent_to_change
from chat.api import agents
from chat.models import AgentPreset, User, Workspace
from tests.api.asking import Asker, code, token_of

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
    answer = asker.post(place, body)
    made = answer.json()
    assert answer["Location"] == f"{place}/{made['name']}"
    assert asker.get(answer["Location"]).json() == made
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
    assert code(other.get("/api/agents?workspace=999999")) == (404, "no_such_workspace")
    assert (seen["name"], seen["title"], seen["icon"]) == (name, "Author", "square-pen")
    begun = other.post("/api/sessions", {"agent": name}).json()
    assert (begun["agent"], begun["system_prompt"]) == (name, "Write.")
    answer = other.post(f"{place}/{name}/copy")
    copied = answer.json()
    assert answer["Location"] == f"{place}/{copied['name']}"
    assert (copied["title"], copied["may_change"]) == ("Author (copy)", True)

    assert asker.patch(f"{place}/{name}", {"archived": True}).json()["archived"]
    assert [each["name"] for each in other.get(place).json()["agents"]] == [copied["name"]]
    assert other.post("/api/sessions", {"agent": name}).json()["code"] == "no_such_agent"
    assert asker.patch(f"{place}/{name}", {"prompts": [], "archived": False}).json()["prompts"] == []


def test_if_match_refuses_a_change_of_an_older_agent(ana: User, workspace: Workspace) -> None:
    """UI-21: the ETag of an agent names its revision, as those of sessions and schedules do."""
    asker = Asker(token_of(ana))
    place = f"/api/workspaces/{workspace.pk}/agents"
    place = f"{place}/{asker.post(place, {'title': 'Writer'}).json()['name']}"
    tag = asker.get(place)["ETag"]
    changed = asker.patch(place, {"title": "Author"}, if_match=tag)
    assert changed.status_code == 200

    stale = asker.patch(place, {"title": "Late"}, if_match=tag)

    assert code(stale) == (412, "stale")
    assert stale.json()["revision"] == changed.json()["revision"]
    assert asker.get(place).json()["title"] == "Author"
    assert asker.patch(place, {"archived": True}, if_match=changed["ETag"]).status_code == 200


@pytest.mark.parametrize(("is_conditional", "refused"), [(False, (409, "agent_changed")), (True, (412, "stale"))])
def test_simultaneous_changes_of_different_settings_lose_none(
    ana: User, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, is_conditional: bool, refused: tuple[int, str]
) -> None:
    """UI-21: the second change is refused, because it would restore the settings that it leaves out.

    With `If-Match`, the answer is the same as if the agent had been changed before the request.
    """
    asker = Asker(token_of(ana))
    place = f"/api/workspaces/{workspace.pk}/agents"
    place = f"{place}/{asker.post(place, {'title': 'Writer'}).json()['name']}"

    def read_before_another_change(*given: Any) -> AgentPreset:
        row = agent_to_change(*given)
        monkeypatch.undo()
        asker.patch(place, {"system_prompt": "Write."})
        return row

    given = {"if_match": asker.get(place)["ETag"]} if is_conditional else {}
    monkeypatch.setattr(agents, "agent_to_change", read_before_another_change)

    assert code(asker.patch(place, {"title": "Author"}, **given)) == refused
    assert asker.get(place).json()["system_prompt"] == "Write."
