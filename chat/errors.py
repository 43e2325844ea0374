"""Errors that services raise, each with a stable code for programs and a message for users.

ServiceError                 the request cannot be carried out; the message gives the reason and what to do
├── NoSuchSession            it does not exist or the user may not see it (the error does not tell which)
├── NoSuchMessage            the same, in a session that the user may see
├── NoSuchSchedule           the same, in a session that the user may see
├── NoSuchWorkspace          it does not exist or the user is not a member (the error does not tell which)
├── NoSuchAgentHere          it does not exist in the workspace, or the user may not see it
├── Forbidden                the user's role does not allow it
│   └── NotForGuests         the user is a guest of the workspace
├── Busy                     not possible while the agent is running
├── FilesUnavailable         the storage of uploaded files does not respond
│   └── FilesRefused         the storage refuses the request
└── Invalid                  the input is not valid
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _


def unavailable() -> str:
    """Return the message for users when the database does not respond."""
    return _("The database is busy or not available right now. Try again in a moment.")


def unreadable() -> str:
    """Return the message for users when a stored value cannot be read (`chat.db.is_unreadable`)."""
    return _("The database contains a value that can’t be read. On the server, “manage.py verify” names the value.")


class ServiceError(Exception):  # a response for the user, not a failure of the program
    """The base class. `str(error)` is the message; `details` has further values for programs."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class NoSuchSession(ServiceError):
    CODE: ClassVar[str] = "no_such_session"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Session not found."))


class NoSuchMessage(ServiceError):
    CODE: ClassVar[str] = "no_such_message"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Message not found in this session."))


class NoSuchSchedule(ServiceError):
    CODE: ClassVar[str] = "no_such_schedule"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Schedule not found in this session. It may have been deleted."))


class NoSuchWorkspace(ServiceError):
    CODE: ClassVar[str] = "no_such_workspace"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Workspace not found, or you are no longer a member."))


class NoSuchAgentHere(ServiceError):
    CODE: ClassVar[str] = "agent_not_found"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Agent not found. It may no longer be available."))


class Forbidden(ServiceError):
    CODE: ClassVar[str] = "forbidden"

    def __init__(self, message: str = "") -> None:
        super().__init__(self.CODE, message or _("Your role in this session doesn’t allow that."))


class NotForGuests(Forbidden):
    def __init__(self) -> None:
        super().__init__(_("Guests can’t do that. Ask an owner or admin of the workspace to make you a member."))


class Busy(ServiceError):
    CODE: ClassVar[str] = "busy"

    def __init__(self, message: str = "") -> None:
        super().__init__(self.CODE, message or _("The agent is working. Stop it, or wait until it finishes."))


class Invalid(ServiceError):
    """A value is not valid. `field` is the name of the form's field that has it, or "" if the form shows none."""

    CODE: ClassVar[str] = "invalid"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(self.CODE, message)
        self.field = field


class FilesUnavailable(ServiceError, OSError):
    """The storage of uploaded files does not respond, or refuses. It is an OSError, like an error of a disk."""

    CODE: ClassVar[str] = "unavailable"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Files are not available right now. Try again in a moment."))


class FilesRefused(FilesUnavailable):
    """The storage responds and refuses, because a setting is wrong. `reason` is for operators."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
