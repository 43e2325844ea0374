"""The model picker: the models that a session can use."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from agents.config import Config
from agents.registry import Registry
from chat import agents_setup
from chat.models import Session, User

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]


def configure(*models: str) -> None:
    """Offer only these models, from one provider."""
    offered = {name: {"context_window": 200_000} for name in models}
    provider = {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": offered}
    agents = {"assistant": {"model": f"house/{models[0]}"}}
    agents_setup.install(Registry(Config.model_validate({"providers": {"house": provider}, "agents": agents}), {}))


def picker(client: Client, session: Session) -> str:
    return client.get(reverse("session-models", args=[session.pk])).content.decode()


def test_models_stand_by_provider_with_their_windows(signed_in: SignIn, ana: User, session: Session) -> None:
    """UI-11, RUN-05: models are grouped by provider with their context windows, and the session's model is marked."""
    configure("one", "two")
    Session.objects.filter(pk=session.pk).update(provider="house", model="two")
    html = picker(signed_in(ana), session)
    marked = re.findall(r'aria-selected="(\w+)" data-provider="house" data-model="(\w+)"', html)
    assert marked == [("false", "one"), ("true", "two")]
    assert ('aria-label="house"' in html, html.count(">200K<"), "combobox" in html) == (True, 2, False)


def test_choices_of_reasoning_are_those_of_the_model(signed_in: SignIn, ana: User, session: Session) -> None:
    """RUN-16: the session's own choice is selected; a model without reasoning has none."""
    models = {"thinker": {"reasoning_efforts": ["low", "xhigh"]}, "plain": {}}
    node = {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": models}
    vendor = {"type": "anthropic", "models": {"claude-sonnet-4-5": {}}}
    config = {"providers": {"house": node, "vendor": vendor}, "agents": {"assistant": {"model": "house/plain"}}}
    agents_setup.install(Registry(Config.model_validate(config), {}))
    config = {"reasoning_effort": "xhigh", "thinking_budget": 5000}
    seen = {}
    for provider, model in (("house", "thinker"), ("house", "plain"), ("vendor", "claude-sonnet-4-5")):
        Session.objects.filter(pk=session.pk).update(provider=provider, model=model, config=config)
        html = picker(signed_in(ana), session)
        seen[model] = re.findall(r'name="(\w+)" data-sent="(\w+)"|<option value="(\w+)" +(selected)?', html)
    efforts = [("reasoning_effort", "xhigh", "", ""), ("", "", "low", ""), ("", "", "xhigh", "selected")]
    assert seen["thinker"] == efforts
    assert seen["plain"] == []
    assert seen["claude-sonnet-4-5"][0] == ("thinking_budget", "5000", "", "")
    assert [value for *_, value, mark in seen["claude-sonnet-4-5"] if mark] == ["5000"]
    # Not 64000, which the vendor refuses, because it would leave no room for an answer.
    budgets = ["2000", "4000", "5000", "8000", "16000", "32000"]
    assert [value for *_, value, _ in seen["claude-sonnet-4-5"] if value] == budgets


def test_many_models_are_found_by_a_field(signed_in: SignIn, ana: User, session: Session) -> None:
    configure(*(f"model-{number}" for number in range(9)))
    assert 'role="combobox"' in picker(signed_in(ana), session)


def test_model_that_is_gone_says_so(signed_in: SignIn, ana: User, session: Session) -> None:
    """RUN-16: the session keeps a removed model until the user chooses another one; it cannot be chosen again."""
    configure("one")
    Session.objects.filter(pk=session.pk).update(provider="house", model="<old>")
    html = picker(signed_in(ana), session)
    assert "<bdi>&lt;old&gt;</bdi>" in html
    assert ("no longer offers this model here" in html, 'aria-disabled="true"' in html) == (True, True)
