"""Run a QuerySet that is composed once, with other values each time.

Django builds and compiles a query again at each use, which takes several times as long as running it. It has no way to
keep the result: what is used here are its compilers and row iterables.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import QuerySet

# Off: each query is built as by Django alone.
COMPOSE_ONCE = True

Row = TypeVar("Row")
Value = int | str
# Stand for the values while the query is composed. The numbers are those of any column: for others, Django knows the
# result without a query.
_FIRST_NUMBER = 2_000_000_000
_TEXT = "\x01value %d"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Composed(Generic[Row]):
    """A query with places for values.

    `build` returns the QuerySet for values, which are numbers and texts. Each must be a parameter of the SQL: a
    QuerySet that depends on a value in another way, as a slice does, needs a `Composed` of its own. What `build` takes
    from elsewhere, such as the time or a setting, stays as it was at the first call. Related objects are loaded by
    `select_related` only.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Row]]) -> None:
        self._build = build
        self._composed: dict[tuple[str, tuple[type, ...]], _Statement] = {}

    def read(self, *values: Value) -> list[Row]:
        """Return the rows for these values."""
        if not COMPOSE_ONCE:
            return list(self._build(*values))
        key = connection.vendor, tuple(map(type, values))
        statement = self._composed.get(key)
        if statement is None:
            statement = self._composed[key] = _Statement(self._build, values)
        return statement.rows(values)

    def first(self, *values: Value) -> Row | None:
        """Return the first row for these values; None if there is none."""
        return next(iter(self.read(*values)), None)


class _Statement:
    """A compiled QuerySet, and where its values go."""

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], values: tuple[Value, ...]) -> None:
        marks = [_TEXT % i if isinstance(value, str) else _FIRST_NUMBER + i for i, value in enumerate(values)]
        self._queryset: Any = build(*marks)
        self._compiler = self._queryset.query.get_compiler(connection=connections[DEFAULT_DB_ALIAS])
        self._sql, self._parameters = self._compiler.as_sql()
        self._places = [(i, marks.index(each)) for i, each in enumerate(self._parameters) if each in marks]
        if {value for _, value in self._places} != set(range(len(values))):
            raise ValueError("a value does not become a parameter of the query")

    def rows(self, values: tuple[Value, ...]) -> list[Any]:
        parameters = list(self._parameters)
        for place, value in self._places:
            # psycopg has types of its own for the numbers of a column.
            parameters[place] = type(parameters[place])(_bounded(values[value]))
        compiler = copy(self._compiler)
        compiler.connection = connections[DEFAULT_DB_ALIAS]  # that of this thread
        compiler.as_sql = lambda *args, **kwargs: (self._sql, tuple(parameters))
        bound = type(self._queryset)(self._queryset.model, _Query(self._queryset.query, compiler))
        bound._fields = self._queryset._fields
        return list(self._queryset._iterable_class(bound))


def _bounded(value: Value) -> Value:
    """Return a number that a database takes: what is beyond those of any column compares as the largest does."""
    return value if isinstance(value, str) else max(_SMALLEST, min(value, _LARGEST))


class _Query:
    """A query that has its compiler already."""

    def __init__(self, query: Any, compiler: Any) -> None:
        self._query = query
        self._compiler = compiler

    def get_compiler(self, using: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return self._compiler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)
