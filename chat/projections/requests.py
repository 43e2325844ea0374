"""Recorded requests to the model, as ids of rows, and the rows as they were then."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from chat.models import ChatMessage
from chat.projections.context import speaks

# A message id, and the revision that its row had.
Name = tuple[str, int]
# What the context is made of, by what a record of a message calls it.
_OF_ROW = ("type", "role", "status", "text", "sender", "user_id", "provider", "model", "response_id")
_OF_TOOL = {"call_id": "tool_call_id", "name": "tool_name", "arguments": "arguments", "result": "result"}


@dataclass(frozen=True, slots=True)
class Named:
    """The rows of a request: so many that an earlier one of the session begins with, too, then these."""

    shared: int
    rows: tuple[Name, ...]


def named(rows: Sequence[ChatMessage], known: int | None) -> Named:
    """Name the rows that the context is made of, of all live ones in order.

    `known` is the session's revision at an earlier request: up to the first row that has changed since, both begin
    alike. A removed, added or moved row changes all rows after it.
    """
    alike = takewhile(lambda row: known is not None and row.revision <= known, rows)
    shared = sum(map(speaks, alike))
    speaking = [row for row in rows if speaks(row)]
    return Named(shared, tuple((row.pk, row.revision) for row in speaking[shared:]))


def unfolded(newest_first: Iterable[Named]) -> list[Name]:
    """Give all names of the newest of a session's requests, which those before it complete.

    Raises LookupError when one of them is missing.
    """
    parts: list[tuple[Name, ...]] = []
    wanted: int | None = None
    for request in newest_first:
        own = request.rows if wanted is None else request.rows[: max(0, wanted - request.shared)]
        parts.append(own)
        wanted = request.shared if wanted is None else min(wanted, request.shared)
        if not wanted:
            return [name for part in reversed(parts) for name in part]
    raise LookupError


def without(request: Named, following: Named) -> Named:
    """Name the rows of the request after one that is deleted, counting from the request before both."""
    beyond = following.shared - request.shared
    if beyond <= 0:
        return following
    return Named(request.shared, (*request.rows[:beyond], *following.rows))


def as_then(row: ChatMessage, before: Mapping[str, Any] | None, place: int) -> ChatMessage:
    """Return a copy of a row as a revision kept it, at `place`; `before` None: its content has not changed since."""
    then = copy.copy(row)
    then.sequence = place
    then.include_in_context = True  # an excluded message is never sent
    if before is None:
        return then
    for name in _OF_ROW:
        setattr(then, name, before[name])
    then.provider_data = before.get("provider_data")
    then.edited_by_name = str(before.get("edited_by", ""))
    tool = before.get("tool") or {}
    for name, column in _OF_TOOL.items():
        setattr(then, column, tool.get(name, "" if name != "arguments" else None))
    then.is_error = bool(tool.get("is_error"))
    return then
