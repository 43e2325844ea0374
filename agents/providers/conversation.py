"""What the forms of requests share: who speaks in turns, and names and ids that a vendor accepts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

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


class CallIds:
    """Ids of tool calls as a vendor takes them: of few characters, not too long, and once in a conversation.

    Models of other vendors, whose calls can be in the same conversation, start with `call_0` in each answer.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._current: dict[str, str] = {}
        self._used: set[str] = set()

    def new(self, call_id: str) -> str:
        """Name a call."""
        unique = next(name for name in self._names(call_id) if name not in self._used)
        self._used.add(unique)
        self._current[call_id] = unique
        return unique

    def of(self, call_id: str) -> str:
        """Name the latest call of that id, for its result."""
        return self._current.get(call_id) or next(self._names(call_id))

    def _names(self, call_id: str) -> Iterator[str]:
        safe = UNSAFE.sub("_", call_id)[: self._longest] or "call"
        yield safe
        for number in itertools.count(len(self._used)):
            end = f"_{number}"
            yield safe[: self._longest - len(end)] + end
