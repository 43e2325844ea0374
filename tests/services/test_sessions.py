"""The agent of a session: which settings change with another preset."""

from __future__ import annotations

from typing import Any

import pytest

from agents.config import Config
from agents.registry import Registry
from chat import agents_setup
from chat.errors import ServiceError
from chat.models import Session, User
from chat.services.sessions.lifecycle import create_session, set_agent, set_system_prompt

pytestmark = pytest.mark.django_db
OWN = {"context_window": 1000}
AGENTS: dict[str, Any] = {
    "assistant": {"model": "house/one", "system_prompt": "Help."},
    "reviewer": {"model": "house/two", "system_prompt": "Review."},
    "dreamer": {"model": "house/none-such", "system_prompt": "Dream."},
}


@pytest.fixture(autouse=True)
def _several() -> None:
    provider = {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": {"one": OWN, "two": {}}}
    config = {"providers": {"house": provider}, "agents": AGENTS, "default_agent": "assistant"}
    agents_setup.install(Registry(Config.model_validate(config), {}))


def as_it_is(session: Session) -> tuple[str, str, str, int | None]:
    row = Session.objects.get(pk=session.pk)
    return row.agent, row.model, row.system_prompt, row.context_window


def test_agent_brings_its_model_and_its_prompt(ana: User) -> None:
    """RUN-16, RUN-05: switching agents and back changes model, prompt and context window each time, with one revision
    per switch."""
    session = create_session(owner=ana)
    set_agent(session=session, author=ana, agent="reviewer")
    assert as_it_is(session) == ("reviewer", "two", "Review.", None)
    set_agent(session=session, author=ana, agent="assistant")
    assert as_it_is(session) == ("assistant", "one", "Help.", 1000)
    assert Session.objects.get(pk=session.pk).revision == 2


def test_prompt_written_by_a_user_is_kept(ana: User) -> None:
    session = create_session(owner=ana)
    set_system_prompt(session=session, author=ana, system_prompt="Be brief.")
    set_agent(session=session, author=ana, agent="reviewer")
    assert as_it_is(session) == ("reviewer", "two", "Be brief.", None)


def test_agent_without_a_model_on_offer_leaves_the_session_its_own(ana: User) -> None:
    session = create_session(owner=ana)
    set_agent(session=session, author=ana, agent="dreamer")
    assert as_it_is(session) == ("dreamer", "one", "Dream.", 1000)


@pytest.mark.parametrize("name", ["", "unknown", "Reviewer", "\0"])
def test_unknown_agent_is_refused(ana: User, name: str) -> None:
    session = create_session(owner=ana)
    with pytest.raises(ServiceError, match="isn’t configured") as refused:
        set_agent(session=session, author=ana, agent=name)
    assert refused.value.code == "no_such_agent"
    assert as_it_is(session) == ("assistant", "one", "Help.", 1000)
