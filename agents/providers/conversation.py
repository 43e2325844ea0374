"""What both vendors' requests share: who speaks in turns, and names and ids that a vendor accepts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from agents.messages import Message

# Said for the people when a conversation ends with the model, which most vendors refuse to go on from.
CONTINUE = "(Continue.)"
UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


def turns(messages: Iterable[Message]) -> list[tuple[bool, list[Message]]]:
    """Group adjacent messages by side, each as (is the model's, messages); system notes are on the people's side."""
    sides = itertools.groupby(messages, key=lambda message: message.role == "assistant")
    return [(is_model, list(group)) for is_model, group in sides]


def safe_name(name: str, longest: int) -> str:
    """Rewrite a tool's name so that a vendor takes it; a name that it takes already stays."""
    return UNSAFE.sub("_", name)[:longest] or "unknown"


def names_by_safe_name(names: Iterable[str], longest: int) -> dict[str, str]:
    """Tell what the model means by the names that it was given."""
    return {safe_name(name, longest): name for name in names}
