"""Dump and restore the database, through SQLite's backup API or PostgreSQL's pg_dump and pg_restore."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection

from chat.management import paths
from chat.management.backup.archive import BackupError
from config.data_folder import OWNER_ONLY_FILE, sync_folder

SQLITE, POSTGRESQL = "database.sqlite3", "database.dump"
# The connection's settings that are passed to libpq's programs by a connection string.
LIBPQ = ("host", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs")

# The line of pg_restore's scripts that servers before this version refuse, and the number of lines within which it is.
TRANSACTION_TIMEOUT, FIRST_WITH_TRANSACTION_TIMEOUT = b"SET transaction_timeout = 0;\n", 17
HEADER_LINES = 100


def entry() -> str:
    """Return the name of the dump in an archive, for this kind of database."""
    return SQLITE if connection.vendor == "sqlite" else POSTGRESQL


def dump(path: Path) -> None:
    """Write a consistent copy of the database to a new file, while servers may run. Raise BackupError."""
    path.touch(OWNER_ONLY_FILE, exist_ok=False)
    if connection.vendor == "postgresql":
        _require_current("pg_dump")
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={path}", _address())
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")


def is_empty() -> bool:
    """Return whether the database has no tables. A damaged file of SQLite is not empty. Raise BackupError."""
    if connection.vendor != "sqlite":
        return not connection.introspection.table_names()
    name = Path(connection.settings_dict["NAME"])
    if not name.exists():
        return True
    try:
        # Its own connection, because Django's may keep its lock after an error.
        with closing(sqlite3.connect(name)) as alone:
            return not alone.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        raise BackupError(f"{name}: {error}. Check that Parley's account may write to it and to its folder.") from error
    except sqlite3.DatabaseError:
        return False


def require_writable() -> None:
    """Raise BackupError or OSError if a file of SQLite cannot be written to its place."""
    if connection.vendor == "sqlite":
        name = Path(connection.settings_dict["NAME"])
        if name.exists() and not name.is_file():
            raise BackupError(f"{name} is not a file. Move it away, or change DATABASE_URL.")
        paths.require_writable(name.parent)


def require_unused() -> None:
    """Raise BackupError if other processes use the database."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
                # Connections that a pooler keeps open. Parley's own have a name.
                " AND NOT (state = 'idle' AND application_name = '')"
            )
            (others,) = cursor.fetchone()
        if others:
            raise BackupError(f"The database has {others} other connections. Stop all servers and workers first.")
    elif not is_empty():
        name = connection.settings_dict["NAME"]
        connection.close()
        with closing(sqlite3.connect(name, timeout=0)) as alone:
            try:
                alone.execute("PRAGMA locking_mode=EXCLUSIVE")
                alone.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise BackupError(f"A server is using the database ({error}). Stop it first.") from error
            except sqlite3.DatabaseError:  # a damaged file, with which no server can work
                pass


def restore(dump: Path, aside: Path) -> None:
    """Replace the database by a dump. Move its current contents to the folder `aside`. Raise BackupError."""
    if connection.vendor == "sqlite":
        _restore_sqlite(dump, aside)
    else:
        _restore_postgresql(dump, aside)


def _restore_sqlite(dump: Path, aside: Path) -> None:
    name = Path(connection.settings_dict["NAME"])
    connection.close()
    for suffix in ("", "-wal", "-shm"):
        present = name.with_name(name.name + suffix)
        if present.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            shutil.move(present, aside / present.name)  # the folder may be on another file system
    shutil.move(dump, name)
    sync_folder(name.parent)


def _restore_postgresql(source: Path, aside: Path) -> None:
    for program in ("pg_dump", "pg_restore", "psql"):  # before anything changes
        _require_current(program)
    script = _script_of(source)
    if not is_empty():
        aside.mkdir(mode=0o700, exist_ok=True)
        dump(aside / POSTGRESQL)
        _drop_everything()
    connection.close()
    options = ("--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
    try:
        _run("psql", *options, f"--file={script}", f"--dbname={_address()}")
    except BackupError as error:
        kept = f" The previous data is in {aside / POSTGRESQL}." if aside.exists() else ""
        raise BackupError(f"{error} The database is empty now.{kept}") from error
    script.unlink()


def _script_of(source: Path) -> Path:
    """Write the statements of a dump to a file beside it, without a setting that the server may not know.

    pg_restore has no option for the version that it writes for. Since version 17, it sets `transaction_timeout`.
    """
    script = source.with_name(f"{source.name}.sql")
    script.touch(OWNER_ONLY_FILE, exist_ok=False)
    _run("pg_restore", "--no-owner", "--no-privileges", "--no-comments", f"--file={script}", str(source))
    if _server_version() < FIRST_WITH_TRANSACTION_TIMEOUT:
        with script.open("r+b") as file:
            for _ in range(HEADER_LINES):
                place = file.tell()
                if file.readline() == TRANSACTION_TIMEOUT:
                    file.seek(place)
                    file.write(b"-- ")  # in the place of SET, so that the rest need not be copied
                    break
    return script


def _drop_everything() -> None:
    """Drop the tables and functions of the schema, except those of extensions."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)} CASCADE")
        cursor.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
            " AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')"
        )
        for (function,) in cursor.fetchall():
            cursor.execute(f"DROP FUNCTION {function} CASCADE")


def _address() -> str:
    """Return the connection string of the database, without the password."""
    from psycopg.conninfo import make_conninfo

    parameters = connection.get_connection_params()
    return make_conninfo("", **{name: parameters[name] for name in LIBPQ if name in parameters})


def _require_current(program: str) -> None:
    """Raise BackupError if a program is missing, or is older than the server, whose rows it may not understand."""
    text = _run(program, "--version")
    found, server = re.search(r"\) (\d+)", text), _server_version()
    if found is not None and int(found[1]) < server:
        raise BackupError(
            f"{program} is of version {found[1]}, but the server is of version {server}. Install PostgreSQL's client "
            f"programs of version {server} or newer."
        )


def _server_version() -> int:
    """Return the major version of the PostgreSQL server."""
    postgres: Any = connection  # the stubs lack the version
    major: int = postgres.get_database_version()[0]
    return major


def _run(program: str, *arguments: str) -> str:
    """Run a program of PostgreSQL, and return what it prints. Raise BackupError."""
    found = shutil.which(program)
    if found is None:
        raise BackupError(f"{program} is not installed. It comes with PostgreSQL's client programs.")
    password = connection.settings_dict.get("PASSWORD")
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    ended = subprocess.run(  # noqa: S603  # the program named above
        [found, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BackupError(f"{program} failed: {ended.stderr.strip()[-2000:]}")
    return ended.stdout
