"""The vendors: the facts that follow from a provider's type alone, and the functions that make its adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.providers.base import Provider

if TYPE_CHECKING:
    from agents.config import ProviderConfig


@dataclass(frozen=True, slots=True)
class Vendor:
    """One type of provider. `make` gets the provider's name, its key and its configuration.

    `key_env` is the environment variable with the key, or "" if the vendor takes none. `url_env` is the variable with
    another base URL. `models` are known without a request to the server, the default first.
    """

    make: Callable[[str, str, ProviderConfig], Provider]
    key_env: str = ""
    url_env: str = ""
    models: tuple[str, ...] = ()
    # Whether a base URL without a key is enough, such as for a local model server.
    works_without_key: bool = False


# The SDKs are imported late because that takes a second, and many commands do not need a model.
def _anthropic(name: str, key: str, config: ProviderConfig) -> Provider:
    from agents.providers.anthropic.provider import AnthropicProvider

    return AnthropicProvider(name, key, **_connection(config))


def _openai(name: str, key: str, config: ProviderConfig) -> Provider:
    from agents.providers.openai.provider import OpenAIProvider

    return OpenAIProvider(name, key, api=config.openai_api, **_connection(config))


def _demo(name: str, key: str, config: ProviderConfig) -> Provider:
    from agents.providers.demo.provider import DemoProvider

    return DemoProvider(name, **config.options)


def _connection(config: ProviderConfig) -> dict[str, Any]:
    """Return the arguments that all adapters of servers take from the configuration."""
    # The configured timeout also applies to the first word of an answer.
    timeout = {} if config.timeout is None else {"timeout": config.timeout, "first_timeout": config.timeout}
    hint = config.key_name
    return {"base_url": config.base_url, "key_hint": hint, "max_retries": config.max_retries, **timeout}


# In this order, providers are made from the environment.
VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor(
        make=_anthropic,
        key_env="ANTHROPIC_API_KEY",
        url_env="ANTHROPIC_BASE_URL",
        models=("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"),
    ),
    "openai": Vendor(
        make=_openai,
        key_env="OPENAI_API_KEY",
        url_env="OPENAI_BASE_URL",
        models=("gpt-6.1-sol", "gpt-6-astra", "gpt-6-luna"),
        works_without_key=True,
    ),
    "demo": Vendor(make=_demo),
}


def vendor_type(value: str) -> str:
    """Return the type of a provider unchanged. Raise ValueError if it is unknown."""
    if value not in VENDORS:
        raise ValueError(f"must be one of {', '.join(VENDORS)}")
    return value
