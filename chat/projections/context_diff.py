"""Compare a past request with the next one: which rows have changed since, and which are new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from chat.models import ChatMessage
from chat.projections.context import speaks


class Since(StrEnum):
    """How a sent row has changed since."""

    SAME = ""
    EDITED = "edited"
    LEFT_OUT = "left_out"
    REMOVED = "removed"


# What people can change of a row's content.
_CONTENT = ("text", "arguments", "result", "is_error")


def since(then: ChatMessage, now: ChatMessage) -> Since:
    """Compare a row as it was sent with what it is now."""
    if now.removed_at is not None or now.sequence is None:
        return Since.REMOVED
    if not now.include_in_context:
        return Since.LEFT_OUT
    return Since.EDITED if any(_content(then, name) != _content(now, name) for name in _CONTENT) else Since.SAME


def _content(row: ChatMessage, name: str) -> object:
    return (row.arguments or {}) if name == "arguments" else getattr(row, name)


def rows_before(live: Sequence[ChatMessage], response_id: str) -> list[ChatMessage]:
    """Return the rows that a new request for the same response would contain: those before it, in order."""
    own = next((row.sequence for row in live if row.response_id == response_id), None)
    return [row for row in live if own is None or (row.sequence or 0) < own]


def new_rows(before: Sequence[ChatMessage], sent: Mapping[str, object]) -> list[ChatMessage]:
    """Of the rows before a response, those that would be sent now but were not then."""
    return [row for row in before if speaks(row) and row.pk not in sent]
