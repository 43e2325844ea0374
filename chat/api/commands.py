"""What is asked for, done as on a socket: the same commands, read by the same rules, through the same gates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from agents.messages import Json
from chat.amending import amend, amend_message
from chat.api.auth import ApiRequest
from chat.api.responses import seen_by
from chat.commands import AnyCommand, Ping, Request, Sync, checked
from chat.errors import NoSuchMessage, ServiceError

MESSAGE_ID = re.compile(r"[A-Za-z0-9_]{1,64}")


def command(kind: str, **fields: Any) -> Request:
    """Make a command of what was sent; None stands for what was left out. Raises Malformed."""
    made: AnyCommand = checked({"type": kind, **{name: value for name, value in fields.items() if value is not None}})
    if isinstance(made, Sync | Ping):
        raise TypeError(f"{kind} is about a socket")
    return made


def obey(request: ApiRequest, session_id: str, kind: str, **fields: Any) -> Json:
    """Carry a command out in a session; returns what it answers. Raises Malformed, ServiceError."""
    return amend(user=request.user, session_id=session_id, commands=[command(kind, **fields)])[0]


def obey_about(request: ApiRequest, session_id: str, message_id: str, kind: str, **fields: Any) -> Json:
    """Carry a command about a message out, if that is as `If-Match` says. Raises Malformed, ServiceError."""
    return commands_about(request, session_id, message_id, [(kind, fields)])[0]


def commands_about(
    request: ApiRequest, session_id: str, message_id: str, asked: Iterable[tuple[str, Json]]
) -> list[Json]:
    """Carry several out, or none of them; each is its kind and its fields."""
    commands = [command(kind, id=known(message_id), **fields) for kind, fields in asked]
    seen = seen_by(request)
    return amend_message(user=request.user, session_id=session_id, message_id=message_id, commands=commands, seen=seen)


def known(name: str, refusal: Callable[[], ServiceError] = NoSuchMessage) -> str:
    """Return an id from the request's address, where anything may stand. Raises `refusal` if it is not an id."""
    if not MESSAGE_ID.fullmatch(name):
        raise refusal()
    return name
