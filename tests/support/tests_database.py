"""The tests' database. The first process of a run creates it, and the others copy it: migrations take four seconds."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asgiref.sync import SyncToAsync
from django.db import connection, connections


@contextmanager
def tests_database(worker: str | None, folder: Path) -> Iterator[None]:
    """Use a database with all tables and no rows. `folder` is shared by the processes of this run."""
    creation, name = connection.creation, connection.settings_dict["NAME"]
    with (folder / "database.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = folder / "database.made"
        if is_made.exists():
            connection.settings_dict["NAME"] = creation._get_test_db_name()  # type: ignore[attr-defined]  # left out of the stubs
        else:
            forget_log(creation._get_test_db_name())  # type: ignore[attr-defined]  # likewise
            creation.create_test_db(verbosity=0, autoclobber=True)
            connection.close()
            is_made.touch()
        if worker is not None:
            copied = creation.get_test_db_clone_settings(worker)
            forget_log(copied["NAME"])
            creation.clone_test_db(worker, verbosity=0, autoclobber=True)
            # As `setup_worker_connection` does, which for SQLite depends on how processes are started.
            connection.settings_dict |= copied
            connection.close()
    yield
    # The thread in which `sync_to_async` runs a test's own queries keeps its connection from test to test.
    # PostgreSQL does not delete a database with another connection.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
    creation.destroy_test_db(name, verbosity=0)


def forget_log(name: str) -> None:
    """Delete the log of a killed run beside a SQLite database, because SQLite would apply it to the new file."""
    if connection.vendor == "sqlite":
        for suffix in ("-wal", "-shm"):
            Path(f"{name}{suffix}").unlink(missing_ok=True)
