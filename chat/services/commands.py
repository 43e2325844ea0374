"""What a command does: the gate, then the service. Sockets and other faces all come through here."""

from __future__ import annotations

from typing import Any, assert_never

from chat.commands import (
    CancelRun,
    EditQueued,
    Rename,
    Request,
    Retry,
    SendMessage,
    SetModel,
    SetSystemPrompt,
    Withdraw,
)
from chat.models import Role, User
from chat.services import messages, runs, sessions
from chat.services.access import session_for

Json = dict[str, Any]


def execute(user: User, session_id: str, command: Request) -> Json:
    """Carry out a command for somebody; returns what its `ack` says. Raises Refused."""
    session, _role = session_for(user, session_id, Role.EDITOR)
    match command:
        case SendMessage():
            sent = messages.send_message(session=session, author=user, text=command.text, key=command.key)
            return {"id": sent.id, "queued": sent.queued, "repeated": sent.repeated}
        case EditQueued():
            messages.edit_queued(session=session, author=user, message_id=command.id, text=command.text)
        case Withdraw():
            messages.withdraw(session=session, author=user, message_id=command.id)
        case CancelRun():
            return {"stopping": runs.cancel(session=session, author=user)}
        case Retry():
            runs.retry(session=session, author=user, message_id=command.id)
        case SetModel():
            sessions.set_model(session=session, author=user, provider=command.provider, model=command.model)
        case Rename():
            sessions.rename(session=session, author=user, title=command.title)
        case SetSystemPrompt():
            sessions.set_system_prompt(session=session, author=user, system_prompt=command.system_prompt)
        case _:
            assert_never(command)
    return {}
