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
from chat.api.commands import checked_id, message_response, run_message_command
from chat.api.message_schemas import EXAMPLE_MESSAGE_ID, MessageOut, MessageRole, MessageType
from chat.api.responses import json_response
from chat.commands import Number
from chat.errors import NoSuchMessage, ServiceError
from chat.models import ChatMessage, SessionRole, User
from chat.queries import history
from chat.queries.history import History, Words

router = Router(tags=["History"])
Kind = Literal[
    "original", "add", "edit", "withdraw", "remove", "retry", "restore", "exclude", "include", "system_prompt"
]


class HistoryQuery(Schema):
    before: Number | None = Field(None, description="The `next` of the previous page. Leave it out for the first page.")


class Version(Schema):
    """A change, with the content that it resulted in. For a tool call, that is `arguments` and `result`, otherwise
    `text`.
    """

    id: int = Field(description="The id of the change. 0 for the original.")
    version: int = Field(
        description="The number of the version for `restoreVersion`. 0 is the current version. A change that does not "
        "alter the content, such as `exclude`, has the version of that content."
    )
    kind: Kind = Field(description="The kind of the change. `original` is the content before all changes.")
    user_id: int | None = Field(description="The id of the user who made the change. Null if unknown.")
    by: str | None = Field(description="The name of the user who made the change. Null if unknown.")
    at: datetime | None = Field(description="The time of the change. Null if unknown.")
    text: str | None = Field(description="The text. Null for a tool call.")
    arguments: str | None = Field(description="The arguments as JSON. Null unless the message is a tool call.")
    result: str | None = Field(description="The result. Null unless the message is a tool call.")


class Versions(Schema):
    """A page of versions, newest first. The original is the last version of the last page."""

    versions: list[Version] = Field(description="The versions of the page.")
    next: int | None = Field(description="The `before` of the next page. Null on the last page.")


class RemovedMessage(Schema):
    """A message that was removed from the session."""

    id: str = Field(examples=[EXAMPLE_MESSAGE_ID], description="The id of the message.")
    type: MessageType = Field(description="The type of the message.")
    role: MessageRole = Field(description="The role of its author.")
    sender: str = Field(description="The name of its author.")
    tool_name: str = Field(description="The name of the tool of a tool call. Empty for other messages.")
    excerpt: str = Field(description="The beginning of the text. At most 400 characters.")
    by: str | None = Field(description="The name of the user who removed the message. Null if unknown.")
    at: datetime = Field(description="The time of the removal.")
    restorable: bool = Field(
        description="Whether `restoreMessage` can restore the message. False if a retry replaced it (use "
        "`restoreAttempt`), or if it was removed from the queue (send it again)."
    )


class RemovedMessages(Schema):
    """A page of removed messages, beginning with the last removed one."""

    removed: list[RemovedMessage] = Field(description="The messages of the page.")
    next: int | None = Field(description="The `before` of the next page. Null on the last page.")


@router.get(
    "/sessions/{session_id}/messages/{message_id}/versions",
    response=Versions,
    operation_id="listVersions",
    summary="List the versions of a message",
)
def list_versions(request: ApiRequest, session_id: str, message_id: str, query: Query[HistoryQuery]) -> HttpResponse:
    """List the versions of a message with the users who made them. Only editors may list those of a removed message."""
    row = _row(request, session_id, message_id)
    return json_response(request, _versions(history.history_of(row, query.before)))


@router.post(
    "/sessions/{session_id}/messages/{message_id}/versions/{version}/restore",
    response=MessageOut,
    operation_id="restoreVersion",
    summary="Restore a version of a message",
)
def restore_version(request: ApiRequest, session_id: str, message_id: str, version: int) -> HttpResponse:
    """Edit a message so that it has the text of a version again. The edit is a new change in the history."""
    session_of(request, session_id, SessionRole.EDITOR)
    row = _row(request, session_id, message_id)
    texts = history.version_of(row, version) if 0 <= version < 2**62 else None
    if texts is None:
        raise ServiceError("no_such_version", _("Version not found."))
    run_message_command(request, session_id, message_id, "edit", text=texts.get("text", ""))
    return message_response(request, session_id, message_id)


@router.get(
    "/sessions/{session_id}/system_prompt/versions",
    response=Versions,
    operation_id="listPromptVersions",
    summary="List the versions of the system prompt",
)
def list_prompt_versions(request: ApiRequest, session_id: str, query: Query[HistoryQuery]) -> HttpResponse:
    """List the versions of the session's system prompt with the users who made them."""
    session = session_of(request, session_id)
    return json_response(request, _versions(history.history_of_prompt(session, query.before)))


@router.get(
    "/sessions/{session_id}/removed",
    response=RemovedMessages,
    operation_id="listRemovedMessages",
    summary="List removed messages",
)
def list_removed(request: ApiRequest, session_id: str, query: Query[HistoryQuery]) -> HttpResponse:
    """List the messages that were removed. Only editors of the session may list them.

    Messages that their sender withdrew from the queue are left out.
    """
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
