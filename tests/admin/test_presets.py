"""Agents in the admin: created, validated and offered there; existing sessions keep theirs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from agents.config import Config
from agents.reasoning import Reasoning
from agents.registry import Registry, opening
from chat import agents_setup
from chat.errors import ServiceError
from chat.models import AgentPreset, ApprovalRule, Membership, SecurityEvent, Session, User, Workspace
from chat.queries import presets
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import form_in, said, soup_of
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
LIST, ADD = reverse("admin:chat_agentpreset_changelist"), reverse("admin:chat_agentpreset_add")
WRITER: dict[str, Any] = {
    "name": "writer",
    "title": "Writer",
    "model": "demo/demo",
    "system_prompt": "Write.\nWell.",
    "tools": ["calculator"],
    "max_rounds": "3",
    "prompts": " A poem \r\n\r\nA letter\r\n",
    "is_offered": "on",
    "position": "1",
}


@pytest.fixture
def root(db: None) -> Client:
    """A superuser's client."""
    return signed_in(User.objects.create_superuser("root", display_name="Root"))


def page_of(preset: AgentPreset) -> str:
    return reverse("admin:chat_agentpreset_change", args=[preset.pk])


def test_agent_is_made_and_offered_at_once(root: Client, ana: User) -> None:
    """ADM-01: the next session can use it."""
    assert root.post(ADD, WRITER).status_code == 302
    row = AgentPreset.objects.get()
    assert (row.tools, row.prompts, row.max_rounds) == (["calculator"], ["A poem", "A letter"], 3)
    assert "Writer" in said(signed_in(ana).get(reverse("new-session-models")))
    session = create_session(owner=ana, agent="writer")
    assert presets.own(session).prompts == ("A poem", "A letter")
    assert root.post(page_of(row), {**WRITER, "tools": [], "system_prompt": ""}).status_code == 302
    kept = presets.own(Session.objects.get(pk=session.pk))
    assert (kept.tools, kept.system_prompt.splitlines()) == (("calculator",), ["Write.", "Well."])
    assert root.post(reverse("admin:chat_agentpreset_delete", args=[row.pk]), {"post": "yes"}).status_code == 302
    assert presets.own(Session.objects.get(pk=session.pk)).title == "Writer"
    assert LogEntry.objects.count() == 3


def test_prompt_has_a_heading_and_an_icon(root: Client, ana: User) -> None:
    """ADM-01: a prompt can have a heading and an icon, and the form shows its line with the icon's readable name."""
    lines = "pencil-less | A letter\nsearch | Look it up | What is a | b?"
    assert root.post(ADD, {**WRITER, "prompts": lines.splitlines()[1]}).status_code == 302
    row = AgentPreset.objects.get()
    assert row.prompts == [{"text": "What is a | b?", "title": "Look it up", "icon": "search"}]
    kept = presets.own(create_session(owner=ana, agent="writer")).prompts
    assert [(each, opening(each).heading, opening(each).icon) for each in kept] == [
        ("What is a | b?", "Look it up", "search")
    ]
    shown = form_in(root.get(page_of(row)), "agentpreset_form")["prompts"]
    assert shown == "Magnifying glass | Look it up | What is a | b?"
    assert root.post(page_of(row), {**WRITER, "prompts": lines}).status_code == 302
    assert AgentPreset.objects.get().prompts[0] == "pencil-less | A letter"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (
            "prompts",
            "A poem\n\nhammer | Build | A house",
            "Line 3: there is no icon “hammer”. Choose one of: Calculator,",
        ),
        ("model", "demo/none-such", "No provider here offers the model “demo/none-such”. Choose one of: demo/demo."),
        ("tools", ["hammer"], "Unknown tool “hammer”. Choose from: "),
        ("tools", ["calculator", "<b>"], "Unknown tool “<b>”."),
        ("name", "a b", "Enter a valid value."),
        ("name", "", "This field is required."),
        ("max_rounds", "0", "greater than or equal to 1"),
        ("max_rounds", "1e9", "Enter a whole number."),
        ("system_prompt", "a\0b", "Null characters are not allowed."),
        ("prompts", "a\0b", "Null characters are not allowed."),
        ("prompts", "x" * 501, "At most 12 prompts of at most 500 characters each."),
        ("prompts", "x\n" * 13, "At most 12 prompts of at most 500 characters each."),
        ("position", "-1", "greater than or equal to 0"),
        ("reasoning_effort", "endless", "Select a valid choice."),
        ("thinking_budget", "1023", "greater than or equal to 1024"),
        ("thinking_budget", "1e9", "Enter a whole number."),
        ("allowed_hosts", "example.com\nhttps://example.com/", "“https://example.com/” is not a host."),
        ("allowed_hosts", "*", "“*” is not a host."),
        ("allowed_hosts", "a\0b", "Null characters are not allowed."),
        ("allowed_hosts", "example.com\n" * 101, "You can list up to 100 hosts."),
    ],
)
@pytest.mark.both_databases
def test_wrong_values_are_reported_and_the_input_is_kept(root: Client, field: str, value: Any, words: str) -> None:
    """MSG-12, ADM-01: the errors name the valid choices."""
    answer = root.post(ADD, {**WRITER, field: value})
    assert answer.status_code == 200
    assert words.replace("<b>", "&lt;b&gt;") in " ".join(answer.content.decode().split())
    assert ("Well." in said(answer), AgentPreset.objects.exists()) == (field != "system_prompt", False)


def test_agent_limits_its_hosts_and_chooses_its_reasoning(root: Client, ana: User) -> None:
    """Hosts are normalized; a reasoning choice that the model does not support is refused."""
    models = {"plain": {"reasoning_efforts": []}, "thinker": {"reasoning_efforts": ["low", "high"]}}
    config = {"providers": {"demo": {"type": "demo", "models": models}}, "agents": {"assistant": {}}}
    agents_setup.install(Registry(Config.model_validate(config), {}))
    chosen = {"reasoning_effort": "high", "allowed_hosts": "Example.COM\n\n *.bücher.example "}
    refused = root.post(ADD, {**WRITER, **chosen, "model": "demo/plain"})
    assert "“plain” doesn’t support the reasoning effort “high”." in said(refused)
    assert root.post(ADD, {**WRITER, **chosen, "model": "demo/thinker"}).status_code == 302
    own = presets.own(create_session(owner=ana, agent="writer"))
    assert (own.reasoning, own.allowed_hosts) == (Reasoning("high"), ("example.com", "*.xn--bcher-kva.example"))
    form = form_in(root.get(ADD + "?like=writer"), "agentpreset_form")
    assert (form["reasoning_effort"], form["allowed_hosts"].split()) == ("high", [*own.allowed_hosts])


def test_one_of_the_file_is_copied_to_be_changed(root: Client) -> None:
    """The list shows the agents of the configuration file, and which of them a row overrides."""
    assert "Assistant assistant Customize" in said(root.get(LIST))
    form = form_in(root.get(ADD + "?like=assistant"), "agentpreset_form")
    assert (form["name"], form["title"], form["max_rounds"]) == ("assistant", "Assistant", "25")
    assert "You are a helpful assistant" in form["system_prompt"]
    assert root.post(ADD, {**WRITER, "name": "assistant"}).status_code == 302
    assert "Overridden above." in said(root.get(LIST))
    assert [each.title for each in presets.presets()] == ["Writer"]


def test_list_hides_and_moves_agents(root: Client) -> None:
    for name in ("writer", "reader"):
        root.post(ADD, {**WRITER, "name": name, "title": ""})
    reader, writer = AgentPreset.objects.order_by("name")
    rows = {"form-TOTAL_FORMS": "2", "form-INITIAL_FORMS": "2", "form-0-id": reader.pk, "form-1-id": writer.pk}
    shown = {f"initial-form-{number}-is_offered": "True" for number in (0, 1)}
    places = {"form-0-position": "5", "form-1-position": "3", "form-1-is_offered": "on", **shown, "_save": "Save"}
    assert root.post(LIST, {**rows, **places}).status_code == 302
    assert [each.name for each in presets.presets()] == ["assistant", "writer"]


def test_list_of_a_second_tab_changes_only_what_was_changed_there(root: Client) -> None:
    """ADM-01: a value that another tab has saved in the meantime is kept, also in the same row."""
    one, two = (AgentPreset.objects.create(name=name, position=number) for number, name in enumerate(("one", "two")))
    form = form_in(root.get(LIST), "changelist-form")
    AgentPreset.objects.update(is_offered=False)
    assert root.post(LIST, {**form, "form-1-position": "5", "_save": "Save"}).status_code == 302
    one.refresh_from_db()
    two.refresh_from_db()
    assert ((one.is_offered, one.position), (two.is_offered, two.position)) == ((False, 0), (False, 5))


def test_rule_of_a_second_tab_is_refused_once(root: Client, workspace: Workspace) -> None:
    """ADM-01, UI-20: "never allow" does not become "ask" again unseen."""
    rule = ApprovalRule.objects.create(workspace=workspace, rule="bash", verdict="ask", approvals=1)
    page = reverse("admin:chat_approvalrule_change", args=[rule.pk])
    form = form_in(root.get(page), "approvalrule_form")
    ApprovalRule.objects.update(verdict="deny")
    refused = root.post(page, {**form, "approvals": "2"})
    assert "This has changed since you opened the form." in said(refused)
    assert ApprovalRule.objects.get().verdict == "deny"
    assert root.post(page, form_in(refused, "approvalrule_form")).status_code == 302
    assert ApprovalRule.objects.get().approvals == 2


@pytest.mark.both_databases
def test_row_with_odd_values_still_opens(root: Client) -> None:
    """MSG-10: rows may have tools that no longer exist, or other values where lists belong."""
    odds: tuple[dict[str, Any], ...] = (
        {"tools": ["gone"]},
        {"tools": "x", "prompts": {}},
        {"model": "gone/gone"},
        {"reasoning_effort": "odd"},
    )
    for number, odd in enumerate(odds):
        row = AgentPreset.objects.create(name=f"odd{number}", **odd)
        assert root.get(page_of(row)).status_code == 200
    assert root.get(LIST).status_code == 200
    assert len(presets.presets()) == 5


def test_tools_without_a_box_of_their_own_are_kept(root: Client) -> None:
    """ADM-01: the form of an agent offers each tool that the agent has, also one that is not available now."""
    tools = ["calculator", "tickets__find", "agent__*"]
    row = AgentPreset.objects.create(name="helper", tools=tools)
    boxes = soup_of(root.get(page_of(row))).select("input[name=tools][checked]")
    shown = [str(box["value"]) for box in boxes]
    assert sorted(shown) == sorted(tools)
    assert root.post(page_of(row), {**WRITER, "tools": shown}).status_code == 302
    row.refresh_from_db()
    assert sorted(row.tools) == sorted(tools)
    refused = root.post(page_of(row), {**WRITER, "tools": shown, "max_rounds": "0"})
    assert len(soup_of(refused).select("input[name=tools][checked]")) == 3


def test_change_of_an_older_version_is_refused_once(root: Client) -> None:
    """ADM-01: the form of a second tab keeps its input, and says that it would replace a newer change."""
    root.post(reverse("admin:chat_agentpreset_add"), WRITER)
    row = AgentPreset.objects.get()
    first = {**WRITER, "revision": form_in(root.get(page_of(row)), "agentpreset_form")["revision"]}
    assert root.post(page_of(row), {**first, "title": "First"}).status_code == 302
    refused = root.post(page_of(row), {**first, "title": "Second"})
    shown = form_in(refused, "agentpreset_form")
    assert "This has changed since you opened the form." in said(refused)
    assert shown["title"] == "Second"
    row.refresh_from_db()
    assert row.title == "First"
    assert root.post(page_of(row), {**WRITER, "title": "Second", "revision": shown["revision"]}).status_code == 302
    row.refresh_from_db()
    assert row.title == "Second"


def logged() -> list[Any]:
    return list(SecurityEvent.objects.order_by("pk").values_list("kind", "details__act", "person"))


def test_changes_of_members_agents_are_counted_and_logged(root: Client, ana: User) -> None:
    """ADM-01, UI-20: the maker's open form does not overwrite a change of staff, and the security log has it."""
    workspace = Membership.objects.get(user=ana).workspace
    row = members_agents.make(author=ana, workspace_id=workspace.pk, given=AgentSettings(title="Mine"))
    members_agents.share(author=ana, workspace_id=workspace.pk, name=row.name, shared=True)
    row.refresh_from_db()
    SecurityEvent.objects.all().delete()
    values = {**WRITER, "name": row.name, "title": "Theirs"}
    assert root.post(page_of(row), values).status_code == 302
    with pytest.raises(ServiceError, match="has changed since you opened it"):
        members_agents.change(
            author=ana,
            workspace_id=workspace.pk,
            name=row.name,
            given=AgentSettings(title="Mine"),
            revision=row.revision,
        )
    row.refresh_from_db()
    assert row.title == "Theirs"
    listed = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(row.pk), "form-0-position": "7"}
    assert root.post(LIST, {**listed, "_save": "Save"}).status_code == 302
    chosen = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    assert root.post(LIST, chosen).status_code == 302
    assert not AgentPreset.objects.exists()
    acts = [("agent_changed", act, ana.pk) for act in ("change", "change", "delete")]
    assert logged() == acts
    assert root.post(ADD, WRITER).status_code == 302
    assert logged() == acts


def test_changes_of_rules_are_logged(root: Client, workspace: Workspace) -> None:
    """ADM-01, UI-20: changes of rules are logged like those on the workspace's page."""
    values = {"workspace": str(workspace.pk), "rule": "bash", "verdict": "ask", "approvals": "1", "approvers": ""}
    assert root.post(reverse("admin:chat_approvalrule_add"), values).status_code == 302
    row = ApprovalRule.objects.get()
    page = reverse("admin:chat_approvalrule_change", args=[row.pk])
    assert root.post(page, {**values, "verdict": "deny"}).status_code == 302
    assert root.post(reverse("admin:chat_approvalrule_delete", args=[row.pk]), {"post": "yes"}).status_code == 302
    events = SecurityEvent.objects.filter(kind="tool_rule_changed").order_by("pk")
    found = [(each.details["rule"], each.details["removed"], each.object_id) for each in events]
    assert found == [(rule, removed, str(workspace.pk)) for rule, removed in (("ask", 0), ("deny", 0), ("deny", 1))]
