"""The rows that a document becomes: its importer's own, and nobody else here has said or done anything in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from chat.imports.document import Document, MessagePart
from chat.models import ChatMessage, MessageRevision, ModelRequest, Session, SessionRevision, Speaker, User, Workspace
from chat.services.access import sessions_of
from chat.services.workspaces import current_workspace

Json = dict[str, Any]
WITH_MESSAGES = {"attachments", "revisions"}


@dataclass(frozen=True, slots=True)
class Rows:
    """All that is to be written, files left out; `messages` by their ids."""

    session: Session
    messages: dict[str, ChatMessage]
    revisions: list[MessageRevision]
    changes: list[SessionRevision]
    requests: list[ModelRequest]


def rows_of(document: Document, chosen: Json, owner: User, *, is_own: bool, workspace: Workspace | None = None) -> Rows:
    """Make rows of a document at rest. `chosen` are columns of the session that stand before the document's own.

    Without a `workspace` it is the one that the owner is in.
    Names are kept; the owner alone is known by theirs, and with `is_own` is the one person who speaks in it.
    """
    session = _session(document, chosen, owner, workspace or current_workspace(owner))
    messages = {part.id: _message(part, session, is_own=is_own) for part in document.messages}
    revisions = [each for part in document.messages for each in _revisions(part, owner)]
    requests = [ModelRequest(session=session, **each.model_dump()) for each in document.requests]
    return Rows(session, messages, revisions, list(_changes(document, session)), requests)


def _session(document: Document, chosen: Json, owner: User, workspace: Workspace) -> Session:
    part = document.session
    parent = sessions_of(owner).filter(pk=part.parent_session).first() if part.parent_session else None
    own = part.model_dump(exclude={"parent_session", "created_at", "updated_at"})
    begun = document.began() or timezone.now()
    return Session(
        **{**own, **chosen},
        workspace=workspace,
        owner=owner,
        parent_session=parent,
        created_at=begun,
        updated_at=part.updated_at or begun,
    )


def _message(part: MessagePart, session: Session, *, is_own: bool) -> ChatMessage:
    columns = part.model_dump(exclude=WITH_MESSAGES)
    columns["timestamp"] = part.timestamp or session.created_at
    columns["created_at"] = part.created_at or columns["timestamp"]
    row = ChatMessage(session=session, **columns)
    if part.role == Speaker.USER:
        row.sender = _name(session.owner) if is_own else row.sender
        row.user = _known(row.sender, session.owner)
    return row


def _revisions(part: MessagePart, owner: User) -> Iterator[MessageRevision]:
    for each in part.revisions:
        yield MessageRevision(
            message_id=part.id,
            kind=each.kind,
            user=_known(each.by, owner),
            created_at=each.at,
            before=_signed(each.before, each.by),
        )


def _changes(document: Document, session: Session) -> Iterator[SessionRevision]:
    for each in document.changes:
        yield SessionRevision(
            session=session,
            kind=each.kind,
            revision=each.revision,
            user=_known(each.by, session.owner),
            created_at=each.at,
            before=_signed(each.before, each.by),
        )


def _signed(before: Mapping[Any, Any], by: str) -> Json:
    """A record that remembers who made it: mostly somebody who is not here."""
    return {**before, "by": by} if by else dict(before)


def _known(name: str, owner: User) -> User | None:
    return owner if name == _name(owner) else None


def _name(owner: User) -> str:
    return owner.sender[:200]
