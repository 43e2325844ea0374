"""Check paths, and explain why one cannot be used and what the operator can do."""

from __future__ import annotations

import errno
import os
import pwd
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.core.management.base import CommandError

from config.data_folder import OWNER_ONLY_FOLDER

_ACCESS = "Run the command as the account that runs Parley, or choose another path."
_SPACE = "Free some space, or choose a path on another disk."
_NAME = "Choose a path in a folder that exists."
_REMEDIES = {
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EROFS: "Choose a path on a disk that can be written.",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.ENOENT: _NAME,
    errno.ENOTDIR: _NAME,
    errno.EEXIST: "Choose another path.",
    errno.ENAMETOOLONG: "Choose a path with shorter names.",
}


def explained(error: OSError, path: Path, *, makes_new: bool = False) -> str:
    """Return which path cannot be used, the reason, and what to do. `path` is the path if the error names none.

    With `makes_new`, the path is a file that the command would create, and that may exist.
    """
    number = error.errno
    if number == errno.EEXIST and not makes_new:  # Python raises it if a file is in the place of a folder
        number = errno.ENOTDIR
    reason = os.strerror(number) if number else str(error)
    remedy = _REMEDIES.get(number or 0, "Check the disk, or choose another path.")
    return f"{error.filename or path}: {reason}. {remedy}"


@contextmanager
def made(path: Path) -> Iterator[None]:
    """Make a folder and its parents. At the end, remove those of them that were missing and are still empty."""
    missing = [folder for folder in (*reversed(path.parents), path) if not folder.exists()]
    try:
        for folder in missing:
            folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        yield
    finally:
        for folder in reversed(missing):
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def require_own_account(folder: Path) -> None:
    """Raise CommandError for root if another account uses a data folder, because it cannot use files of root."""
    if os.geteuid() == 0 and folder.exists() and (owner := _used_by(folder).st_uid):
        raise CommandError(
            f"{folder} belongs to the account {account(owner)}, which could not use what root writes there. Run the "
            "command as that account."
        )


def give_to_owner(folder: Path, *made: Path) -> None:
    """Give paths that root has made to the account that uses the data folder. Raise OSError."""
    if os.geteuid() == 0 and folder.exists():
        owner = _used_by(folder)
        for path in made:
            if path.exists():
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _used_by(folder: Path) -> os.stat_result:
    """Return the owner of a data folder's key. A server that runs as root can use the folder of another account."""
    key = folder / "secret_key"
    return (key if key.exists() else folder).stat()


def account(number: int) -> str:
    """Return the name of an account, or its number if it has no name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def require_writable(folder: Path) -> None:
    """Raise OSError if no file can be written to a folder. A missing folder is created for the check, then removed."""
    try:
        with made(folder), tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error
