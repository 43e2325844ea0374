"""Databases with which a start is refused: the message contains the reason and what to do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from chat.management.reaching import has_locks
from tests.commands.process import manage_forked
from tests.support.database import empty_database, maintenance

pytestmark = [pytest.mark.postgres, pytest.mark.server]
# As managed servers do, which check the name of an extension before they look whether it exists.
REFUSE_EXTENSIONS = """
CREATE EXTENSION pg_trgm;
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''not allowed''; END';
CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def limited() -> Iterator[tuple[str, str]]:
    """An empty database: its address for an administrator, and for a role that may only create tables in it."""
    name = Identifier(role := f"limited_{secrets.token_hex(4)}")
    with maintenance() as server:
        server.execute(SQL("CREATE ROLE {} LOGIN").format(name))
    with empty_database() as address:
        with psycopg.connect(address) as administrator:
            administrator.execute(SQL("GRANT ALL ON SCHEMA public TO {}").format(name))
        yield address, urlsplit(address)._replace(netloc=f"{role}@").geturl()
    with maintenance() as server:
        server.execute(SQL("DROP ROLE {}").format(name))


def test_role_without_the_right_to_create_extensions_gets_the_hint(tmp_path: Path, limited: tuple[str, str]) -> None:
    """The server runs and accepts connections, so the message does not advise to check that."""
    ended = manage_forked("serve", data=tmp_path, DATABASE_URL=limited[1])
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        'Parley cannot use its database: permission denied to create extension "pg_trgm". '
        "Must have CREATE privilege on current database to create this extension."
    )


def test_extension_that_an_administrator_has_created_is_used(tmp_path: Path, limited: tuple[str, str]) -> None:
    with psycopg.connect(limited[0]) as administrator:
        administrator.execute(REFUSE_EXTENSIONS)
    ended = manage_forked("migrate", "chat", "0004", data=tmp_path, DATABASE_URL=limited[1])
    assert (ended.returncode, ended.stderr) == (0, "")


def test_database_with_another_encoding_is_refused(tmp_path: Path) -> None:
    """Otherwise, the first text with other letters than ASCII would fail."""
    with empty_database("ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0") as address:
        ended = manage_forked("serve", data=tmp_path, DATABASE_URL=address)
    assert ended.returncode == 1
    assert "the database has the encoding SQL_ASCII, but Parley needs UTF8. Create a database with" in ended.stderr
    assert "ENCODING 'UTF8' TEMPLATE template0" in ended.stderr


def test_locks_work_only_if_each_connection_keeps_its_own() -> None:
    """A pooler in transaction mode lets two clients use one connection in turn, or one client several."""
    with maintenance() as one, maintenance() as another, maintenance() as third:
        turns = iter([one, another])
        assert has_locks(one.execute, another.execute)
        assert not has_locks(one.execute, one.execute)
        assert not has_locks(lambda sql: next(turns).execute(sql), third.execute)
