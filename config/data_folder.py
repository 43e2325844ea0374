"""The data folder: private to the account that runs Parley, with the key that signs sessions."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from pathlib import Path

from django.conf import settings

OWNER_ONLY_FOLDER = 0o700
OWNER_ONLY_FILE = 0o600
SHORTEST_KEY = 32


def make_private(folder: Path, *files: Path) -> list[str]:
    """Remove the access of other accounts to the folder, its entries, and other `files`.

    Return what could not be changed. Inner folders need no change, because no other account can reach them. Files that
    this process creates from now on are private too.
    """
    os.umask(0o077)
    failed = []
    for path in (folder, *folder.iterdir(), *files):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & 0o077 and not path.is_symlink():
                path.chmod(mode & ~0o077)
        except FileNotFoundError:  # a log of the database that has just been merged
            continue
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
    return failed


def protect_data() -> list[str]:
    """Make the data folder and the database private; return what could not be changed."""
    database = settings.DATABASES["default"]
    names = [f"{database['NAME']}{suffix}" for suffix in ("", "-wal", "-shm")] if "sqlite" in database["ENGINE"] else []
    return make_private(Path(settings.DATA_DIR), *map(Path, names))


def secret_key(folder: Path) -> str:
    """Return the key in the folder; make both if they are missing.

    Ends the process with one clear line where that cannot be.
    """
    path = folder / "secret_key"
    try:
        folder.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(50))
        key = path.read_text().strip()
    except OSError as error:
        sys.exit(f"Parley cannot use its data folder {folder}: {error.strerror}. Set PARLEY_DATA to a writable one.")
    except UnicodeDecodeError:
        key = ""
    if len(key) < SHORTEST_KEY:
        sys.exit(
            f"Parley cannot start: {path} holds no usable key. Restore it from a backup, or delete it: the next start "
            "makes a new one, and everyone has to sign in again."
        )
    return key


def _write_once(path: Path, text: str) -> None:
    """Write a file atomically; a file that another process created first stays."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY_FILE)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        except OSError:  # a file system without links
            draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the names in the folder are on disk."""
    if os.name != "posix":  # other systems cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
