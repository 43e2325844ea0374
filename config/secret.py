"""The signing key of an installation that was given none: made once, kept beside its data."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path


def secret_key(data_dir: Path) -> str:
    """Return the key in `data_dir`, making both when they are missing; ends with one clear line if it cannot."""
    path = data_dir / "secret_key"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_text().strip()
        key = secrets.token_urlsafe(50)
        with os.fdopen(handle, "w") as file:
            file.write(key)
        return key
    except OSError as error:
        sys.exit(f"Parley cannot use its data folder {data_dir}: {error.strerror}. Set PARLEY_DATA to a writable one.")
