"""Each column of a session is shown, copied and exported, or is listed here with the reason why it is not."""

from __future__ import annotations

from typing import get_args

from chat.models import Session
from chat.services.sessions.fields import RECORDED
from chat.services.sessions.forking import INHERITED
from chat.session_snapshot import SessionSnapshot
from chat.transfer.document.schema import Column, SessionPart
from chat.transfer.exporting.as_json import SESSION
from tests.support.agreement import agree

COLUMNS = {field.attname for field in Session._meta.concrete_fields}
# Columns with values that only matter to the server or its rows.
INTERNAL = {
    "archived_by_id",
    "caller_session_id",
    "caller_message_id",
    "purged_revision",
    "building_until",
    "deleted_at",
    "key_digest",
    "workspace_id",
    "workspace_role",
}
# Columns that a fork does not copy, because it has its own values.
OF_A_FORK = {
    "id",
    "owner_id",
    "title",
    "status",
    "revision",
    "parent_session_id",
    "parent_message_id",
    "archived_at",
    "created_at",
    "updated_at",
    "total_tokens",
    "context_used",
    # Copied without what people have approved in the session.
    "config",
}
# The names of columns in the snapshot if they differ. None: clients get the value only by REST, or not at all.
SHOWN_AS = {
    "parent_session_id": None,
    "parent_message_id": None,
    "archived_at": "status",
    "config": None,
    "created_at": None,
    "updated_at": None,
    "total_tokens": "session_total_tokens",
}


def test_each_column_is_shown_or_internal() -> None:
    shown = set(SessionSnapshot.__dataclass_fields__)
    names = {column: SHOWN_AS.get(column, column) for column in COLUMNS - INTERNAL}
    agree(
        [column for column, name in names.items() if name is None or name in shown],
        names,
        missing=(
            "Clients do not get the column {}: add it to SessionSnapshot (chat/session_snapshot.py), or name it in "
            "SHOWN_AS or INTERNAL of this file."
        ),
        extra="",
    )


def test_each_column_is_inherited_by_forks_or_their_own() -> None:
    agree(
        {*INHERITED, *OF_A_FORK, *(INTERNAL - {"workspace_id"})},
        COLUMNS,
        missing=(
            "Say what the column {} is in a fork: add it to INHERITED (chat/services/sessions/forking.py) to copy it, "
            "or to OF_A_FORK or INTERNAL of this file."
        ),
        extra="Remove {} from INHERITED, or from the lists of this file: a session has no such column.",
    )
    assert set(INHERITED) & OF_A_FORK == set()


def test_each_column_is_exported_and_imported() -> None:
    """The owner is the user who imports; the session that it was forked from is named by the exporter."""
    elsewhere = {"owner_id", "parent_session_id"}
    agree(
        {*SESSION, *INTERNAL, *elsewhere},
        COLUMNS,
        missing=(
            "Exports lack the column {}: add it to SESSION (chat/transfer/exporting/as_json.py) and SessionPart "
            "(chat/transfer/document/schema.py), or to INTERNAL of this file."
        ),
        extra="Remove {} from SESSION, or from INTERNAL of this file: a session has no such column.",
    )
    agree(
        SessionPart.model_fields,
        {*SESSION, "parent_session"},
        missing="Imports refuse the column {}: add it to SessionPart (chat/transfer/document/schema.py).",
        extra="Exports lack {}: add it to SESSION (chat/transfer/exporting/as_json.py).",
    )


def test_each_recorded_change_is_imported() -> None:
    """MSG-11: an export contains the history of a session, so an import must accept each column of it."""
    agree(
        get_args(Column),
        {column for columns in RECORDED.values() for column in columns},
        missing="Imports refuse changes of the column {}: add it to Column (chat/transfer/document/schema.py).",
        extra="Remove {} from Column: the history has no such changes (RECORDED in chat/services/sessions/fields.py).",
    )
