"""The data folder: private to the account that runs Parley, with the keys that Parley makes at its first start."""

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
    """Return the key in the folder that signs sessions; make both if they are missing.

    Ends the process with one clear line where that cannot be.
    """
    return _key(folder, "secret_key", secrets.token_urlsafe(50), "everyone has to sign in again")


def vapid_key(folder: Path) -> str:
    """Return the key in the folder that signs push messages, as `secret_key` does.

    32 bytes are a private key of P-256 unless they are above its order, which begins with 32 ones. These begin with six
    zeros.
    """
    made = f"A{secrets.token_urlsafe(32)[1:]}"
    return _key(folder, "vapid_key", made, "everyone has to turn on their notifications again")


def _key(folder: Path, name: str, made: str, cost: str) -> str:
    """Return the text of a file, which is `made` if there is none. `cost`: what a new one costs."""
    path = folder / name
    try:
        folder.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        if not path.exists():
            _write_once(path, made)
        key = path.read_text().strip()
    except OSError as error:
        sys.exit(f"Parley cannot use its data folder {folder}: {error.strerror}. Set PARLEY_DATA to a writable one.")
    except UnicodeDecodeError:
        key = ""
    if len(key) < SHORTEST_KEY:
        sys.exit(
            f"Parley cannot start: {path} holds no usable key. Restore it from a backup, or delete it: the next start "
            f"makes a new one, and {cost}."
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
