"""Functions that all forms of requests share: alternating sides, notes, and names and ids that a vendor accepts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from agents.messages import Message

# Sent as the users' message if a conversation ends with the model's, because most vendors refuse to continue that.
CONTINUE = "(Continue.)"
UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
# Put before the name of a tool that begins with another character than a letter, such as `21st__search`. Kimi refuses
# all requests with such a name, and Gemini those with a digit.
BEGINNING = "tool_"


def turns(messages: Iterable[Message]) -> list[tuple[bool, list[Message]]]:
    """Group adjacent messages by side, as pairs of (whether they are the model's, messages).

    System notes are on the users' side.
    """
    sides = itertools.groupby(messages, key=lambda message: message.role == "assistant")
    return [(is_model, list(group)) for is_model, group in sides]


def as_note(text: str) -> str:
    """Return a system note in the form of a user's text, for requests that have no place for the note itself."""
    return f"<system-note>\n{text}\n</system-note>"


def safe_name(name: str, longest: int) -> str:
    """Return a tool's name in a form that all vendors accept, cut to `longest`. A name in this form stays."""
    safe = UNSAFE.sub("_", name)[:longest] or "unknown"
    # If it becomes too long, its beginning is cut off, because names of tools of one server differ at their ends.
    return safe if safe[0].isalpha() else BEGINNING + safe[len(BEGINNING) - longest :]


def names_by_safe_name(names: Iterable[str], longest: int) -> dict[str, str]:
    """Return the original name for each name that was sent to the model."""
    return {safe_name(name, longest): name for name in names}


class CallIds:
    """Ids of tool calls in a form that a vendor accepts: with safe characters, not too long, and unique.

    Without this, ids can repeat in a conversation, because some vendors' models start with `call_0` in each answer.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._current: dict[str, str] = {}
        self._used: set[str] = set()

    def new(self, call_id: str) -> str:
        """Return the id to send for a new call."""
        unique = next(name for name in self._names(call_id) if name not in self._used)
        self._used.add(unique)
        self._current[call_id] = unique
        return unique

    def of(self, call_id: str) -> str:
        """Return the id that was sent for the latest call with this id, for the call's result."""
        return self._current.get(call_id) or next(self._names(call_id))

    def _names(self, call_id: str) -> Iterator[str]:
        safe = UNSAFE.sub("_", call_id)[: self._longest] or "call"
        yield safe
        for number in itertools.count(len(self._used)):
            end = f"_{number}"
            yield safe[: self._longest - len(end)] + end
