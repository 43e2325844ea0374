"""The address of a test's database for other processes, and empty databases on PostgreSQL."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit

import psycopg
from django.db import connection
from psycopg.sql import SQL, Identifier


def address() -> str:
    """Return the DATABASE_URL for a process that must see the rows of this test."""
    name = connection.settings_dict["NAME"]
    return f"sqlite:///{Path(name).absolute()}" if connection.vendor == "sqlite" else _address_of(name)


@contextmanager
def empty_database(options: LiteralString = "") -> Iterator[str]:
    """Create an empty database on the tests' PostgreSQL server, yield its address, and drop it.

    `options` follow the name in CREATE DATABASE.
    """
    name = f"empty_{secrets.token_hex(4)}"
    with maintenance() as server:
        server.execute(SQL("CREATE DATABASE {} " + options).format(Identifier(name)))
    yield _address_of(name)
    with maintenance() as server:
        server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def maintenance() -> Iterator[psycopg.Connection]:
    """Yield a connection to the tests' PostgreSQL server, outside Django and the tests' databases."""
    with psycopg.connect(_address_of("postgres"), autocommit=True) as server:
        yield server


def _address_of(name: str) -> str:
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
