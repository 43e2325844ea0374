"""Create rows from the parts of a file, and insert them unchanged.

The rows belong to the importing user. No other user becomes their author.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import AutoField, Model
from django.utils import timezone

from agents.messages import Json
from chat.access import sessions_of
from chat.models import (
    ChatMessage,
    MessageRevision,
    MessageRole,
    ModelRequest,
    Session,
    SessionRevision,
    User,
    Workspace,
)
from chat.transfer.document.schema import ChangePart, MessagePart, RequestPart, RevisionPart, SessionPart


def session_row(
    part: SessionPart, chosen: Json, *, session_id: str, owner: User, workspace: Workspace, began: datetime | None
) -> Session:
    """Create the session. The `chosen` columns take precedence over the file's."""
    parent = sessions_of(owner).filter(pk=part.parent_session).first() if part.parent_session else None
    own = part.model_dump(exclude={"parent_session", "created_at", "updated_at"})
    if part.replies_auto:  # only its owner can write in the new session
        own["replies"] = Session.Replies.ALL
    begun = began or timezone.now()
    return Session(
        **{**own, **chosen, "id": session_id},
        workspace=workspace,
        owner=owner,
        parent_session=parent,
        created_at=begun,
        updated_at=part.updated_at or begun,
    )


def message_row(part: MessagePart, session: Session, *, is_own: bool) -> ChatMessage:
    """Create a message with the sender's name from the file. With `is_own`, all users' messages get the owner's name.

    A user's message with the owner's name belongs to the owner. Others belong to no account.
    """
    columns = part.model_dump(exclude={"attachments", "revisions", "run_id", "asked"})
    columns["asked"] = [each.record() for each in part.asked] or None
    columns["timestamp"] = part.timestamp or session.created_at
    columns["created_at"] = part.created_at or columns["timestamp"]
    row = ChatMessage(session=session, workspace_id=session.workspace_id, turn_id=part.run_id, **columns)
    if part.role == MessageRole.USER:
        row.sender = _name(session.owner) if is_own else row.sender
        row.user = _known_user(row.sender, session.owner)
    return row


def revision_row(part: RevisionPart, message: ChatMessage) -> MessageRevision:
    """Create a revision of a message."""
    return MessageRevision(
        message_id=message.pk,
        kind=part.kind,
        user=_known_user(part.by, message.session.owner),
        created_at=part.at,
        before=_with_author(part.before, part.by),
    )


def change_row(part: ChangePart, session: Session) -> SessionRevision:
    """Create a revision of the session."""
    return SessionRevision(
        session=session,
        kind=part.kind,
        revision=part.revision,
        user=_known_user(part.by, session.owner),
        created_at=part.at,
        before=_with_author(part.before, part.by),
    )


def request_row(part: RequestPart, session: Session) -> ModelRequest:
    """Create the record of a request to the model."""
    return ModelRequest(session=session, **part.model_dump())


@dataclass(frozen=True, slots=True)
class PreparedInsert:
    """Rows that are ready to insert. Preparing them takes longer than the insert, but needs no lock."""

    statement: str
    values: list[list[Any]]

    def run(self) -> None:
        if self.values:
            with connection.cursor() as cursor:
                cursor.executemany(self.statement, self.values)


def prepare_insert(rows: Sequence[Model]) -> PreparedInsert:
    """Prepare rows of one model.

    Unlike `bulk_create`, this does not set columns with auto_now_add.
    """
    if not rows:
        return PreparedInsert("", [])
    options = rows[0]._meta
    fields = [field for field in options.concrete_fields if not isinstance(field, AutoField)]
    quoted = connection.ops.quote_name
    columns = ", ".join(quoted(str(field.column)) for field in fields)
    statement = f"INSERT INTO {quoted(options.db_table)} ({columns}) VALUES ({', '.join(['%s'] * len(fields))})"  # noqa: S608  # names of the model's own
    prepared = [[field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in rows]
    return PreparedInsert(statement, prepared)


def _with_author(before: Mapping[Any, Any], by: str) -> Json:
    """Return `before` with the author's name, because most authors have no account on this server."""
    return {**before, "by": by} if by else dict(before)


def _known_user(name: str, owner: User) -> User | None:
    return owner if name == _name(owner) else None


def _name(owner: User) -> str:
    return owner.sender[:200]
