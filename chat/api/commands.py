"""Commands sent as REST requests. They have the same checks, limits and access rights as those sent by sockets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from django.http import HttpResponse

from agents.messages import Json
from chat.api.auth import ApiRequest, session_of
from chat.api.responses import if_match_revisions, json_response
from chat.command_frames import command_of
from chat.commands import SessionCommand
from chat.dispatch import amend_message, execute, fork_message
from chat.errors import NoSuchMessage, ServiceError
from chat.queries.messages import message_snapshot

ID_IN_URL = re.compile(r"[A-Za-z0-9_]{1,64}")


def make_command(kind: str, **fields: Any) -> SessionCommand:
    """Return a command with the fields of a request, except those that are None. Raise MalformedCommand."""
    command = command_of({"type": kind, **{name: value for name, value in fields.items() if value is not None}})
    if not isinstance(command, SessionCommand):
        raise TypeError(f"{kind} is a command to a socket")
    return command


def run_command(request: ApiRequest, session_id: str, kind: str, **fields: Any) -> Json:
    """Run a command in a session and return its result. Raise MalformedCommand, ServiceError."""
    return execute(request.user, session_id, make_command(kind, **fields))


def run_message_command(request: ApiRequest, session_id: str, message_id: str, kind: str, **fields: Any) -> Json:
    """Run a command on a message and return its result. Raise MalformedCommand, ServiceError.

    If the request has an `If-Match` header, it must name the message's revision.
    """
    return run_message_commands(request, session_id, message_id, [(kind, fields)])[0]


def run_message_commands(
    request: ApiRequest, session_id: str, message_id: str, kinds_and_fields: Iterable[tuple[str, Json]]
) -> list[Json]:
    """Run several commands on a message, all or none. `kinds_and_fields` has the type and the fields of each."""
    commands = [make_command(kind, id=checked_id(message_id), **fields) for kind, fields in kinds_and_fields]
    seen = if_match_revisions(request)
    return amend_message(user=request.user, session_id=session_id, message_id=message_id, commands=commands, seen=seen)


def run_fork(request: ApiRequest, session_id: str, message_id: str, **fields: Any) -> Json:
    """Fork the session at a message. Checks `If-Match` and raises errors like `run_message_command`."""
    command = make_command("fork", id=checked_id(message_id), **fields)
    seen = if_match_revisions(request)
    return fork_message(user=request.user, session_id=session_id, message_id=message_id, command=command, seen=seen)


def message_response(request: ApiRequest, session_id: str, message_id: str) -> HttpResponse:
    """Return a message as it is now, with its revision in the ETag. Raise NoSuchSession, NoSuchMessage."""
    session = session_of(request, session_id)
    message = message_snapshot(checked_id(message_id))
    if message is None or message.session_id != session.pk:
        raise NoSuchMessage
    return json_response(request, message.to_json(), revision=message.revision)


def checked_id(text: str, error: Callable[[], ServiceError] = NoSuchMessage) -> str:
    """Return an id from a URL. Raise `error` if the text cannot be an id."""
    if not ID_IN_URL.fullmatch(text):
        raise error()
    return text
