"""What a fork has of the files in its original's workspace, as text for users and for the model (RUN-13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.toolbox import SANDBOX_TOOLS
from chat.models import FORKED_FILES, Session

# Why files were not copied: too many or too large, no disk space, the rate limit of the user, an error, or files that
# the user who forked cannot see.
Reason = Literal["size", "disk", "limit", "failed", "access"]
NOT_COPIED = gettext_lazy("The original’s files weren’t copied.")
PROBLEMS: Mapping[Reason, str | Promise] = {
    "size": gettext_lazy("The original’s files weren’t copied because there are too many, or they’re too large."),
    "disk": gettext_lazy("The original’s files weren’t copied because the server is almost out of disk space."),
    "limit": gettext_lazy("The original’s files weren’t copied because recent forks have copied too much."),
    "failed": NOT_COPIED,
    "access": NOT_COPIED,
}
FILE_TOOLS = frozenset(tool.name for tool in SANDBOX_TOOLS)
COPIED_FOR_MODEL = (
    "This conversation is a fork of another one. Its workspace was copied on {at:%Y-%m-%d} at {at:%H:%M} UTC, so files "
    "may be newer than what the conversation says about them."
)
NOT_COPIED_FOR_MODEL = (
    "This conversation is a fork of another one, whose workspace was not copied. Files that it mentions may be missing."
)


@dataclass(frozen=True, slots=True)
class ForkedFiles:
    """The state of a fork's files when it was made. `reason` is set if they were not copied.

    `left_out` is the number of single files that could not be copied.
    """

    at: datetime
    left_out: int = 0
    reason: Reason | None = None

    @property
    def problem(self) -> str:
        """The reason why there are no files, as a sentence for users, or "" if the files were copied."""
        return str(PROBLEMS[self.reason]) if self.reason else ""


def forked_files(session: Session) -> ForkedFiles | None:
    """Return the state of a fork's files, or None if the session is not a fork or the original had no files."""
    match session.config_values.get(FORKED_FILES):
        case {"at": str(at), "left_out": int(left_out), "reason": None | str() as reason}:
            try:
                return ForkedFiles(datetime.fromisoformat(at), left_out, _known_reason(reason))
            except ValueError:
                return None
    return None


def _known_reason(reason: str | None) -> Reason | None:
    return next((each for each in get_args(Reason) if each == reason), "failed") if reason else None


def notice(session: Session) -> str:
    """Return a sentence for the user who has just forked, or "" if there were no files."""
    found = forked_files(session)
    if found is None:
        return ""
    copied = _("The original’s files were copied as they are now and may be newer than the messages.")
    return found.problem or copied


def with_forked_files(prompt: str, session: Session, tools: Collection[str]) -> str:
    """Return a system prompt with a note about the fork's files, if the agent has tools for files."""
    found = forked_files(session)
    if found is None or FILE_TOOLS.isdisjoint(tools):
        return prompt
    note = NOT_COPIED_FOR_MODEL if found.reason else COPIED_FOR_MODEL.format(at=found.at.astimezone(UTC))
    return "\n\n".join(part for part in (prompt, note) if part)
