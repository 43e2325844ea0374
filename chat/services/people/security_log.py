"""The security log: rows for the admin, and JSON lines on the logger `chat.security`."""

from __future__ import annotations

import json
import logging
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import Model

from chat.models import ChatMessage, SecurityEvent, Session, User
from chat.origin import Interface, current_origin

logger = logging.getLogger("chat.security")

# The longest name that DNS allows.
MAX_HOST_LENGTH = 253


class Kind(StrEnum):
    """The kind of an event. Stored as text without choices, so that a new kind needs no migration."""

    SIGN_IN = "sign_in"
    SIGN_IN_FAILED = "sign_in_failed"
    SIGN_OUT = "sign_out"
    SIGNED_OUT_ELSEWHERE = "signed_out_elsewhere"
    SIGN_IN_LINK_MADE = "sign_in_link_made"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105  # it names an event
    SECOND_FACTOR_FAILED = "second_factor_failed"
    SECOND_FACTOR_ADDED = "second_factor_added"
    SECOND_FACTOR_REMOVED = "second_factor_removed"
    SECOND_FACTOR_RESET = "second_factor_reset"
    RECOVERY_CODES_MADE = "recovery_codes_made"
    ACCOUNT_MADE = "account_made"
    ACCOUNT_CHANGED = "account_changed"
    ACCOUNT_DELETED = "account_deleted"
    TOKEN_MADE = "token_made"  # noqa: S105  # likewise
    TOKEN_REVOKED = "token_revoked"  # noqa: S105  # likewise
    SHARED = "shared"
    UNSHARED = "unshared"
    INVITATION_MADE = "invitation_made"
    INVITATION_USED = "invitation_used"
    INVITATION_ENDED = "invitation_ended"
    MEMBER_ADDED = "member_added"
    MEMBER_REMOVED = "member_removed"
    MEMBER_CHANGED = "member_changed"
    GUEST_PROMOTED = "guest_promoted"
    ALL_LOGINS_ENDED = "all_logins_ended"
    EXPORTED = "exported"
    PERSON_EXPORTED = "person_exported"
    SESSION_DELETED = "session_deleted"
    SESSION_RESTORED = "session_restored"
    SESSION_HANDED_OVER = "session_handed_over"
    ERASURE_REQUESTED = "erasure_requested"
    ERASED = "erased"
    PURGED = "purged"
    ADMIN_READ = "admin_read"
    ADMIN_SEARCH = "admin_search"
    TOOL_CALLED = "tool_called"
    TOOL_DECIDED = "tool_decided"
    TOOL_RULE_CHANGED = "tool_rule_changed"
    AGENT_CHANGED = "agent_changed"
    MCP_SERVER_ADDED = "mcp_server_added"
    MCP_SERVER_CHANGED = "mcp_server_changed"
    MCP_SERVER_REMOVED = "mcp_server_removed"
    MCP_SERVER_CONNECTED = "mcp_server_connected"
    MCP_SERVER_DISCONNECTED = "mcp_server_disconnected"
    WORKSPACE_RENAMED = "workspace_renamed"
    SCHEDULE_PAUSED = "schedule_paused"
    SCHEDULE_RESUMED = "schedule_resumed"
    WEBHOOK_ADDED = "webhook_added"
    WEBHOOK_CHANGED = "webhook_changed"
    WEBHOOK_REMOVED = "webhook_removed"


def record(
    kind: Kind,
    *,
    actor: User | None,
    person: User | int | None = None,
    target: Model | None = None,
    interface: Interface | None = None,
    **details: str | int | list[str],
) -> None:
    """Record an event in the caller's transaction, if there is one, and log its line on commit.

    `person` is the user, or the id of the user, whose account or object is affected. `details` must not contain texts
    of users or secrets.
    """
    origin = current_origin()
    event = SecurityEvent(
        kind=kind,
        actor_id=actor.pk if actor else None,
        person_id=person.pk if isinstance(person, User) else person,
        object_type=str(target._meta.model_name) if target else "",
        object_id=str(target.pk) if target else "",
        face=interface or origin.interface,
        address=origin.address,
        token_id=origin.token_id,
        details=details,
    )
    event.save()
    line = json.dumps(_line(event, actor, person), ensure_ascii=False)
    transaction.on_commit(lambda: logger.info("%s", line))


def _line(event: SecurityEvent, actor: User | None, person: User | int | None) -> dict[str, Any]:
    named = person if isinstance(person, User) else None
    line = {
        "at": event.at.isoformat(timespec="milliseconds"),
        "kind": event.kind,
        "actor": event.actor_id,
        "actor_name": actor.username if actor else None,
        "person": event.person_id,
        "person_name": named.username if named else None,
        "object": f"{event.object_type} {event.object_id}".strip(),
        "face": event.face,
        "address": event.address,
        "token": event.token_id,
        **event.details,
    }
    return {name: value for name, value in line.items() if value not in (None, "")}


def record_host(session: Session, row: ChatMessage) -> None:
    """Record which host a tool call will contact. The rest of the address can be private."""
    address = row.arguments.get("url") if isinstance(row.arguments, dict) else None
    try:
        host = urlsplit(address.strip()).hostname if isinstance(address, str) else None
    except ValueError:  # the tool reports an invalid address
        return
    if host:
        record(
            Kind.TOOL_CALLED,
            actor=None,
            person=session.owner_id,
            target=session,
            interface=Interface.AGENT,
            tool=row.tool_name,
            host=host[:MAX_HOST_LENGTH],
        )
