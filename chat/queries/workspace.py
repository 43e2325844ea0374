"""The files in a session's folder, for users who may see the session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from django.utils.translation import gettext as _

from agents.sandbox import browsing
from agents.sandbox.browsing import Listing, NotThere, OpenFile
from agents.sandbox.command import WORKSPACE
from agents.sandbox.copies import ATTACHMENTS
from chat.agents_setup import sandbox
from chat.errors import ServiceError
from chat.models import ChatMessage, MessageStatus, MessageType, Session

# The tools that change one file, and report the change.
CHANGING = ("write_file", "edit_file")
MAX_CHANGES = 50


class NoSuchFile(ServiceError):
    CODE: ClassVar[str] = "no_such_file"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("File not found."))


def listing_of(session: Session, path: str) -> Listing:
    """List a folder. The session's folder is empty until a command has used it. Raise NoSuchFile."""
    workspace = sandbox(session.pk).workspace
    try:
        listing = browsing.list_folder(workspace, path)
        return listing if listing.path else _without_empty_attachments(listing, workspace)
    except NotThere:
        if not path.strip("/."):
            return Listing("", [], 0)
        raise NoSuchFile from None


def _without_empty_attachments(listing: Listing, workspace: Path) -> Listing:
    """Leave the folder for attachments out of the session's folder if it is empty. Each command makes it."""
    found = next((entry for entry in listing.entries if (entry.path, entry.kind) == (ATTACHMENTS, "folder")), None)
    if found is None or browsing.list_folder(workspace, ATTACHMENTS, 1).entries:
        return listing
    return replace(listing, entries=[entry for entry in listing.entries if entry is not found])


def open_file(session: Session, path: str) -> OpenFile:
    """Open a file, which the caller closes. Raise NoSuchFile."""
    try:
        return browsing.open_file(sandbox(session.pk).workspace, path)
    except NotThere:
        raise NoSuchFile from None


def files_below(session: Session, path: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the names and contents of all files below a folder, for an archive. Raise NoSuchFile."""
    listed = listing_of(session, path)
    above = len(listed.path) + 1 if listed.path else 0

    def contents() -> Iterator[tuple[str, Iterator[bytes]]]:
        try:
            for file in browsing.walk(sandbox(session.pk).workspace, listed.path):
                yield file.entry.path[above:], file.pieces()
        except NotThere:  # the folder is empty, or was deleted
            return

    return contents()


def has_files(session: Session) -> bool:
    """Return whether an archive of the session's files would contain any file."""
    try:
        for file in browsing.walk(sandbox(session.pk).workspace):
            file.stream.close()
            return True
    except NotThere:
        pass
    return False


def has_file(session: Session, path: str) -> bool:
    """Return whether a file that a tool has named still exists."""
    try:
        open_file(session, path.removeprefix(f"{WORKSPACE}/")).stream.close()
    except NoSuchFile:
        return False
    return True


def moment(seconds: float) -> datetime:
    """Return a file's time in UTC, or 1970 if it is out of range. Commands can set any time."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def last_changes(session: Session) -> list[ChatMessage]:
    """Return the calls that changed files in the last turn with such calls, in order."""
    calls = ChatMessage.objects.in_conversation(session.pk).filter(
        type=MessageType.TOOL_GROUP, tool_name__in=CHANGING, status=MessageStatus.COMPLETE, is_error=False
    )
    last = calls.order_by("-sequence").values_list("turn_id", flat=True).first()
    return list(calls.filter(turn_id=last).order_by("sequence")[:MAX_CHANGES]) if last else []
