"""Make, open and remove folders of a sandbox without following links, which commands can put anywhere."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

from agents.sandbox.command import UNPRIVILEGED_ID

logger = logging.getLogger(__name__)

OWNER_ONLY = 0o700
# How folders are opened, and files in them read and made. A pipe that is opened for reading does not block.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folder(folder: Path) -> None:
    """Make the folder if it is missing, private to the account that runs the commands. Blocks; raises OSError."""
    if folder.is_dir():
        return
    folder.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
    give_away(folder)


def give_away(path: str | Path, inside: int | None = None) -> None:
    """Make a file or folder belong to the account that runs the commands. `inside` is an open folder."""
    if os.geteuid() == 0:
        os.chown(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID, dir_fd=inside, follow_symlinks=False)


def remove_folder(folder: Path) -> None:
    """Remove the folder with everything in it, if it exists. Blocks. What cannot be removed is logged.

    `rm` follows no links and knows no limit of depth, which `shutil.rmtree` does before Python 3.13.
    """
    if not folder.is_dir():
        return
    for command in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwX", "--"], ["rm", "-rf", "--"]):
        subprocess.run([*command, str(folder)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603  # our own path
        if not folder.exists():
            return
    logger.warning("The workspace %s could not be removed", folder)
