"""Find values that other tools have written into a SQLite database, and that Parley cannot read.

SQLite stores any value in any column: bytes as a text, texts in Latin-1, a word as a number, a thirteenth month.
PostgreSQL refuses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models
from django.utils.dateparse import parse_date, parse_datetime

from chat.models import Session

# The most values that are listed for one column.
MAX_COUNT = 20
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
            yield from _in_table(model)


def unreadable_values_of(session_id: str, tables: Iterable[type[models.Model]]) -> Iterator[Unreadable]:
    """Yield the values of a session's rows in some tables that cannot be read (SQLite)."""
    if connection.vendor == "sqlite":
        for model in tables:
            yield from _in_table(model, session_id)


def _in_table(model: type[models.Model], session_id: str = "") -> Iterator[Unreadable]:
    table, quote = model._meta.db_table, connection.ops.quote_name
    key = quote(model._meta.pk.column or "")
    session, is_of_session = _session_of(model)
    checked = [(field, types) for field in map(_column, model._meta.concrete_fields) if (types := _types_of(field[1]))]
    # Texts are read as bytes, because SQLite's driver fails at texts that are not UTF-8. The plus keeps other values as
    # they are stored. Without it, Django would read them.
    parts = [
        f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE +{name} END"
        for name in (quote(column) for (column, _field), _types in checked)
    ]
    where, values = (f"WHERE {is_of_session}", [session_id]) if session_id else ("", [])
    selected = f"CAST({session} AS BLOB), CAST({key} AS BLOB), {', '.join(parts)}"
    found = Counter[str]()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {selected} FROM {quote(table)} {where}", values)  # noqa: S608  # our own names
        for owner, pk, *row in cursor:
            for ((column, field), types), kind, value in zip(checked, row[::2], row[1::2], strict=True):
                if kind == "null" or _is_readable(field, types, kind, value):
                    continue
                found[column] += 1
                if found[column] <= MAX_COUNT:
                    place = f"{column} of {table} {_shown(pk, 'text')} cannot be read: {_shown(value, kind)}"
                    yield Unreadable((owner or b"").decode(errors="replace"), place)


def _session_of(model: type[models.Model]) -> tuple[str, str]:
    """Return SQL for the session of a table's row, and for the condition that the row belongs to a given session."""
    names = {field.column for field in model._meta.concrete_fields}
    if model is Session:
        return "id", "id = %s"
    if "session_id" in names:
        return "session_id", "session_id = %s"
    if "message_id" in names:
        of_message = "(SELECT session_id FROM chat_chatmessage WHERE id = message_id)"
        return of_message, "message_id IN (SELECT id FROM chat_chatmessage WHERE session_id = %s)"
    return "''", "%s = ''"


def _column(field: models.Field[Any, Any]) -> tuple[str, models.Field[Any, Any]]:
    """Return the name of a field's column, and the field that determines its type."""
    return field.column or "", field.target_field if isinstance(field, models.ForeignKey) else field


def _types_of(field: models.Field[Any, Any]) -> tuple[str, ...]:
    return next((types for kind, types in _TYPES if isinstance(field, kind)), ())


def _is_readable(field: models.Field[Any, Any], types: tuple[str, ...], kind: str, value: Any) -> bool:
    """Return whether Django can read a value of this type of SQLite. Texts are passed as bytes."""
    if kind not in types:
        return False
    if kind != "text":
        return True
    try:
        text = value.decode()
        if not isinstance(field, models.DateField):
            return True
        return (parse_datetime(text) if isinstance(field, models.DateTimeField) else parse_date(text)) is not None
    except ValueError:  # also for bytes that are not UTF-8
        return False


def _shown(value: object, kind: str) -> str:
    if not isinstance(value, bytes):
        return str(value)[:SHOWN]
    try:
        return value.decode()[:SHOWN] if kind == "text" else f"{len(value)} bytes"
    except UnicodeDecodeError:
        return f"{len(value)} bytes"
