"""The history of messages and of the system prompt, and what was removed from a session."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.messages import Json
from chat.access import session_for
from chat.api.auth import ApiRequest, session_of
from chat.api.commands import checked_id, run_message_command
from chat.api.message_schemas import MESSAGE_ID, MessageOut, MessageRole, MessageType
from chat.api.responses import json_response
from chat.commands import Number
from chat.errors import NoSuchMessage, ServiceError
from chat.models import ChatMessage, SessionRole, User
from chat.queries import history, messages
from chat.queries.history import History, Words

router = Router(tags=["History"])
Kind = Literal[
    "original", "add", "edit", "withdraw", "remove", "retry", "restore", "exclude", "include", "system_prompt"
]


class HistoryQuery(Schema):
    before: Number | None = Field(None, description="`next` of the previous page")


class Version(Schema):
    """The text after a change. A tool call has `arguments` (JSON) and `result` instead of `text`."""

    id: int = Field(description="Of the change: different for each entry; 0 for the original")
    version: int = Field(
        description="Names the text, for `restore`: 0 is the present one. A change that keeps the text, such as "
        "`exclude`, has the version of the text that it keeps"
    )
    kind: Kind = Field(description="What was done; `original` is the text before all changes")
    user_id: int | None
    by: str | None = Field(description="The name of the user who did it; null if unknown")
    at: datetime | None
    text: str | None
    arguments: str | None
    result: str | None


class Versions(Schema):
    """The newest first; the original is the last one of the last page."""

    versions: list[Version]
    next: int | None = Field(description="The `before` of the next page; null on the last one")


class RemovedMessage(Schema):
    id: str = Field(examples=[MESSAGE_ID])
    type: MessageType
    role: MessageRole
    sender: str
    tool_name: str
    excerpt: str = Field(description="The beginning of its text")
    by: str | None = Field(description="The name of the user who removed it")
    at: datetime
    restorable: bool = Field(description="Whether `restore` puts it back; not if a retry replaced it")


class RemovedMessages(Schema):
    """The last removed first."""

    removed: list[RemovedMessage]
    next: int | None = Field(description="The `before` of the next page; null on the last one")


@router.get(
    "/sessions/{session_id}/messages/{message_id}/versions",
    response=Versions,
    operation_id="listVersions",
    summary="List the versions of a message",
)
def list_versions(request: ApiRequest, session_id: str, message_id: str, query: Query[HistoryQuery]) -> HttpResponse:
    """Each version has its author and time. Only editors may list those of removed messages."""
    row = _row(request, session_id, message_id)
    return json_response(request, _versions(history.history_of(row, query.before)))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/versions/{version}/restore",
    response=MessageOut,
    operation_id="restoreVersion",
    summary="Restore a version of a message",
)
def restore_version(request: ApiRequest, session_id: str, message_id: str, version: int) -> HttpResponse:
    """Edit the message so that it has the text of this version again."""
    session = session_of(request, session_id, SessionRole.EDITOR)
    row = _row(request, session_id, message_id)
    texts = history.version_of(row, version) if 0 <= version < 2**62 else None
    if texts is None:
        raise ServiceError("no_such_version", _("Version not found."))
    run_message_command(request, session_id, message_id, "edit", text=texts.get("text", ""))
    message = messages.message_snapshot(row.pk)
    if message is None or message.session_id != session.pk:
        raise NoSuchMessage
    return json_response(request, message.to_json(), revision=message.revision)


@router.get(
    "/sessions/{session_id}/system_prompt/versions",
    response=Versions,
    operation_id="listPromptVersions",
    summary="List the versions of the system prompt",
)
def list_prompt_versions(request: ApiRequest, session_id: str, query: Query[HistoryQuery]) -> HttpResponse:
    """Each version has its author and time."""
    session = session_of(request, session_id)
    return json_response(request, _versions(history.history_of_prompt(session, query.before)))


@router.get(
    "/sessions/{session_id}/removed",
    response=RemovedMessages,
    operation_id="listRemovedMessages",
    summary="List removed messages",
)
def list_removed(request: ApiRequest, session_id: str, query: Query[HistoryQuery]) -> HttpResponse:
    """Only editors may list removed messages. They can restore them."""
    session = session_of(request, session_id, SessionRole.EDITOR)
    rows, older = history.removed_from(session, query.before)
    removed = [
        {
            "id": each.message.pk,
            "type": each.message.type,
            "role": each.message.role,
            "sender": each.message.sender,
            "tool_name": each.message.tool_name,
            "excerpt": each.excerpt,
            "by": _name(each.user),
            "at": each.at.isoformat(),
            "restorable": each.comes_back,
        }
        for each in rows
    ]
    return json_response(request, {"removed": removed, "next": older})


def _row(request: ApiRequest, session_id: str, message_id: str) -> ChatMessage:
    session, role = session_for(request.user, session_id)
    row = ChatMessage.objects.filter(session=session, pk=checked_id(message_id)).first()
    if row is None or (row.removed_at is not None and not role.covers(SessionRole.EDITOR)):
        raise NoSuchMessage
    return row


def _versions(page: History) -> Json:
    versions = [
        {
            "id": change.id,
            "version": change.made,
            "kind": change.kind,
            "user_id": change.user.pk if change.user else None,
            "by": _name(change.user),
            "at": change.at.isoformat(),
            **_texts(change.after),
        }
        for change in page.changes
    ]
    if page.older is None:
        no_author = {"user_id": None, "by": None, "at": None}
        versions.append({"id": 0, "version": page.first_version, "kind": "original", **no_author, **_texts(page.first)})
    return {"versions": versions, "next": page.older}


def _texts(row: Words) -> Json:
    return {name: row.get(name) for name in ("text", "arguments", "result")}


def _name(user: User | None) -> str | None:
    return user.sender if user else None
