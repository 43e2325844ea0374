"""The data folder, private to the account that runs Parley. It has the keys that Parley makes at its first start."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from config.environment import SQLITE

OWNER_ONLY_FOLDER = 0o700
OWNER_ONLY_FILE = 0o600
MIN_KEY_LENGTH = 32
# What Parley makes in the data folder, also while it writes, restores or goes back to an older version.
OWN_ENTRY = re.compile(
    r"parley[\w-]*\.sqlite3(-\w+)?|(secret|vapid)_key(\.\d+\.new)?|server\.json"
    r"|files|backups|static|workspaces|\.restore-.*"
)
# Commands that use no keys, commands that run beside other processes and so need a given key, and commands on existing
# data. The last make no keys, because those that servers use exist. With other settings than the servers', a new key
# would be in the wrong folder, and a backup would contain it. Only the command that accepts a new key may make it.
KEYLESS = frozenset({"restore", "verify"})
OF_A_TEAM = frozenset({"runagents"})
ACCEPTS_KEY = "acceptkey"
NEED_DATA = frozenset(
    {
        ACCEPTS_KEY,
        "backup",
        "changepassword",
        "createsuperuser",
        "endlogins",
        "erase",
        "exportperson",
        "exportsessions",
        "importsessions",
        "prune",
        "purge",
        "resettwostep",
        "signinlink",
    }
)


def make_private(folder: Path, *files: Path) -> list[str]:
    """Remove the access of other accounts to the folder, to Parley's entries in it, and to other `files`.

    Return a message for each path that could not be changed. Inner folders are not changed, because no other account
    can reach them. From now on, all files that this process creates are private, too.

    A folder with entries of other programs that other accounts use, such as /srv, is not changed itself.
    """
    os.umask(0o077)
    entries = list(folder.iterdir())
    own = [path for path in entries if OWN_ENTRY.fullmatch(path.name)]
    foreign = next((path for path in sorted(set(entries) - set(own)) if _is_open(path)), None)
    failed = []
    if foreign is None:
        own.insert(0, folder)
    elif _is_open(folder):
        failed.append(
            f"{folder}: {foreign.name} is not Parley's, and other accounts can use it. Set PARLEY_DATA to a folder of "
            "its own. If you have put it there, remove their access to it"
        )
    for path in (*own, *files):
        try:
            if _is_open(path):
                path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~0o077)
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
    return failed


def _is_open(path: Path) -> bool:
    """Return whether other accounts have access to a file or folder. A link has no access of its own."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a log of the database, which has just been merged into it
        return False
    return bool(mode & 0o077) and not stat.S_ISLNK(mode)


def protect_data() -> list[str]:
    """Make the data folder and the database private. Return a message for each path that could not be changed."""
    database = settings.DATABASES["default"]
    names = [f"{database['NAME']}{suffix}" for suffix in ("", "-wal", "-shm")] if "sqlite" in database["ENGINE"] else []
    return make_private(Path(settings.DATA_DIR), *map(Path, names))


def may_make_keys(database: Mapping[str, Any], command: str, runner: str) -> bool:
    """Return whether this process may write new keys. `command` is that of `manage.py`, or any other argument.

    A process of a team starts only with a given key. A key that it wrote could later be mistaken for the team's.
    """
    if runner == "none" or command in OF_A_TEAM or command in KEYLESS:
        return False
    if command == ACCEPTS_KEY:
        return database["ENGINE"] != SQLITE or os.path.exists(database["NAME"])  # `Path.exists` may raise
    return command not in NEED_DATA


def secret_key(folder: Path, *, may_make: bool = True) -> str:
    """Return the key that signs sessions, from a file in the folder. Make the folder and the file if necessary.

    If that is impossible, the process ends with a message of one line. Without `may_make`, a new key is not written.
    """
    return _key(folder, "secret_key", secrets.token_urlsafe(50), "all users must sign in again", may_make=may_make)


def vapid_key(folder: Path, *, may_make: bool = True) -> str:
    """Return the key that signs push messages, from a file in the folder, as `secret_key` does.

    A private key of P-256 is 32 bytes that are below its order, which begins with 32 one bits. The made key begins with
    six zero bits, so it is always valid.
    """
    made = f"A{secrets.token_urlsafe(32)[1:]}"
    return _key(folder, "vapid_key", made, "all users must turn on notifications again", may_make=may_make)


def _key(folder: Path, name: str, made: str, cost: str, *, may_make: bool) -> str:
    """Return the text of a file. If it does not exist, write `made`. `cost` is the consequence of a new key."""
    path = folder / name
    try:
        if not path.exists():
            if not may_make:
                return made
            folder.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
            _write_once(path, made)
        key = path.read_text().strip()
    except OSError as error:
        place = path if os.path.exists(path) else folder  # `Path.exists` may raise
        sys.exit(
            f"Parley cannot use {place}: {error.strerror}. Set PARLEY_DATA to a writable folder, or run Parley as the "
            "account that owns this one and its files."
        )
    except UnicodeDecodeError:
        key = ""
    if len(key) < MIN_KEY_LENGTH:
        sys.exit(
            f"Parley cannot start: {path} has no usable key. Restore it from a backup, or delete it: the next start "
            f"makes a new one, and {cost}."
        )
    return key


def _write_once(path: Path, text: str) -> None:
    """Write a file atomically. If another process has created it first, keep that file."""
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
        except OSError:  # the file system has no hard links
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
