"""A session as JSON that Parley can import again (format "parley.session").

Columns with default values are omitted. Users appear only by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.db.models import NOT_PROVIDED, Field, Model

from agents.messages import Json
from chat.models import (
    FORKED_FILES,
    IMPORTED,
    Attachment,
    ChatMessage,
    MessageRevision,
    ModelRequest,
    Session,
    SessionRevision,
)
from chat.runs.elicitations import records_of

FORMAT = "parley.session"
VERSION = 1

SESSION = (
    "id",
    "title",
    "status",
    "mode",
    "replies",
    "replies_auto",
    "agent",
    "provider",
    "model",
    "system_prompt",
    "config",
    "total_tokens",
    "context_used",
    "context_window",
    "revision",
    "parent_message_id",
    "archived_at",
    "created_at",
    "updated_at",
)
MESSAGE = (
    "id",
    "sequence",
    "revision",
    "type",
    "role",
    "status",
    "sender",
    "model",
    "provider",
    "turn_id",
    "response_id",
    "mode",
    "workflow_id",
    "agent_id",
    "include_in_context",
    "tool_call_id",
    "tool_name",
    "arguments",
    "result",
    "is_error",
    "question",
    "answer",
    "answered_by_name",
    "answered_at",
    "origin",
    "sources",
    "timestamp",
    "ended_at",
    "duration_ms",
    "duration_seconds",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "first_token_latency_ms",
    "provider_data",
    "edited_at",
    "edited_by_name",
    "suggested_by_name",
    "end_reason",
    "stopped_by_name",
    "summarises",
    "attempt",
    "attempt_place",
    "removed_at",
    "created_at",
)
ATTACHMENT = ("id", "name", "kind", "media_type", "size", "width", "height", "pages")
# The names in the file of attributes that have another name there, which is that of their column.
NAMES_IN_FILE = {"turn_id": "run_id"}
REQUEST = ("response_id", "revision", "agent", "provider", "model", "tools", "shared", "rows", "created_at")


def session_record(session: Session) -> Json:
    """Return the session's columns. `parent_session` is the id of the session from which it was forked."""
    parent = {"parent_session": session.parent_session_id} if session.parent_session_id else {}
    record = _columns(session, SESSION) | parent
    if isinstance(config := record.get("config"), dict):  # an import adds its own mark; forked files are not exported
        record["config"] = {name: value for name, value in config.items() if name not in (IMPORTED, FORKED_FILES)}
    return record


def message_record(
    row: ChatMessage, text: str, revisions: Iterable[MessageRevision], attachments: Sequence[Json]
) -> Json:
    """Return a message with its revisions, oldest first. `text` is its current text."""
    changes = [{"kind": each.kind, **_change(each)} for each in revisions]
    asked = [{name: each[name] for name in each if name != "answered_by_id"} for each in records_of(row.asked)]
    parts = {"text": text, "asked": asked, "attachments": list(attachments), "revisions": changes}
    return _columns(row, MESSAGE) | {name: value for name, value in parts.items() if value}


def attachment_record(row: Attachment, data: str | None) -> Json:
    """Return the record of a file. `data` is its bytes in base64, or a placeholder for them."""
    content = {} if data is None else {"data": data}
    return _columns(row, ATTACHMENT) | content


def session_change_record(change: SessionRevision) -> Json:
    return {"kind": change.kind, "revision": change.revision, **_change(change)}


def request_record(request: ModelRequest) -> Json:
    return _columns(request, REQUEST)


def _change(change: MessageRevision | SessionRevision) -> Json:
    # Imported revisions have no user, so the name is taken from the record.
    before = dict(change.before)
    by = before.pop("by", "")
    before |= {name: None for name in ("user_id", "edited_by_id", "stopped_by_id") if before.get(name) is not None}
    if change.user is not None:
        by = change.user.sender or by
    return {"by": by, "at": change.created_at.isoformat(), "before": before}


def _columns(row: Model, names: Sequence[str]) -> Json:
    defaults = _defaults(type(row))
    values = ((name, getattr(row, name)) for name in names)
    return {NAMES_IN_FILE.get(name, name): plain(value) for name, value in values if value not in defaults[name]}


@cache
def _defaults(model: type[Model]) -> dict[str, tuple[object, ...]]:
    """Return the values that are omitted, by column."""
    return {field.name: _default(field) for field in model._meta.concrete_fields}


def _default(field: Field[Any, Any]) -> tuple[object, ...]:
    if field.default is NOT_PROVIDED:
        return (None, "")
    if field.default in (dict, list):
        return (field.default(),)
    return (field.default,)


def plain(value: object) -> object:
    """Return a value in the form for JSON. Times are in ISO 8601."""
    return value.isoformat() if isinstance(value, datetime) else value
