"""Data folders of a Parley that has been started once, because creating the tables takes most of a first start."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.server import ForkedServer


def prepare(data: Path) -> Path:
    """Start Parley in an empty folder and stop it."""
    server = ForkedServer(data)
    server.start()
    server.stop()
    with closing(sqlite3.connect(data / "parley.sqlite3")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that starts need not read the log again
    return data


def copy(prepared: Path, data: Path) -> Path:
    """Copy the folder for one server. The copies share the thousand static files."""
    shutil.copytree(prepared, data, ignore=shutil.ignore_patterns("static"))
    (data / "static").symlink_to(prepared / "static")
    return data
