"""Make, open and remove folders of a sandbox without following links, which commands can put anywhere."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
from pathlib import Path

from agents.sandbox.command import UNPRIVILEGED_ID

logger = logging.getLogger(__name__)

OWNER_ONLY = 0o700
# The flags for opening folders, for reading files and for making files. Opening a pipe for reading does not block.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folder(folder: Path) -> None:
    """Make the folder if it does not exist, private to the account that runs commands. Blocks. Raise OSError.

    If a command has taken its owner's permissions for an existing folder, restore them, because no command could.
    """
    if folder.is_dir():
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & OWNER_ONLY != OWNER_ONLY:
            folder.chmod(mode | OWNER_ONLY)  # not a link, because only Parley can write to the folder above
        return
    folder.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
    give_away(folder)


def give_away(path: str | Path, inside: int | None = None) -> None:
    """Change the owner of a file or folder to the account that runs commands. `inside` is the open folder with it."""
    if os.geteuid() == 0:
        os.chown(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID, dir_fd=inside, follow_symlinks=False)


def remove_folder(folder: Path) -> None:
    """Remove the folder with everything in it, if it exists. Blocks. A failure is logged.

    This uses `rm`, which follows no links and has no limit of depth. `shutil.rmtree` has one before Python 3.13.
    """
    if not folder.is_dir():
        return
    for command in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwX", "--"], ["rm", "-rf", "--"]):
        subprocess.run([*command, str(folder)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603  # our own path
        if not folder.exists():
            return
    logger.warning("Could not delete the workspace %s", folder)
