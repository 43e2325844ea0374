"""Files with personal data that commands write for an operator, who alone may read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def create(path: Path) -> IO[bytes]:
    """Open a new file for writing that only its owner may read. Raises OSError, also if it exists."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
