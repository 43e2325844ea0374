"""Presets of the database and the file: what new sessions offer, and the copy that a session keeps."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.config import Config
from agents.registry import Registry
from chat import agents_setup
from chat.errors import Invalid, ServiceError
from chat.models import AgentPreset, Session, SessionRevision, User
from chat.queries import messages, presets
from chat.runner.agent_input import build_agent_input
from chat.services.sessions.lifecycle import (
    begin_session,
    create_session,
    rename,
    set_agent,
    set_model,
    set_system_prompt,
)

pytestmark = pytest.mark.django_db
Kind = SessionRevision.Kind
FILE: dict[str, Any] = {
    "assistant": {"title": "Assistant", "model": "house/one", "system_prompt": "Help."},
    "reviewer": {"model": "house/two", "system_prompt": "Review.", "tools": ["calculator"]},
}
PROVIDERS = {"house": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": {"one": {}, "two": {}}}}


@pytest.fixture(autouse=True)
def _configured() -> None:
    agents_setup.install(Registry(Config.model_validate({"providers": PROVIDERS, "agents": FILE}), {}))


def row(name: str, **values: Any) -> AgentPreset:
    return AgentPreset.objects.create(name=name, **values)


def names() -> list[str]:
    return [each.name for each in presets.presets()]


def test_presets_of_rows_and_of_the_file_are_ordered() -> None:
    """Presets are ordered by their position, with the default first, and every change counts from the next read."""
    row("writer", position=1)
    row("reader")
    row("reviewer", system_prompt="Judge.", tools=["web_fetch"], position=2)
    assert names() == ["assistant", "reader", "writer", "reviewer"]
    judge = presets.preset("reviewer")
    assert (judge.system_prompt, judge.tools, judge.provider, judge.model) == ("Judge.", ("web_fetch",), "house", "one")
    AgentPreset.objects.all().delete()
    assert (names(), presets.preset("reviewer").system_prompt) == (["assistant", "reviewer"], "Review.")


def test_row_keeps_the_notes_and_the_compaction_of_the_agent_that_it_replaces() -> None:
    """The admin has no fields for these settings of the configuration file."""
    private = {**FILE, "reviewer": {**FILE["reviewer"], "memory": False, "compact_at": 80}}
    agents_setup.install(Registry(Config.model_validate({"providers": PROVIDERS, "agents": private}), {}))
    row("reviewer", system_prompt="Judge.")
    row("writer")
    found = [presets.preset(name) for name in ("reviewer", "writer")]
    assert [(each.memory, each.compact_at) for each in found] == [(False, 80), (True, 0)]


def test_row_that_is_not_offered_is_hidden_from_new_sessions_alone(ana: User) -> None:
    session = create_session(owner=ana, agent="reviewer")
    hidden = row("reviewer", is_offered=False, system_prompt="Judge.")
    assert (names(), presets.offered_preset("reviewer")) == (["assistant"], None)
    assert presets.preset("reviewer").system_prompt == "Judge."
    with pytest.raises(ServiceError, match="isn’t configured"):
        begin_session(owner=ana, agent="reviewer")
    assert messages.session_snapshot(session).agent_title == "reviewer"
    hidden.delete()
    row("assistant", is_offered=False)
    assert (names(), presets.offered_preset("")) == (["reviewer"], presets.preset("reviewer"))


def test_default_agent_is_offered_when_all_are_hidden(ana: User) -> None:
    for name in FILE:
        row(name, is_offered=False, system_prompt=f"I am {name}.")
    assert names() == ["assistant"]
    assert create_session(owner=ana).system_prompt == "I am assistant."


def test_session_keeps_its_own_copy(ana: User) -> None:
    """RUN-16: an edited or deleted preset affects only new sessions.

    Choosing another agent replaces the session's copy.
    """
    writer = row("writer", title="Writer", model="house/two", system_prompt="Write.", max_rounds=3, prompts=["A poem"])
    AgentPreset.objects.filter(pk=writer.pk).update(tools=["calculator"])
    session = create_session(owner=ana, agent="writer")
    AgentPreset.objects.update(title="W", model="", system_prompt="!", tools=["web_fetch"], max_rounds=9, prompts=[])
    for _edited_then_deleted in range(2):
        kept = presets.own(Session.objects.get(pk=session.pk))
        assert (kept.title, kept.model, kept.system_prompt) == ("Writer", "two", "Write.")
        assert (kept.tools, kept.max_rounds, kept.prompts) == (("calculator",), 3, ("A poem",))
        agent = build_agent_input(session.pk).agent
        assert (agent.name, agent.model, agent.system, agent.max_rounds) == ("writer", "two", "Write.", 3)
        assert [tool.name for tool in agent.tools] == ["calculator"]
        AgentPreset.objects.all().delete()
    set_agent(session=session, author=ana, agent="assistant")
    agent = build_agent_input(session.pk).agent
    assert (agent.name, agent.model, agent.system, agent.max_rounds) == ("assistant", "one", "Help.", 25)


def test_prompt_of_an_edited_preset_is_not_taken_for_one_that_people_wrote(ana: User) -> None:
    """Another agent replaces the prompt that the first one brought, even if its preset has changed since."""
    row("writer", system_prompt="Write.")
    session = create_session(owner=ana, agent="writer")
    AgentPreset.objects.update(system_prompt="Write well.")
    set_agent(session=session, author=ana, agent="assistant")
    assert Session.objects.get(pk=session.pk).system_prompt == "Help."


@pytest.mark.parametrize(
    "config",
    [
        {},
        [],
        "text",
        None,
        {"tools": "calculator", "max_rounds": 3},
        {"tools": [1], "max_rounds": 3},
        {"tools": [], "max_rounds": 0},
        {"tools": [], "max_rounds": True},
    ],
)
def test_session_without_a_copy_goes_by_its_preset(ana: User, config: Any) -> None:
    """MSG-10: a session without a copy, such as one from an earlier version or with a hand-edited config, uses its
    preset."""
    session = create_session(owner=ana, agent="reviewer")
    Session.objects.filter(pk=session.pk).update(config=[] if config is None else config)
    own = presets.own(Session.objects.get(pk=session.pk))
    assert (own.title, own.tools, own.max_rounds) == ("reviewer", ("calculator",), 25)
    rename(session=session, author=ana, title="Plan")
    set_agent(session=session, author=ana, agent="assistant")
    assert presets.own(Session.objects.get(pk=session.pk)).title == "Assistant"


def test_title_of_the_agent_is_shown_if_there_are_others(ana: User) -> None:
    """UI-06: the agent's title is shown only if there is more than one agent."""
    agents_setup.install(
        Registry(Config.model_validate({"agents": {"assistant": {}}, "providers": {"demo": {"type": "demo"}}}), {})
    )
    session = create_session(owner=ana)
    assert messages.session_snapshot(session).agent_title == ""
    other = row("writer")
    assert messages.session_snapshot(session).agent_title == "assistant"
    AgentPreset.objects.filter(pk=other.pk).update(is_offered=False)
    assert messages.session_snapshot(session).agent_title == ""


def test_any_number_of_presets_needs_one_query(ana: User) -> None:
    session = create_session(owner=ana, agent="reviewer")
    for count in (1, 30):
        for number in range(count):
            row(f"agent-{count}-{number}")
        for ask, most in (
            (presets.presets, 1),
            (lambda: presets.own(session), 0),
            (lambda: presets.shown_title(session), 1),
        ):
            with CaptureQueriesContext(connection) as queries:
                ask()
            assert len(queries) == most


def test_every_change_of_a_session_is_recorded(ana: User, bo: User) -> None:
    """MSG-11: each change is recorded with its user, the earlier value and its revision.

    Setting the same value records nothing.
    """
    session = create_session(owner=ana, title="Plan")
    rename(session=session, author=bo, title="Plans")
    rename(session=session, author=bo, title="Plans")
    set_system_prompt(session=session, author=ana, system_prompt="Be brief.")
    set_model(session=session, author=ana, provider="house", model="two")
    set_agent(session=session, author=bo, agent="reviewer")

    def changes_of(kind: Kind) -> list[tuple[int, str, Any]]:
        made = SessionRevision.objects.filter(session=session, kind=kind).select_related("user").order_by("-revision")
        return [(each.revision, each.user.username if each.user else "", each.before) for each in made]

    assert changes_of(Kind.TITLE) == [(1, "bo", {"title": "Plan"})]
    assert changes_of(Kind.SYSTEM_PROMPT) == [(2, "ana", {"system_prompt": "Help."})]
    assert changes_of(Kind.MODEL) == [(3, "ana", {"model": "one"})]
    [(revision, who, before)] = changes_of(Kind.AGENT)
    assert (revision, who, before["agent"], before["config"]["agent_title"]) == (4, "bo", "assistant", "Assistant")
    assert Session.objects.get(pk=session.pk).revision == 4


def test_change_of_agent_records_the_changed_prompt_and_model(ana: User) -> None:
    """MSG-11: the prompt's history shows that another agent brought another prompt."""
    session = create_session(owner=ana)
    set_agent(session=session, author=ana, agent="reviewer")
    assert SessionRevision.objects.get(session=session, kind=Kind.SYSTEM_PROMPT).before == {"system_prompt": "Help."}
    assert SessionRevision.objects.get(session=session, kind=Kind.MODEL).before == {"model": "one"}


def test_error_of_a_wrong_model_or_tool_lists_those_that_exist() -> None:
    for good in ("", "one", "house/two"):
        presets.check_model(good)
    for bad in ("house/three", "three", "house/", "unknown/one", "\0"):
        with pytest.raises(Invalid, match="Choose one of: house/one, house/two"):
            presets.check_model(bad)
    presets.check_tools(["calculator"])
    with pytest.raises(Invalid, match=r"Unknown tool “hammer”\. Choose from: .*calculator"):
        presets.check_tools(["calculator", "hammer"])
