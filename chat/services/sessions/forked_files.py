"""Copy the files of a session's workspace for a fork (RUN-13)."""

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

# A copy that takes longer is given up: the user waits for it.
MOST_SECONDS = 30.0
# Of copies that are larger than this, a user makes one at a time.
LARGE_MB = 20
LARGE_ENTRIES = 2_000


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of a session that is being forked; a `reason` if they are not to be copied."""

    source: Path
    megabytes: int = 0
    is_large: bool = False
    reason: Reason | None = None


def find_files(session: Session, author: User) -> FoundFiles | None:
    """Measure the files that a fork by this user gets; None if there are none.

    The user gets what the session's Files tab shows them: staff who read a session in the admin do not see its files.
    """
    source, limits = sandbox(session.pk).workspace, sandbox(session.pk).limits
    if not has_content(source):
        return None
    try:
        session_for(author, session.pk)
    except NoSuchSession:
        return FoundFiles(source, reason="access")
    most_bytes, most_entries = limits.workspace_mb * MB, limits.workspace_files
    usage = folder_usage(source, most_bytes=most_bytes, most_entries=most_entries, skips_unreadable=True)
    if usage.size > most_bytes or usage.entries > most_entries:
        return FoundFiles(source, reason="size")
    is_large = usage.size > LARGE_MB * MB or usage.entries > LARGE_ENTRIES
    return FoundFiles(source, megabytes=-(-usage.size // MB), is_large=is_large)


def copy_files(found: FoundFiles, fork: Session) -> Json | None:
    """Copy files to the workspace of a fork that no one can open yet; return what `mark` keeps of it. Blocks.

    All of them are copied or none, except for those that cannot be read or are no files, and none beyond the limit of
    the fork's owner.
    """
    at, copied, reason = timezone.now(), Copied(), found.reason
    if reason is None:
        workspace = sandbox(fork.pk)
        try:
            spend("fork_megabytes", fork.owner_id, cost=found.megabytes)
            copied = duplicate(found.source, workspace.workspace, limits=workspace.limits, seconds=MOST_SECONDS)
        except RateLimited:
            reason = "limit"
        except TooLarge:
            reason = "size"
        except DiskFull:
            reason = "disk"
        except OSError:
            logger.exception("The workspace %s could not be copied", found.source)
            reason = "failed"
    if reason is None and not copied.entries and not copied.left_out:
        return None
    return {"at": at.isoformat(), "left_out": copied.left_out, "reason": reason}


def remove_files(fork: Session) -> None:
    """Remove what was copied for a fork that has failed."""
    remove_folder(sandbox(fork.pk).workspace)


def mark(fork: Session, kept: Json | None) -> None:
    """Keep in a fork what became of the files, in the transaction that completes it."""
    if kept is not None:
        fork.config = {**fork.config_values, FORKED_FILES: kept}
        Session.objects.filter(pk=fork.pk).update(config=fork.config)
