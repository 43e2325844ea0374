"""Why a service refuses: a stable code for programs, words for a person.

ServiceError                  somebody asked for what cannot be; the message says what, and what to do instead
├── NoSuchSession            there is none, or it is none of theirs (nobody learns which)
├── NoSuchMessage            likewise, in a session that they may see
├── NoSuchWorkspace          there is none, or they are not a member of it (nobody learns which)
├── Forbidden                their role does not cover it
│   └── NotForGuests               they are a guest of the workspace
├── Busy                     not while the agent works
└── Invalid                  what was given cannot be taken as it is
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _


def unavailable() -> str:
    """Explain to a person that the database does not answer."""
    return _("The database is busy or not available right now. Try again in a moment.")


class ServiceError(Exception):  # an answer to a person, not a failure of ours
    """Root. `str(error)` is the message; `details` are what a program may make use of beside the code."""

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


class NoSuchWorkspace(ServiceError):
    CODE: ClassVar[str] = "no_such_workspace"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("Workspace not found, or you are no longer a member."))


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
    CODE: ClassVar[str] = "invalid"

    def __init__(self, message: str) -> None:
        super().__init__(self.CODE, message)
