"""Which files a model gets in their original form."""

from __future__ import annotations

import pytest

from agents.config import ProviderConfig
from agents.model_facts import BOTH, IMAGES, NOTHING, Capabilities, capabilities_of

ANTHROPIC = ProviderConfig(type="anthropic")
OPENAI = ProviderConfig(type="openai")
SERVER = ProviderConfig(type="openai", base_url="http://localhost:11434/v1")


@pytest.mark.parametrize(
    ("model", "provider", "taken"),
    [
        ("claude-sonnet-5-5", ANTHROPIC, BOTH),
        ("claude-3-haiku-20240307", ANTHROPIC, IMAGES),
        ("claude-2.1", ANTHROPIC, NOTHING),
        ("gpt-5.4", OPENAI, BOTH),
        ("gpt-6.1-sol", OPENAI, BOTH),
        ("gpt-6.2-astra", OPENAI, BOTH),
        ("gpt-6-luna", ProviderConfig(type="openai", base_url="https://eu.api.openai.com/v1"), BOTH),
        ("gpt-6-luna", SERVER, IMAGES),
        ("o3", OPENAI, BOTH),
        ("o3-mini", OPENAI, NOTHING),
        ("gpt-3.5-turbo", OPENAI, NOTHING),
        ("llama3.2-vision:11b", SERVER, IMAGES),
        ("Qwen/Qwen2.5-VL-7B-Instruct", SERVER, IMAGES),
        ("gemma3:1b", SERVER, NOTHING),
        ("gemma3:270m", SERVER, NOTHING),
        ("google/gemma-3-270m-it", SERVER, NOTHING),
        ("gemma3n:e4b", SERVER, NOTHING),
        ("gemma3:27b", SERVER, IMAGES),
        ("openai/gpt-4o", SERVER, IMAGES),
        ("unheard-of", SERVER, NOTHING),
        ("demo", ProviderConfig(type="demo"), BOTH),
    ],
)
def test_known_models(model: str, provider: ProviderConfig, taken: Capabilities) -> None:
    """CTX-02: known models have the vendors' capabilities, and unknown ones get only text."""
    assert capabilities_of(model, provider) == taken


def test_configuration_wins_from_near_to_far() -> None:
    """CTX-02: the model's own setting capabilities_of precedence over the provider's, and that over the table."""
    server = SERVER.model_copy(update={"vision": True, "pdf": True})
    assert capabilities_of("unheard-of", server) == BOTH
    models = {"unheard-of": {"vision": False}, "gpt-4o": {}}
    server = ProviderConfig.model_validate({"type": "openai", "base_url": "http://x.y", "models": models})
    assert capabilities_of("unheard-of", server.model_copy(update={"vision": True})) == NOTHING
    assert capabilities_of("gpt-4o", server) == IMAGES
