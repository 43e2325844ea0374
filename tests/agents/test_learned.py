"""Refusals that providers load from a store and forget."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agents.providers.dialect import Dialect
from agents.providers.learned import API_LIFETIME, LIFETIME, Learned, key_of
from agents.providers.openai.provider import OpenAIProvider

USUAL = OpenAIProvider("house", "k", "http://127.0.0.1:9/v1").dialect
LESS = replace(USUAL, omitted=frozenset({"temperature", "reasoning.summary"}))


def test_dialect_survives_a_store() -> None:
    kept = json.loads(json.dumps(Learned(LESS, 5.0).to_json(USUAL)))
    assert Learned.of(kept, 5.0, USUAL) == Learned(LESS, 5.0)


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"usual": None, "dialect": None},
        Learned(LESS, 5.0).to_json(Dialect(responses=True)),
        {**Learned(LESS, 5.0).to_json(USUAL), "dialect": {"omitted": []}},
    ],
)
def test_what_another_configuration_or_version_kept_does_not_count(kept: dict[str, object]) -> None:
    assert Learned.of(kept, 5.0, USUAL) is None


def test_newer_knowledge_wins_and_is_forgotten_after_its_time() -> None:
    """RUN-10: the newer entry takes precedence, and a long-running process also tries again after a day."""
    now = 1000.0
    provider = OpenAIProvider("house", "k", "http://127.0.0.1:9/v1", clock=lambda: now)
    older = replace(USUAL, omitted=frozenset({"top_p"}))
    for dialect, at in ((LESS, 1000.0), (older, 900.0)):
        provider.recall({"m": (Learned(dialect, at).to_json(USUAL), at)})
    assert provider.dialect_for("m") == LESS
    assert provider.dialect_for("n") == USUAL
    now += LIFETIME
    assert provider.dialect_for("m") == USUAL


def test_missing_api_is_remembered_for_minutes_only() -> None:
    """RUN-10: a single 404, which a proxy may have sent, does not take the Responses API from a model for a day."""
    now = 1000.0
    provider = OpenAIProvider("openai", "k", clock=lambda: now)
    chat = replace(provider.dialect, responses=False)
    provider.recall({"m": (Learned(chat, now).to_json(provider.dialect), now)})
    now += API_LIFETIME - 1
    assert provider.dialect_for("m") == chat
    now += 1
    assert provider.dialect_for("m") == provider.dialect


def test_key_tells_endpoints_apart_without_their_address() -> None:
    keys = {key_of(form, url) for form in ("openai", "anthropic") for url in ("http://a:secret@b/", "http://c/")}
    assert len(keys) == 4
    assert not any("secret" in key for key in keys)
