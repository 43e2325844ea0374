"""Run a QuerySet that is composed once, with different values each time.

Django builds and compiles a query again at each use, which takes several times as long as running it. It has no API to
keep the result, so this module uses its compilers and row iterables.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import QuerySet

# Off: Django builds each query, without this module.
COMPOSE_ONCE = True

Row = TypeVar("Row")
Value = int | str
# These replace the values while the query is composed. The numbers are within the range of every column, because Django
# answers a query for other numbers without a query to the database.
_FIRST_NUMBER = 2_000_000_000
_TEXT = "\x01value %d"
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**63 - 1


class Composed(Generic[Row]):
    """A query with placeholders for values.

    `build` returns the QuerySet for values, which are numbers and texts. Each must become a parameter of the SQL. A
    QuerySet that depends on a value in another way, as in a slice, needs a separate `Composed`. Anything else that
    `build` reads, such as the time or a setting, keeps its value of the first call. Related objects are only loaded by
    `select_related`.
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
        """Return the first row for these values, or None if there is none."""
        return next(iter(self.read(*values)), None)


class _Statement:
    """A compiled QuerySet, and the places of its values among the parameters."""

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
            given = values[value]
            # Numbers beyond the range of all columns compare like the limit, which a database accepts.
            bounded = given if isinstance(given, str) else max(_MIN_INTEGER, min(given, _MAX_INTEGER))
            parameters[place] = type(parameters[place])(bounded)  # psycopg has special types for a column's numbers
        compiler = copy(self._compiler)
        compiler.connection = connections[DEFAULT_DB_ALIAS]  # the connection of this thread
        compiler.as_sql = lambda *args, **kwargs: (self._sql, tuple(parameters))
        bound = type(self._queryset)(self._queryset.model, _Query(self._queryset.query, compiler))
        bound._fields = self._queryset._fields
        return list(self._queryset._iterable_class(bound))


class _Query:
    """A query that already has its compiler."""

    def __init__(self, query: Any, compiler: Any) -> None:
        self._query = query
        self._compiler = compiler

    def get_compiler(self, using: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return self._compiler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)
