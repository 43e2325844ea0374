"""What a model accepts, by the configuration or by its name: kinds of files, and the size of its context (RUN-05)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.config import ProviderConfig
from agents.model_table import find_fact


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The kinds of files that a model accepts besides text."""

    images: bool = False
    pdf: bool = False


NOTHING, IMAGES, BOTH = Capabilities(), Capabilities(images=True), Capabilities(images=True, pdf=True)

# By model name or pattern, as vendors publish it. A model that is not listed gets only text.
CAPABILITIES: Mapping[str, Capabilities] = {
    "claude-*": BOTH,
    "claude-3-haiku*": IMAGES,
    "claude-3-sonnet*": IMAGES,
    "claude-3-opus*": IMAGES,
    "claude-2*": NOTHING,
    "claude-instant*": NOTHING,
    "gpt-4o*": BOTH,
    "chatgpt-4o*": IMAGES,
    "gpt-4-turbo*": IMAGES,
    "gpt-4-vision*": IMAGES,
    "gpt-4.1*": BOTH,
    "gpt-4.5*": IMAGES,
    "gpt-5*": BOTH,
    "gpt-6*": BOTH,
    "codex-mini*": IMAGES,
    "o1*": BOTH,
    "o1-mini*": NOTHING,
    "o1-preview*": NOTHING,
    "o3*": BOTH,
    "o3-mini*": NOTHING,
    "o4-mini*": BOTH,
    "gemini-*": IMAGES,
    "gemma-3-*": IMAGES,
    "gemma-3-1b*": NOTHING,
    "gemma-3-270m*": NOTHING,
    "gemma3*": IMAGES,
    "gemma3:1b*": NOTHING,
    "gemma3:270m*": NOTHING,
    "gemma3n*": NOTHING,
    "llava*": IMAGES,
    "llama-3.2-*vision*": IMAGES,
    "llama3.2-vision*": IMAGES,
    "llama-4-*": IMAGES,
    "llama4*": IMAGES,
    "pixtral*": IMAGES,
    "mistral-small3.*": IMAGES,
    "mistral-medium-3*": IMAGES,
    "qwen*-vl*": IMAGES,
    "qwen*vl*": IMAGES,
    "internvl*": IMAGES,
    "minicpm-v*": IMAGES,
    "moondream*": IMAGES,
    "glm-4*v*": IMAGES,
    "grok-2-vision*": IMAGES,
    "grok-4*": IMAGES,
    "kimi-k2.5*": IMAGES,
    "demo": BOTH,
}

# The pattern of models of Claude that are newer than the table. They have at least the window of older ones.
NEWER_CLAUDE = "claude-*"
# By model name or pattern, as vendors publish it. If a vendor offers several sizes, this is the one without an opt-in.
# The window of a model that is not listed is unknown, so the page shows tokens instead of a percentage.
CONTEXT_WINDOWS: Mapping[str, int] = {
    NEWER_CLAUDE: 200_000,
    "claude-3-*": 200_000,
    "claude-opus-4*": 200_000,
    "claude-sonnet-4*": 200_000,
    "claude-haiku-4*": 200_000,
    "claude-opus-4-6*": 1_000_000,
    "claude-opus-4-7*": 1_000_000,
    "claude-opus-4-8*": 1_000_000,
    "claude-sonnet-4-6*": 1_000_000,
    "claude-opus-5*": 1_000_000,
    "claude-sonnet-5*": 1_000_000,
    "claude-haiku-5*": 1_000_000,
    "claude-fable-*": 1_000_000,
    "claude-mythos-*": 1_000_000,
    "claude-2.0": 100_000,
    "claude-instant-*": 100_000,
    "gpt-3.5-turbo*": 16_385,
    "gpt-4": 8_192,
    "gpt-4-0314": 8_192,
    "gpt-4-0613": 8_192,
    "gpt-4-32k*": 32_768,
    "gpt-4-0125-preview": 128_000,
    "gpt-4-1106-preview": 128_000,
    "gpt-4-vision-preview": 128_000,
    "gpt-4-turbo*": 128_000,
    "gpt-4o*": 128_000,
    "chatgpt-4o*": 128_000,
    "gpt-4.1*": 1_047_576,
    "gpt-4.5*": 128_000,
    "gpt-5*": 400_000,
    "gpt-5-chat*": 128_000,
    "gpt-5.1-chat*": 128_000,
    "gpt-5.2-chat*": 128_000,
    "gpt-5.3-chat*": 128_000,
    "gpt-5.4": 1_050_000,
    "gpt-5.4-20*": 1_050_000,
    "gpt-5.4-pro*": 1_050_000,
    "gpt-5.5*": 1_050_000,
    "gpt-5.6*": 1_050_000,
    "gpt-6*": 1_050_000,
    "codex-mini*": 200_000,
    "gpt-oss*": 131_072,
    "o1*": 200_000,
    "o1-mini*": 128_000,
    "o1-preview*": 128_000,
    "o3*": 200_000,
    "o4-mini*": 200_000,
    "gemini-1.5-pro*": 2_097_152,
    "gemini-1.5-flash*": 1_048_576,
    "gemini-2*": 1_048_576,
    "gemini-3*": 1_048_576,
    "gemma-2*": 8_192,
    "gemma2*": 8_192,
    "gemma-3*": 131_072,
    "gemma3*": 131_072,
    "llama3": 8_192,
    "llama3:*": 8_192,
    "llama-3.1*": 131_072,
    "llama3.1*": 131_072,
    "llama-3.2*": 131_072,
    "llama3.2*": 131_072,
    "llama-3.3*": 131_072,
    "llama3.3*": 131_072,
    "meta-llama-3.1*": 131_072,
    "mistral-large*": 131_072,
    "mistral-medium*": 131_072,
    "mistral-small*": 131_072,
    "ministral*": 131_072,
    "mistral-nemo*": 131_072,
    "codestral*": 262_144,
    "mixtral-8x7b*": 32_768,
    "mixtral-8x22b*": 65_536,
    "deepseek-chat*": 131_072,
    "deepseek-reasoner*": 131_072,
    "deepseek-r1*": 131_072,
    "deepseek-v3*": 131_072,
    "qwen-max*": 32_768,
    "qwen-plus*": 131_072,
    "qwen2.5*": 131_072,
    "qwen3*": 40_960,
    "qwen3-coder*": 262_144,
    "qwq*": 131_072,
    "kimi-k2*": 131_072,
    "glm-4*": 131_072,
    "grok-3*": 131_072,
    "grok-4*": 262_144,
    "command-r*": 131_072,
    "demo": 32_000,
}
KNOWN_CLAUDE = {name: size for name, size in CONTEXT_WINDOWS.items() if "claude-" in name and name != NEWER_CLAUDE}


def capabilities_of(model: str, provider: ProviderConfig) -> Capabilities:
    """Return what a model accepts, from the model's configuration, else its provider's, else the table.

    Other servers with OpenAI's format get images by the table, but PDF files only if the configuration says so.
    """
    listed = find_fact(model, CAPABILITIES) or NOTHING
    may_pdf = provider.type != "openai" or provider.is_openai
    own = provider.models.get(model)
    images = (own.vision if own else None, provider.vision, listed.images)
    pdf = (own.pdf if own else None, provider.pdf, listed.pdf and may_pdf)
    return Capabilities(*(next(value for value in values if value is not None) for values in (images, pdf)))


def is_known_claude(model: str) -> bool:
    """Return whether this is a model of Claude that the table has, so that Anthropic's list is not needed for it."""
    return find_fact(model, KNOWN_CLAUDE) is not None


def window_in_list(model: str, stated: int | None, provider: ProviderConfig) -> int | None:
    """Return the window that a server's list states, if it counts.

    Anthropic's list may state a size that needs an opt-in. So for models of Claude, it counts only if they are newer
    than the table.
    """
    return None if provider.type == "anthropic" and is_known_claude(model) else stated


def context_window(
    model: str,
    model_config: int | None = None,
    provider_config: int | None = None,
    stated: int | None = None,
    table: Mapping[str, int] = CONTEXT_WINDOWS,
) -> int | None:
    """Return the window from the model's configuration, else its provider's, else the server's list, else the table.

    Return None if it is unknown.
    """
    known = (window for window in (model_config, provider_config, stated) if window is not None)
    return next(known, None) or find_fact(model, table)
