"""The kinds of files that a model accepts, by the configuration or by the model's name."""

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
BUILT_IN: Mapping[str, Capabilities] = {
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
    "gpt-6-*": BOTH,
    "gpt-6.1-*": BOTH,
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
    "gemma3*": IMAGES,
    "gemma3:1b*": NOTHING,
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


def takes(model: str, provider: ProviderConfig) -> Capabilities:
    """Return what a model accepts, from the model's configuration, else its provider's, else the table.

    Other servers with OpenAI's format get images by the table, but PDF files only if the configuration says so.
    """
    listed = find_fact(model, BUILT_IN) or NOTHING
    may_pdf = provider.type != "openai" or provider.is_openai
    own = provider.models.get(model)
    images = (own.vision if own else None, provider.vision, listed.images)
    pdf = (own.pdf if own else None, provider.pdf, listed.pdf and may_pdf)
    return Capabilities(*(next(value for value in values if value is not None) for values in (images, pdf)))
