"""Copy the files in a session's folder for a fork (RUN-13)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from agents.messages import Json
from agents.sandbox.command import MB
from agents.sandbox.duplicating import Copied, DiskFull, TooLarge, duplicate, has_content
from agents.sandbox.folder import remove_folder
from agents.sandbox.usage import folder_usage
from chat.access import session_for
from chat.agents_setup import sandbox
from chat.errors import NoSuchSession
from chat.limits.rates import RateLimited, spend
from chat.models import FORKED_FILES, Session, User
from chat.queries.forked_files import Reason

logger = logging.getLogger(__name__)

# Seconds after which a copy is cancelled, because the user waits for it.
MAX_SECONDS = 30.0
# A user makes one copy at a time if it is larger than this.
LARGE_MB = 20
LARGE_ENTRIES = 2_000


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of a session that is being forked. `reason` is set if they cannot be copied."""

    source: Path
    megabytes: int = 0
    is_large: bool = False
    reason: Reason | None = None


def find_files(session: Session, author: User) -> FoundFiles | None:
    """Return the folder and the size of the files that a fork by this user gets, or None if there are none.

    Users get what the session's Files tab shows them. Staff who read a session in the admin do not see its files.
    """
    source, limits = sandbox(session.pk).workspace, sandbox(session.pk).limits
    if not has_content(source):
        return None
    try:
        session_for(author, session.pk)
    except NoSuchSession:
        return FoundFiles(source, reason="access")
    most_bytes, most_entries = limits.workspace_mb * MB, limits.workspace_files
    usage = folder_usage(source, most_bytes=most_bytes, most_entries=most_entries, of_copy=True)
    if usage.size > most_bytes or usage.entries > most_entries:
        return FoundFiles(source, reason="size")
    is_large = usage.size > LARGE_MB * MB or usage.entries > LARGE_ENTRIES
    return FoundFiles(source, megabytes=-(-usage.size // MB), is_large=is_large)


def copy_files(found: FoundFiles, fork: Session) -> Json | None:
    """Copy files to the workspace of a fork that no one can open yet. Return the result for `mark`. Blocks.

    Either all files are copied or none, except that unreadable and special files are left out. None are copied beyond
    the limits of the fork's owner. Return None if there is nothing to copy.
    """
    at, copied, reason = timezone.now(), Copied(), found.reason
    if reason is None:
        workspace = sandbox(fork.pk)
        try:
            spend("fork_megabytes", fork.owner_id, cost=found.megabytes)
            copied = duplicate(found.source, workspace.workspace, limits=workspace.limits, seconds=MAX_SECONDS)
        except RateLimited:
            reason = "limit"
        except TooLarge:
            reason = "size"
        except DiskFull:
            reason = "disk"
        except OSError:
            logger.exception("Could not copy the workspace %s", found.source)
            reason = "failed"
    if reason is None and not copied.entries and not copied.left_out:
        return None
    return {"at": at.isoformat(), "left_out": copied.left_out, "reason": reason}


def remove_files(fork: Session) -> None:
    """Delete the files that were copied for a fork that has failed."""
    remove_folder(sandbox(fork.pk).workspace)


def mark(fork: Session, kept: Json | None) -> None:
    """Store the result of `copy_files` in a fork, in the transaction that completes it."""
    if kept is not None:
        fork.config = {**fork.config_values, FORKED_FILES: kept}
        Session.objects.filter(pk=fork.pk).update(config=fork.config)
