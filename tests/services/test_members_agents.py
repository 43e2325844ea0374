"""UI-21: agents of workspace members: who may use and change them, and which data is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agents.config import Config
from agents.registry import Prompt, Registry
from chat import agents_setup
from chat.errors import Forbidden, NoSuchAgentHere, ServiceError
from chat.models import AgentPreset, Membership, SecurityEvent, Session, SessionRole, User, Workspace
from chat.queries import presets
from chat.queries.members_agents import seen_agents
from chat.queries.messages import session_snapshot
from chat.services.deletion.users import close_account, erase_user
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions.agents import add_agent
from chat.services.sessions.lifecycle import begin_session, create_session, set_agent
from chat.transfer.exporting.personal import _account
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db
FILE: dict[str, Any] = {
    "assistant": {
        "model": "house/one",
        "tools": ["calculator", "web_fetch"],
        "allowed_hosts": ["example.com"],
        "approval": {"deny": ["web_fetch(*secret*)"]},
        "max_rounds": 7,
    },
}
WRITER = AgentSettings(
    title="Writer",
    icon="square-pen",
    model="house/two",
    system_prompt="Write briefly.",
    tools=["calculator"],
    prompts=[Prompt("Write a letter", "Letter", "file-text"), Prompt("Shorten this")],
)


@pytest.fixture(autouse=True)
def _configured() -> Iterator[None]:
    provider = {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": {"one": {}, "two": {}}}
    agents_setup.install(Registry(Config.model_validate({"providers": {"house": provider}, "agents": FILE}), {}))
    yield
    agents_setup.reset()


@pytest.fixture
def place(workspace: Workspace) -> int:
    return workspace.pk


def make(author: User, place: int, **values: Any) -> AgentPreset:
    given = {name: getattr(WRITER, name) for name in AgentSettings.__dataclass_fields__}
    return members_agents.make(author=author, workspace_id=place, given=AgentSettings(**{**given, **values}))


def usable(user: User, place: int) -> list[str]:
    return [each.title for each in presets.presets(user, place)]


def promote(user: User, role: str) -> None:
    Membership.objects.filter(user=user).update(role=role)


def code(**values: Any) -> str:
    act = values.pop("act")
    with pytest.raises(ServiceError) as refused:
        act(**values)
    return refused.value.code


@pytest.mark.both_databases
def test_a_member_makes_an_agent_and_begins_a_session_with_it(ana: User, bo: User, place: int) -> None:
    """UI-21: only its maker uses the agent, with the hosts, rules and rounds of the default agent.

    The session keeps a copy.
    """
    row = make(ana, place)
    assert row.name.startswith("writer-")
    assert (usable(ana, place), usable(bo, place)) == (["assistant", "Writer"], ["assistant"])
    session = begin_session(owner=ana, agent=row.name)
    own = presets.own(session)
    assert (own.title, own.model, own.system_prompt, own.tools) == ("Writer", "two", "Write briefly.", ("calculator",))
    assert [
        (str(each), each.heading, each.icon) for each in presets.prompts_of(presets.stored_prompts(own.prompts))
    ] == [
        ("Write a letter", "Letter", "file-text"),
        ("Shorten this", "", "message-square"),
    ]
    assert (own.allowed_hosts, own.rules.deny, own.max_rounds) == (("example.com",), ("web_fetch(*secret*)",), 7)
    assert code(act=begin_session, owner=bo, agent=row.name) == "no_such_agent"
    members_agents.archive(author=ana, workspace_id=place, name=row.name, archived=True)
    assert presets.own(Session.objects.get()).title == "Writer"


@pytest.mark.both_databases
def test_a_shared_agent_is_for_all_members(ana: User, bo: User, place: int) -> None:
    """UI-21: all members of its workspace use and copy a shared agent. Only its maker, owners and admins change it."""
    row = make(ana, place)
    key: dict[str, Any] = {"workspace_id": place, "name": row.name}
    assert code(act=members_agents.share, author=bo, shared=True, **key) == "agent_not_found"
    members_agents.share(author=ana, shared=True, **key)
    assert usable(bo, place) == ["assistant", "Writer"]
    mine = begin_session(owner=bo, agent=row.name)
    assert mine.agent == row.name
    for act, more in (
        (members_agents.change, {"given": WRITER}),
        (members_agents.share, {"shared": False}),
        (members_agents.archive, {"archived": True}),
    ):
        assert code(act=act, author=bo, **key, **more) == "forbidden"
    copied = members_agents.copy(author=bo, **key)
    assert (copied.title, copied.user, copied.is_shared, copied.tools) == ("Writer (copy)", bo, False, ["calculator"])
    assert usable(ana, place) == ["assistant", "Writer"]
    promote(bo, "admin")
    members_agents.change(author=bo, given=AgentSettings("Author"), **key)
    assert usable(ana, place) == ["assistant", "Author"]
    assert SecurityEvent.objects.filter(kind="agent_changed", actor=bo, details__act="change").count() == 1
    members_agents.share(author=bo, shared=False, **key)
    assert usable(bo, place) == ["assistant", "Writer (copy)"]
    assert usable(ana, place) == ["assistant", "Author"]


def test_another_workspace_has_none_of_it(ana: User, place: int) -> None:
    """LIVE-06: an agent is not available in another workspace, even to users in both, nor to former members."""
    row = make(ana, place)
    members_agents.share(author=ana, workspace_id=place, name=row.name, shared=True)
    eve = person("Eve")
    elsewhere = Workspace.objects.create(name="Elsewhere")
    Membership.objects.create(user=eve, workspace=elsewhere)
    Membership.objects.create(user=ana, workspace=elsewhere)
    assert usable(eve, place) == usable(eve, elsewhere.pk) == usable(ana, elsewhere.pk) == ["assistant"]
    there = create_session(owner=ana, workspace=elsewhere)
    assert code(act=set_agent, session=there, author=ana, agent=row.name) == "no_such_agent"
    assert code(act=add_agent, session=there, author=ana, agent=row.name) == "no_such_agent"
    assert code(act=members_agents.copy, author=eve, workspace_id=place, name=row.name) == "no_such_workspace"
    Membership.objects.filter(user=ana, workspace=place).delete()
    assert usable(ana, place) == ["assistant"]


def test_an_editor_chooses_an_agent_of_their_own(ana: User, bo: User, place: int) -> None:
    """UI-21: an editor of a shared session chooses their own agent. The session's owner cannot choose it by its
    name."""
    row = make(bo, place)
    session = create_session(owner=ana)
    let_in(session, bo, SessionRole.EDITOR)
    assert code(act=set_agent, session=session, author=ana, agent=row.name) == "no_such_agent"
    add_agent(session=session, author=bo, agent=row.name)
    set_agent(session=session, author=bo, agent=row.name)
    session.refresh_from_db()
    assert presets.own(session).system_prompt == "Write briefly."


def test_a_name_alone_tells_nothing(ana: User, place: int) -> None:
    """LIVE-06: an imported session can name any agent, but gets no data of agents that members made."""
    row = make(ana, place)
    session = create_session(owner=ana)
    Session.objects.filter(pk=session.pk).update(agent=row.name, config={})
    session.refresh_from_db()
    assert presets.agent_copy(session).title == "assistant"
    assert presets.preset(row.name).name == "assistant"


@pytest.mark.parametrize(
    "values",
    [
        {"title": " "},
        {"title": "x" * 81},
        {"title": "\0"},
        {"title": "\u200b\u2060"},
        {"icon": "skull"},
        {"model": "house/three"},
        {"model": "elsewhere/one"},
        {"tools": ["bash"]},
        {"tools": ["tickets__*"]},
        {"system_prompt": "\0"},
        {"prompts": [Prompt("x" * 501)]},
        {"prompts": [Prompt("Hi")] * 13},
    ],
)
def test_what_is_not_offered_is_refused(ana: User, place: int, values: dict[str, Any]) -> None:
    """UI-21: members cannot give an agent anything that staff do not offer."""
    with pytest.raises(ServiceError):
        make(ana, place, **values)
    assert not AgentPreset.objects.exists()


def test_name_has_no_invisible_characters(ana: User, place: int) -> None:
    """UI-21: as in the names of users, workspaces and files, nothing can be hidden or turned around in it."""
    assert make(ana, place, title="Wri\u200bter \u202e2 ").title == "Writer 2"


def test_two_changes_at_once(ana: User, place: int) -> None:
    """UI-21: of two changes of the same version, the second is refused."""
    row = make(ana, place)
    key: dict[str, Any] = {"author": ana, "workspace_id": place, "name": row.name, "revision": row.revision}
    members_agents.change(given=AgentSettings("First"), **key)
    assert code(act=members_agents.change, given=AgentSettings("Second"), **key) == "agent_changed"
    row.refresh_from_db()
    assert row.title == "First"


def test_archived_agents_come_back(ana: User, bo: User, place: int) -> None:
    """UI-21: makers see their archived agents. Users who manage agents restore shared ones."""
    row = make(ana, place)
    key: dict[str, Any] = {"workspace_id": place, "name": row.name}
    members_agents.share(author=ana, shared=True, **key)
    members_agents.archive(author=ana, archived=True, **key)
    assert usable(ana, place) == ["assistant"]
    assert [each.row.title for each in seen_agents(ana, place)] == ["Writer"]
    assert seen_agents(bo, place) == []
    promote(bo, "owner")
    members_agents.archive(author=bo, archived=False, **key)
    assert usable(ana, place) == ["assistant", "Writer"]


def test_there_is_room_for_some(ana: User, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archived agents do not count towards the limit, and only the newest of them are kept."""
    monkeypatch.setattr(members_agents, "MAX_AGENTS", 2)
    rows = [make(ana, place, title=f"Agent {number}") for number in range(2)]
    assert code(act=make, author=ana, place=place) == "invalid"
    assert code(act=members_agents.copy, author=ana, workspace_id=place, name="assistant") == "invalid"
    for number in range(2, 5):
        members_agents.archive(author=ana, workspace_id=place, name=rows[-1].name, archived=True)
        rows.append(make(ana, place, title=f"Agent {number}"))
    assert (
        code(act=members_agents.archive, author=ana, workspace_id=place, name=rows[-2].name, archived=False)
        == "invalid"
    )
    kept = AgentPreset.objects.exclude(archived_at=None).order_by("pk")
    assert [row.title for row in kept] == ["Agent 2", "Agent 3"]


def test_copy_of_an_agent_of_staff(ana: User, place: int) -> None:
    """UI-21: a copy of a staff agent gets its hosts and rules. An agent that is not offered cannot be copied."""
    AgentPreset.objects.create(name="hidden", system_prompt="Secret", is_offered=False)
    copied = members_agents.copy(author=ana, workspace_id=place, name="assistant")
    assert (copied.title, copied.model, copied.tools) == ("assistant (copy)", "", ["calculator", "web_fetch"])
    assert (copied.allowed_hosts, copied.approval["deny"]) == (["example.com"], ["web_fetch(*secret*)"])
    with pytest.raises(NoSuchAgentHere):
        members_agents.copy(author=ana, workspace_id=place, name="hidden")


def test_what_remains_of_someone_who_leaves(ana: User, bo: User, place: int) -> None:
    """UI-21: shared agents stay in the workspace.

    The others stay with their maker, are in the export, and are erased with the user.
    """
    shared, own = make(ana, place), make(ana, place, title="Own")
    members_agents.share(author=ana, workspace_id=place, name=shared.name, shared=True)
    assert [each["title"] for each in _account(ana)["agents"]] == ["Writer", "Own"]
    close_account(ana, None)
    assert erase_user(ana.pk)
    assert not AgentPreset.objects.filter(pk=own.pk).exists()
    assert usable(bo, place) == ["assistant", "Writer"]
    promote(bo, "owner")
    key: dict[str, Any] = {"author": bo, "workspace_id": place, "name": shared.name}
    assert code(act=members_agents.share, shared=False, **key) == "invalid"
    members_agents.archive(archived=True, **key)
    assert usable(bo, place) == ["assistant"]


def test_guests_make_none(ana: User, place: int) -> None:
    """LIVE-06: guests cannot make agents or see any."""
    promote(ana, "guest")
    assert code(act=make, author=ana, place=place) == "no_such_workspace"
    assert seen_agents(ana, place) == []


def test_changing_a_visible_agent_without_permission_is_forbidden(ana: User, bo: User, place: int) -> None:
    """A user who sees an agent but may not change it is refused with "forbidden", not "not found"."""
    row = make(ana, place)
    members_agents.share(author=ana, workspace_id=place, name=row.name, shared=True)
    with pytest.raises(Forbidden):
        members_agents.update(author=bo, workspace_id=place, name=row.name, archived=True)


def test_files_that_an_agent_brought_are_not_chosen_ones(ana: User, workspace: Workspace) -> None:
    """CTX-09, UI-21: files that came with an agent do not count as chosen by users, even if the agent's files have
    changed since."""
    row = make(ana, workspace.pk)
    AgentPreset.objects.filter(pk=row.pk).update(knowledge=["*.md"])
    session = create_session(owner=ana, workspace=workspace, agent=row.name)
    set_agent(session=session, author=ana, agent="assistant")
    session.refresh_from_db()
    assert session.config["knowledge"] == []
    set_agent(session=session, author=ana, agent=row.name)
    AgentPreset.objects.filter(pk=row.pk).update(knowledge=["*.pdf"])
    session.refresh_from_db()
    assert session.config["knowledge"] == ["*.md"]
    set_agent(session=session, author=ana, agent="assistant")
    session.refresh_from_db()
    assert session.config["knowledge"] == []


@pytest.mark.both_databases
def test_icons_of_agents_are_those_of_when_they_came(ana: User, place: int) -> None:
    """UI-21: a session keeps the icon that each of its agents had when it was added or chosen, or none."""
    row = make(ana, place)
    session = begin_session(owner=ana)
    assert session_snapshot(session).icons == {}
    add_agent(session=session, author=ana, agent=row.name)
    session = Session.objects.get()
    members_agents.change(
        author=ana, workspace_id=place, name=row.name, given=replace(WRITER, icon="globe"), revision=row.revision
    )
    assert session_snapshot(session).icons == {row.name: "square-pen"}
    set_agent(session=session, author=ana, agent=row.name)
    assert session_snapshot(Session.objects.get()).icons == {row.name: "globe"}
    set_agent(session=session, author=ana, agent="assistant")
    assert session_snapshot(Session.objects.get()).agent_icon == ""
