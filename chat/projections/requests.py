"""Recorded requests to the model: the ids and revisions of their rows, and the rows as they were at that time."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from chat.models import ChatMessage
from chat.projections.context import is_in_context

# A message id, and the revision of its row at the time of the request.
RowReference = tuple[str, int]
# The columns from which the context is made, by their names in a revision of a message.
_OF_ROW = ("type", "role", "status", "text", "sender", "user_id", "provider", "model", "response_id")
_OF_TOOL = {"call_id": "tool_call_id", "name": "tool_name", "arguments": "arguments", "result": "result"}


@dataclass(frozen=True, slots=True)
class RequestRows:
    """The rows of a request: the first `shared` rows of the session's previous request, followed by `rows`."""

    shared: int
    rows: tuple[RowReference, ...]


def request_rows(rows: Sequence[ChatMessage], known: int | None) -> RequestRows:
    """Return references to the rows from which the context is made. `rows` are all live rows in order.

    `known` is the session's revision at the previous request. Both requests share the rows before the first row that
    has changed since. If a row was removed, added or moved, all rows after it have changed.
    """
    alike = takewhile(lambda row: known is not None and row.revision <= known, rows)
    shared = sum(map(is_in_context, alike))
    in_context = [row for row in rows if is_in_context(row)]
    return RequestRows(shared, tuple((row.pk, row.revision) for row in in_context[shared:]))


def all_references(newest_first: Iterable[RequestRows]) -> list[RowReference]:
    """Return all references of a session's newest request. Shared references are in the requests before it.

    Raise LookupError if one of these requests is missing.
    """
    parts: list[tuple[RowReference, ...]] = []
    wanted: int | None = None
    for request in newest_first:
        own = request.rows if wanted is None else request.rows[: max(0, wanted - request.shared)]
        parts.append(own)
        wanted = request.shared if wanted is None else min(wanted, request.shared)
        if not wanted:
            return [reference for part in reversed(parts) for reference in part]
    raise LookupError


def after_deletion(request: RequestRows, following: RequestRows) -> RequestRows:
    """Return the rows of the request after a deleted one, relative to the request before both."""
    beyond = following.shared - request.shared
    if beyond <= 0:
        return following
    return RequestRows(request.shared, (*request.rows[:beyond], *following.rows))


def row_as_sent(row: ChatMessage, before: Mapping[str, Any] | None, place: int) -> ChatMessage:
    """Return a copy of a row with the sequence `place` and the content of the revision `before`, if there is one."""
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
