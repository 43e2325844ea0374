"""Each column of a session is either shown, copied and exported, or named here with the reason why not."""

from __future__ import annotations

from chat.models import Session
from chat.services.sessions.forking import INHERITED
from chat.session_snapshot import SessionSnapshot
from chat.transfer.document.schema import SessionPart
from chat.transfer.exporting.as_json import SESSION

COLUMNS = {field.attname for field in Session._meta.concrete_fields}
# Of the server that has the session, or of its rows.
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
# A fork is a session of its own: these are its own values.
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
# The name of a column in the snapshot, where it is another one; None: clients get it from REST, or not at all.
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
    assert {column for column, name in names.items() if name is not None and name not in shown} == set()


def test_each_column_is_inherited_by_forks_or_their_own() -> None:
    assert set(INHERITED) | OF_A_FORK | (INTERNAL - {"workspace_id"}) == COLUMNS
    assert set(INHERITED) & OF_A_FORK == set()


def test_each_column_is_exported_and_imported() -> None:
    """The owner is the user who imports; the session that it was forked from is named by the exporter."""
    elsewhere = {"owner_id", "parent_session_id"}
    assert set(SESSION) | INTERNAL | elsewhere == COLUMNS
    assert set(SessionPart.model_fields) == {*SESSION, "parent_session"}
