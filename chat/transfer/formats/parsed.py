"""A conversation from a file of any format, with counts of the content that was lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from agents.messages import Json
from agents.safe_text import clean
from chat.transfer.document.values import MAX_DEPTH, YEARS
from chat.transfer.parsing.archive import NO_ENTRIES, Entries

MAX_KINDS = 10
# Larger values are in milliseconds.
MAX_SECONDS_VALUE = 1e11
MAX_KIND_CHARS = 40


class Source(StrEnum):
    """The product that wrote the file."""

    PARLEY = "parley"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    OPEN_WEBUI = "open_webui"
    LIBRECHAT = "librechat"


class Loss(StrEnum):
    """The kinds of content that an import can lose."""

    BRANCHES = "branches"
    FILES = "files"
    SURPLUS = "surplus"
    RECORDINGS = "recordings"
    CITATIONS = "citations"
    UNKNOWN = "unknown"
    HIDDEN = "hidden"


class Losses(Counter[Loss]):
    """Counts of the content that a conversation lost. `kinds` are the names of unknown parts."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []

    def add_unknown(self, kind: object) -> None:
        """Count a part of an unknown kind."""
        self[Loss.UNKNOWN] += 1
        name = as_text(kind)[:MAX_KIND_CHARS].strip()
        if name and name not in self.kinds and len(self.kinds) < MAX_KINDS:
            self.kinds.append(name)


@dataclass(frozen=True, slots=True)
class ParsedConversation:
    """One conversation in Parley's own form, which is not validated yet.

    `entries` are the other files in its archive, to which attachments can refer.
    """

    source: Source
    document: Json
    left: Losses = field(default_factory=Losses)
    pinned: bool = False
    entries: Entries = NO_ENTRIES

    @property
    def title(self) -> str:
        session = self.document.get("session")
        title = session.get("title") if isinstance(session, dict) else None
        return clean(title)[:200] if isinstance(title, str) else ""

    @property
    def began(self) -> str:
        """The start time in the file's own format, or "" if there is none."""
        session = self.document.get("session")
        time = session.get("created_at") if isinstance(session, dict) else None
        return time if isinstance(time, str) and len(time) < 40 else ""

    @property
    def count(self) -> int:
        """The number of messages, without turn markers."""
        messages = self.document.get("messages")
        known = [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
        return sum(not str(each.get("type", "")).startswith("turn_") for each in known)


def as_text(value: object) -> str:
    """Return a value if it is a text, else "". Characters that a database rejects become U+FFFD (MSG-12)."""
    return clean(value) if isinstance(value, str) else ""


def as_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def as_dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def as_time(value: object) -> str | None:
    """Return an ISO 8601 time in UTC for seconds or milliseconds since 1970 or ISO text; None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000 if value > MAX_SECONDS_VALUE else value, UTC)
        else:
            time = datetime.fromisoformat(as_text(value))
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return time.isoformat() if time.year in YEARS else None


def require_json(value: object, depth: int = 0) -> Any:
    """Return a JSON value that every database can store. Raise ValueError if it is too deep or has NaN or infinity."""
    match value:
        case str():
            return clean(value)
        case float() if not math.isfinite(value):
            raise ValueError("not a number")
        case dict() | list() if depth >= MAX_DEPTH:
            raise ValueError("too deep")
        case dict():
            return {clean(str(key)): require_json(each, depth + 1) for key, each in value.items()}
        case list():
            return [require_json(each, depth + 1) for each in value]
    return value
