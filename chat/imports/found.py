"""What a file holds: conversations, each with what could not be taken over from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from agents.safe_text import clean
from chat.imports.checks import YEARS

Json = dict[str, Any]


class Source(StrEnum):
    """Whose format it is."""

    PARLEY = "parley"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


class Left(StrEnum):
    """What a conversation had that did not come along."""

    BRANCHES = "branches"
    FILES = "files"
    UNKNOWN = "unknown"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Found:
    """One conversation: a document of Parley's that is not checked yet, and what is missing in it."""

    source: Source
    document: Json
    left: Counter[Left] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        session = self.document.get("session")
        title = session.get("title") if isinstance(session, dict) else None
        return clean(title)[:200] if isinstance(title, str) else ""

    @property
    def began(self) -> str:
        """When it began, as the file says it; "" where it does not."""
        session = self.document.get("session")
        time = session.get("created_at") if isinstance(session, dict) else None
        return time if isinstance(time, str) and len(time) < 40 else ""

    @property
    def count(self) -> int:
        """How many messages it has, turns' markers left out."""
        messages = self.document.get("messages")
        known = [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
        return sum(not str(each.get("type", "")).startswith("turn_") for each in known)


def as_text(value: object) -> str:
    """The text that a value is; "" where it is none. What no database keeps is replaced by U+FFFD (MSG-12)."""
    return clean(value) if isinstance(value, str) else ""


def as_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def as_dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def as_time(value: object) -> str | None:
    """ISO 8601 with offset, of seconds since 1970 or of such a text; None where it is no time."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value, UTC)
        else:
            time = datetime.fromisoformat(as_text(value))
    except (ValueError, OverflowError, OSError):
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return time.isoformat() if time.year in YEARS else None
