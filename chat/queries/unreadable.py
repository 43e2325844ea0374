"""Find values that other tools have written into a SQLite database, and that Parley cannot read.

SQLite stores any value in any column: bytes as a text, a word as a number, a thirteenth month. PostgreSQL refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models
from django.utils.dateparse import parse_date, parse_datetime

# The most values that are listed for one column.
MOST = 20
# The longest part of a value that is shown.
SHOWN = 40
# The types that SQLite may have stored for a field of Django, by the first class that matches.
_TYPES: tuple[tuple[type[models.Field[Any, Any]], tuple[str, ...]], ...] = (
    (models.DateField, ("text",)),
    (models.JSONField, ("text", "integer", "real")),
    (models.CharField, ("text",)),
    (models.TextField, ("text",)),
    (models.FileField, ("text",)),
    (models.FloatField, ("integer", "real")),
    (models.BooleanField, ("integer",)),
    (models.IntegerField, ("integer",)),
)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that cannot be read, and the session of its row; "" if it belongs to none."""

    session_id: str
    place: str

    def __str__(self) -> str:
        return f"{self.session_id}: {self.place}" if self.session_id else self.place


def unreadable_values() -> Iterator[Unreadable]:
    """Yield the values of Parley's own tables that cannot be read (SQLite)."""
    if connection.vendor == "sqlite":
        for model in apps.get_app_config("chat").get_models():
            for field in model._meta.concrete_fields:
                yield from _in_column(model, field)


def _in_column(model: type[models.Model], field: models.Field[Any, Any]) -> Iterator[Unreadable]:
    column = field.target_field if isinstance(field, models.ForeignKey) else field
    types = next((types for kind, types in _TYPES if isinstance(column, kind)), None)
    if types is None:
        return
    quote, table = connection.ops.quote_name, model._meta.db_table
    name = quote(field.column or "")
    key = quote(model._meta.pk.column or "")
    names = [each.column for each in model._meta.concrete_fields]
    session = key if table == "chat_session" else quote("session_id") if "session_id" in names else "''"
    condition = f"typeof({name}) NOT IN ({', '.join(repr(each) for each in ('null', *types))})"
    if isinstance(column, models.DateField):
        read, length = ("datetime", 19) if isinstance(column, models.DateTimeField) else ("date", 10)
        # The modifier turns a 30th of February into the 2nd of March, which is then another text.
        condition += f" OR {read}({name}, '+0 days') IS NOT substr({name}, 1, {length}) AND {name} IS NOT NULL"
    with connection.cursor() as cursor:
        # The plus keeps the value as it is stored. Without it, Django would read it.
        cursor.execute(f"SELECT {session}, {key}, +{name} FROM {quote(table)} WHERE {condition}")  # noqa: S608  # our own
        found = 0
        for session_id, pk, value in cursor:
            if not _is_readable(column, value):
                place = f"{field.column} of {table} {_shown(pk)} cannot be read: {_shown(value)}"
                yield Unreadable(session_id if isinstance(session_id, str) else "", place)
                found += 1
                if found == MOST:
                    return


def _is_readable(field: models.Field[Any, Any], value: object) -> bool:
    """Return whether Django can read a value that SQL finds suspicious, such as a time with a time zone."""
    if not isinstance(field, models.DateField) or not isinstance(value, str):
        return False
    try:
        return (parse_datetime(value) if isinstance(field, models.DateTimeField) else parse_date(value)) is not None
    except ValueError:
        return False


def _shown(value: object) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)[:SHOWN]
