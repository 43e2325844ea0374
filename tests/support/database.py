"""The database of a test, for processes that share it; and empty ones on PostgreSQL."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from django.db import connection
from psycopg.sql import SQL, Identifier


def address() -> str:
    """What DATABASE_URL is to a process that shall see the rows of this test."""
    name = connection.settings_dict["NAME"]
    return f"sqlite:///{name}" if connection.vendor == "sqlite" else _address_of(name)


@contextmanager
def empty_database() -> Iterator[str]:
    """A database on the tests' PostgreSQL in which there is nothing; yields its address."""
    name = f"empty_{secrets.token_hex(4)}"
    with maintenance() as server:
        server.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    yield _address_of(name)
    with maintenance() as server:
        server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def maintenance() -> Iterator[psycopg.Connection]:
    """A connection to the tests' PostgreSQL beside Django's, to none of the tests' databases."""
    with psycopg.connect(_address_of("postgres"), autocommit=True) as server:
        yield server


def _address_of(name: str) -> str:
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
