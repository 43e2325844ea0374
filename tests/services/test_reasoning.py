"""Reasoning settings of a session: which are valid, how they are stored, and what the next request contains."""

from __future__ import annotations

from typing import Any

import pytest

from agents.config import Config
from agents.reasoning import Reasoning
from agents.registry import Registry
from chat import agents_setup
from chat.errors import Invalid
from chat.models import AgentPreset, Session, SessionRevision, User
from chat.queries import presets
from chat.queries.messages import session_snapshot
from chat.services.messages.sending import send_message
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import begin_session, create_session, set_agent, set_model, set_reasoning

pytestmark = pytest.mark.django_db
PROVIDERS: dict[str, Any] = {
    "house": {
        "type": "openai",
        "base_url": "http://127.0.0.1:9/v1",
        "models": {
            "thinker": {"reasoning_efforts": ["low", "high"]},
            "other": {"reasoning_efforts": ["high"]},
            "plain": {},
        },
    },
    "vendor": {"type": "anthropic", "models": {"claude-sonnet-4-5": {"thinking_budget": 2048}}},
}
AGENTS: dict[str, Any] = {
    "assistant": {"model": "house/thinker", "reasoning_effort": "high"},
    "plain": {"model": "house/plain"},
    "careful": {"model": "vendor/claude-sonnet-4-5", "thinking_budget": 8000},
}


@pytest.fixture(autouse=True)
def _configured() -> None:
    agents_setup.install(Registry(Config.model_validate({"providers": PROVIDERS, "agents": AGENTS}), {}))


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


def shown(session: Session) -> tuple[str, int | None]:
    """Return the settings that viewers see, after checking that the next request has the same."""
    row = Session.objects.get(pk=session.pk)
    now = session_snapshot(row)
    asked = agents_setup.registry().build_agent(presets.own(row)).reasoning
    assert Reasoning(now.reasoning_effort, now.thinking_budget) in (asked, Reasoning("", None))
    return asked.effort, asked.budget


def test_session_begins_with_the_choice_of_its_agent(ana: User) -> None:
    assert shown(create_session(owner=ana)) == ("high", None)
    assert shown(create_session(owner=ana, agent="plain")) == ("", None)
    assert shown(create_session(owner=ana, agent="careful")) == ("", 8000)
    AgentPreset.objects.create(name="writer", model="house/thinker", reasoning_effort="low")
    assert shown(create_session(owner=ana, agent="writer")) == ("low", None)


def test_choice_is_kept_and_on_record(session: Session, ana: User) -> None:
    """RUN-16, MSG-11: a choice makes one revision, and the earlier value can be read later."""
    set_reasoning(session=session, author=ana, effort="low")
    assert shown(session) == ("low", None)
    set_reasoning(session=session, author=ana, effort="low")
    kept = SessionRevision.objects.get(session=session)
    assert (kept.kind, kept.user, kept.before["config"]["reasoning_effort"]) == ("reasoning", ana, "high")
    set_reasoning(session=session, author=ana, effort="")
    assert shown(session) == ("", None)
    assert Session.objects.get(pk=session.pk).revision == 2


def test_budget_of_the_model_is_the_default(ana: User) -> None:
    session = create_session(owner=ana, agent="careful")
    set_reasoning(session=session, author=ana, budget=0)
    assert shown(session) == ("", 2048)
    set_reasoning(session=session, author=ana, budget=4000)
    assert shown(session) == ("", 4000)


@pytest.mark.parametrize(
    ("agent", "choice", "words"),
    [
        ("assistant", {"effort": "max"}, "doesn’t support the reasoning effort “max”"),
        ("assistant", {"effort": "\0"}, "doesn’t support the reasoning effort"),
        ("assistant", {"effort": "low", "budget": 4000}, "doesn’t support a thinking budget"),
        ("plain", {"effort": "low"}, "doesn’t support the reasoning effort “low”"),
        ("careful", {"budget": 1023}, "1,024 to 60,000"),
        ("careful", {"budget": 60_001}, "1,024 to 60,000"),
    ],
)
def test_unsupported_reasoning_settings_are_refused(ana: User, agent: str, choice: dict[str, Any], words: str) -> None:
    session = create_session(owner=ana, agent=agent)
    before = Session.objects.get(pk=session.pk).config
    with pytest.raises(Invalid, match=words):
        set_reasoning(session=session, author=ana, **choice)
    assert Session.objects.get(pk=session.pk).config == before


def test_choice_waits_while_another_model_answers(session: Session, ana: User) -> None:
    """RUN-16: a model without reasoning does not get the setting, and the setting is kept for other models."""
    set_reasoning(session=session, author=ana, effort="low")
    seen = {}
    for model in ("plain", "other", "thinker"):
        set_model(session=session, author=ana, provider="house", model=model)
        seen[model] = shown(session)[0]
    assert seen == {"plain": "", "other": "", "thinker": "low"}
    set_agent(session=session, author=ana, agent="assistant")
    assert shown(session) == ("high", None)


def test_new_session_has_the_requested_reasoning_settings(ana: User) -> None:
    """MSG-12: a new session has the requested settings, and is refused if its model does not accept them."""
    assert shown(begin_session(owner=ana, configuration={"reasoning_effort": "low"})) == ("low", None)
    assert shown(begin_session(owner=ana, configuration={"reasoning_effort": ""})) == ("", None)
    count = Session.objects.count()
    with pytest.raises(Invalid):
        begin_session(owner=ana, provider="house", model="plain", configuration={"reasoning_effort": "low"})
    assert Session.objects.count() == count


def test_fork_reasons_as_its_original(session: Session, ana: User) -> None:
    """A fork keeps the reasoning settings (RUN-13)."""
    set_reasoning(session=session, author=ana, effort="low")
    session.refresh_from_db()
    sent = send_message(session=session, author=ana, text="Hi")
    assert shown(fork(session=session, author=ana, message_id=sent.id)) == ("low", None)


@pytest.mark.parametrize(
    "config", [{"reasoning_effort": ["low"], "thinking_budget": "many"}, {"thinking_budget": True}]
)
def test_invalid_reasoning_settings_of_a_row_are_ignored(session: Session, config: dict[str, Any]) -> None:
    """Invalid reasoning settings in a hand-edited row count as none (MSG-10)."""
    Session.objects.filter(pk=session.pk).update(config={**session.config, "reasoning_effort": "", **config})
    assert shown(session) == ("", None)
