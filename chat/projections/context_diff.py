"""The comparison of a past request with the next one: the rows that have changed since, and the new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from chat.models import ChatMessage
from chat.projections.context import is_in_context


class Since(StrEnum):
    """The kind of change of a row since it was sent."""

    SAME = ""
    EDITED = "edited"
    LEFT_OUT = "left_out"
    REMOVED = "removed"


# The columns of a row's content that users can change.
_CONTENT = ("text", "arguments", "result", "is_error")


def since(then: ChatMessage, now: ChatMessage) -> Since:
    """Return how a row has changed: `then` is the row as it was sent, `now` the current one."""
    if now.removed_at is not None or now.sequence is None:
        return Since.REMOVED
    if not now.include_in_context:
        return Since.LEFT_OUT
    return Since.EDITED if any(_content(then, name) != _content(now, name) for name in _CONTENT) else Since.SAME


def _content(row: ChatMessage, name: str) -> object:
    return (row.arguments or {}) if name == "arguments" else getattr(row, name)


def rows_before(live: Sequence[ChatMessage], response_id: str) -> list[ChatMessage]:
    """Return the rows before a response, in order, from which a new request for the response would be made."""
    own = next((row.sequence for row in live if row.response_id == response_id), None)
    return [row for row in live if own is None or (row.sequence or 0) < own]


def new_rows(before: Sequence[ChatMessage], sent: Mapping[str, object]) -> list[ChatMessage]:
    """Return the rows before a response that a request would contain now, but that the past request did not."""
    return [row for row in before if is_in_context(row) and row.pk not in sent]
