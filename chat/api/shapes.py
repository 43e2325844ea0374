"""What the API tells of sessions and people; messages are told as on a socket (snapshots.py)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from ninja import Schema
from pydantic import Field

from chat import ids
from chat.models import Role, Session
from chat.services.errors import Invalid
from chat.services.listing import Listed
from chat.services.reading import session_snapshot
from chat.snapshots import MessageSnapshot

Json = dict[str, Any]
SESSION_ID = "s_0123456789abcdef01234567"
MESSAGE_ID = "m_0123456789abcdef01234567"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class SessionOut(Schema):
    """A session as it is now. `role` is yours in it: viewer, editor or owner. `revision` counts its changes."""

    id: str = Field(examples=[SESSION_ID])
    workspace: int
    title: str
    status: str = Field(examples=["active"])
    agent: str
    agent_title: str = Field(description="Its name for people; empty where there is no other agent to tell it from")
    provider: str
    model: str
    reasoning_effort: str = Field(
        examples=["high"],
        description="Chosen for the session; empty: the model's own. One that the model lacks is not sent",
    )
    thinking_budget: int | None = Field(description="Tokens, chosen for the session; null: the model's own")
    system_prompt: str
    owner_id: int
    revision: int
    context_used: int | None
    context_window: int | None
    context_percent: float | None
    session_total_tokens: int
    agent_status: str = Field(examples=["idle"], description="idle, thinking, tool_calling or waiting")
    tool_name: str = Field(description="Which tool is called while the agent is at it")
    role: str = Field(examples=["owner"])
    forked_from: str | None = Field(description="The session that this is a fork of, if that is still there")
    created_at: datetime
    updated_at: datetime


class SessionRow(Schema):
    """A session in a list. `owner` is told where it is somebody else's; `unread`: you have not seen all."""

    id: str = Field(examples=[SESSION_ID])
    workspace: int
    title: str
    owner: str | None
    archived: bool
    pinned: bool
    unread: bool
    working: bool = Field(description="Whether its agent is at work")
    updated_at: datetime


class SessionPage(Schema):
    """Sessions, the last active first; `next` is the `cursor` of what comes after them, null when this is all."""

    sessions: list[SessionRow]
    next: str | None


class MessagePage(Schema):
    """Messages in order; `queued` ones stand after them all. `more` when there are others in the way asked for."""

    messages: list[MessageSnapshot]
    queued: list[MessageSnapshot]
    more: bool


def session_out(session: Session, role: Role) -> Json:
    """Tell of a session, in a constant number of queries."""
    return {
        **session_snapshot(session).to_json(),
        "workspace": session.workspace_id,
        "role": role.value,
        "forked_from": session.parent_session_id,
        "created_at": session.created_at.isoformat(),
        "updated_at": session.updated_at.isoformat(),
    }


def row_out(row: Listed) -> Json:
    return {
        "id": row.id,
        "workspace": row.workspace,
        "title": row.title,
        "owner": row.owner.sender if row.owner else None,
        "archived": row.archived,
        "pinned": row.pinned,
        "unread": row.unread,
        "working": row.working,
        "updated_at": row.updated_at.isoformat(),
    }


def cursor_of(row: Listed) -> str:
    """Write down a row's place in the list."""
    return f"{(row.updated_at - EPOCH) // MICROSECOND}.{row.id}"


def place_of(cursor: str) -> tuple[datetime, str]:
    """Read a place that was written down. Raises Invalid."""
    count, _dot, session_id = cursor.partition(".")
    if not (count.isascii() and count.isdigit() and len(count) <= 16 and ids.may_be_one(session_id)):
        raise Invalid(_("This cursor is none of Parley’s: take `next` of the page before."))
    return EPOCH + int(count) * MICROSECOND, session_id
