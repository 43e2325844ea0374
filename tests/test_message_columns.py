"""Each column of a message is shown, exported and imported, or is listed here with the reason why it is not."""

from __future__ import annotations

from chat.models import ChatMessage
from chat.projections.context import CONTEXT_FIELDS
from chat.services.sessions.forking import NULL_COLUMNS, OWN_COLUMNS
from chat.snapshots import MessageSnapshot, ToolSnapshot, UsageSnapshot
from chat.transfer.document.schema import MessagePart
from chat.transfer.exporting.as_json import MESSAGE, NAMES_IN_FILE
from tests.support.agreement import agree

FIELDS = {field.attname for field in ChatMessage._meta.concrete_fields}
COLUMNS = {field.column for field in ChatMessage._meta.concrete_fields}
# Fields with values that only matter to the server or its rows.
INTERNAL = {
    "workspace_id",
    "idempotency_key",
    "key_digest",
    "provider_data",
    "attempt",
    "attempt_place",
    "removed_at",
}
# The names of fields in the snapshots if they differ.
SHOWN_AS = {
    "tool_call_id": "call_id",
    "tool_name": "name",
    "answered_by_name": "answered_by",
    "edited_at": "edited",
    "edited_by_name": "edited_by",
    "suggested_by_name": "suggested_by",
    "open_suggestions": "suggestions",
    "stopped_by_name": "stopped_by",
    "created_at": "made_at",
}
# Fields that an export does not contain.
NOT_EXPORTED = {
    # The session is the file. Accounts are named, because an id has no meaning in another installation.
    "session_id",
    "workspace_id",
    "user_id",
    "answered_by_id",
    "edited_by_id",
    "stopped_by_id",
    "mentions",
    # Other sessions and session files are not in the file.
    "subsession",
    "files",
    # These only matter while a message is queued, an answer is missing or a suggestion is open.
    "idempotency_key",
    "key_digest",
    "held",
    "for_agent",
    "approval",
    "open_suggestions",
    # An import counts the attempts again.
    "attempt_count",
    "attempt_current",
}
# Parts of an exported message that `message_record` adds to the fields in MESSAGE.
ADDED = {"text", "asked"}


def test_each_field_is_shown_or_internal() -> None:
    shown = {name for kind in (MessageSnapshot, ToolSnapshot, UsageSnapshot) for name in kind.__dataclass_fields__}
    agree(
        [field for field in FIELDS if SHOWN_AS.get(field, field) in shown],
        FIELDS - INTERNAL,
        missing=(
            "Clients do not get the field {}: add it to MessageSnapshot (chat/snapshots.py), or name it in SHOWN_AS or "
            "INTERNAL of this file."
        ),
        extra="Remove {} from INTERNAL: clients get the field.",
    )


def test_each_field_is_exported_and_imported() -> None:
    """MSG-11: an import restores what an export contains."""
    agree(
        {*MESSAGE, *ADDED, *NOT_EXPORTED},
        FIELDS,
        missing=(
            "Exports lack the field {}: add it to MESSAGE (chat/transfer/exporting/as_json.py) and MessagePart "
            "(chat/transfer/document/schema.py), or to NOT_EXPORTED of this file."
        ),
        extra="Remove {} from MESSAGE, or from the lists of this file: a message has no such field.",
    )
    agree(
        MessagePart.model_fields,
        {NAMES_IN_FILE.get(name, name) for name in (*MESSAGE, *ADDED)} | {"attachments", "revisions"},
        missing="Imports refuse the column {}: add it to MessagePart (chat/transfer/document/schema.py).",
        extra="Exports lack {}: add it to MESSAGE (chat/transfer/exporting/as_json.py).",
    )


def test_lists_of_columns_name_columns() -> None:
    assert {*OWN_COLUMNS, *NULL_COLUMNS} <= COLUMNS
    assert set(OWN_COLUMNS) & set(NULL_COLUMNS) == set()
    assert set(CONTEXT_FIELDS) <= FIELDS
