"""Files with personal data that commands write, and that only the operator may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def create(path: Path) -> IO[bytes]:
    """Open a new file for writing that only its owner may read. Raise OSError, also if the file exists."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
