"""The vendors: for each type of provider what follows from the type alone, and how its adapter is made."""

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

    `key_env` and `url_env` are environment variables: the key, "" if the vendor takes none, and another address.
    `models` are known without asking, the default first.
    """

    make: Callable[[str, str, ProviderConfig], Provider]
    key_env: str = ""
    url_env: str = ""
    models: tuple[str, ...] = ()
    # Whether an address alone is enough, as for a server of one's own.
    works_without_key: bool = False


# The SDKs take a second to import, which commands that talk to no model should not wait for.
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
    """Return what each adapter of a server takes from the configuration."""
    # A model may be silent before its first word as long as between two.
    timeout = {} if config.timeout is None else {"timeout": config.timeout, "first_timeout": config.timeout}
    hint = config.key_name
    return {"base_url": config.base_url, "key_hint": hint, "max_retries": config.max_retries, **timeout}


# In the order in which the environment offers them.
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
    """Return a type of provider as it is. Raises ValueError for one that is not known."""
    if value not in VENDORS:
        raise ValueError(f"choose from {', '.join(VENDORS)}")
    return value
