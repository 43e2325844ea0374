"""The panel's content for editors and viewers."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chat.errors import ServiceError
from chat.models import ChatMessage, Membership, Session, User, Workspace
from chat.queries.usage import ModelUsage, usage_of
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions.agents import add_agent
from chat.services.sessions.lifecycle import configure, create_session, set_system_prompt
from tests.services.test_knowledge import add
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    session = create_session(owner=ana)
    set_system_prompt(session=session, author=ana, system_prompt="Be <b>brief</b>.")
    return session


def page(session: Session, user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.get(f"/sessions/{session.pk}/panel").content.decode()


def test_editor_may_write_and_viewer_may_read(session: Session, ana: User, bo: User) -> None:
    """UI-11: an editor sees the prompt as a field, a viewer as text; both are escaped."""
    let_in(session, bo, "viewer")
    assert '<textarea class="input prompt"' in page(session, ana)
    read = page(session, bo)
    assert "<textarea" not in read
    assert "Be &lt;b&gt;brief&lt;/b&gt;." in read


def test_archived_session_is_read(session: Session, ana: User) -> None:
    """The panel of an archived session is read-only (UI-11)."""
    Session.objects.filter(pk=session.pk).update(status="archived")
    assert "<textarea" not in page(session, ana)


def test_prompt_changed_by_another_user_is_not_overwritten(session: Session, ana: User, bo: User) -> None:
    """UI-11: the refusal has the current prompt; sending the same prompt twice is not a conflict."""
    set_system_prompt(session=session, author=bo, system_prompt="Bo's", seen="Be <b>brief</b>.")
    with pytest.raises(ServiceError) as refused:
        set_system_prompt(session=session, author=ana, system_prompt="Ana's", seen="Be <b>brief</b>.")
    assert (refused.value.code, refused.value.details) == ("stale", {"current": "Bo's"})
    set_system_prompt(session=session, author=ana, system_prompt="Bo's", seen="Be <b>brief</b>.")
    set_system_prompt(session=session, author=ana, system_prompt="Ana's")
    assert Session.objects.get().system_prompt == "Ana's"


def test_usage_is_added_up_in_one_query(session: Session, ana: User, django_assert_num_queries: Any) -> None:
    """MSG-06: usage per model; removed answers count as usage, but not as turns."""
    used = {"input_tokens": 100, "output_tokens": 10, "cache_read_tokens": 5, "first_token_latency_ms": 200}
    other = {**ANSWER, "model": "two", "input_tokens": 7, "output_tokens": None, "first_token_latency_ms": 500}
    rows = fill(session, START, HI, {**ANSWER, **used}, {**ANSWER, **used}, other, DONE)
    rows += fill(session, START, HI, {**DONE, "duration_seconds": 61.5}, turn_id="t_2")
    ChatMessage.objects.filter(pk=rows[2].pk).update(sequence=None, removed_at=rows[2].created_at)
    with django_assert_num_queries(1):
        usage = usage_of(session)
    assert usage.models == [
        ModelUsage("scripted", "one", 200, 20, 10, 0),
        ModelUsage("scripted", "two", 7, 0, 0),
    ]
    assert (usage.input_tokens, usage.output_tokens, usage.turns) == (207, 20, 2)
    assert (usage.longest_seconds, usage.first_token_ms) == (61.5, 300)


def test_usage_of_a_new_session_is_nothing(session: Session) -> None:
    """A new session shows no usage (MSG-06)."""
    usage = usage_of(session)
    assert (usage.models, usage.turns, usage.longest_seconds, usage.first_token_ms) == ([], 0, None, None)


@pytest.mark.usefixtures("own_files")
def test_files_are_listed_for_members(ana: User, bo: User, workspace: Workspace) -> None:
    """CTX-09: a user who was removed from the workspace keeps their sessions, but sees none of its files."""
    file = add(ana, workspace, "Plans.md")
    session = create_session(owner=bo, workspace=workspace)
    configure(session=session, author=bo, knowledge=[file.pk])
    assert "Plans.md" in page(session, bo)
    Membership.objects.filter(user=bo, workspace=workspace).delete()
    assert page(session, bo).count("Plans.md") == 0
    let_in(session, ana, "editor")
    assert "Plans.md" not in page(session, ana)


def test_it_says_which_messages_agents_answer(session: Session, ana: User) -> None:
    """RUN-17: the panel shows whether the agents answer every message or only mentions, with one agent and with
    several."""
    row = members_agents.make(author=ana, workspace_id=session.workspace_id, given=AgentSettings("Writer"))
    assert "The agent answers every message." in page(session, ana)
    configure(session=session, author=ana, replies="mentions")
    assert "The agent answers only messages that mention it with @agent" in page(session, ana)
    add_agent(session=session, author=ana, agent=row.name)
    assert "Agents that aren’t mentioned stay silent." in page(session, ana)
    configure(session=session, author=ana, replies="all")
    assert "answers messages that mention no agent. Mention others" in page(session, ana)
