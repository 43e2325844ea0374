"""Read and write rows of a model with statements that are composed once.

Django composes each statement again, which takes ten times as long as to execute it. The values are those that
`QuerySet.get` and `Model.save` would read and write; signals are not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from django.db import DatabaseError, connection
from django.db.models import DateField, Field, JSONField, Model
from django.db.transaction import TransactionManagementError

Row = TypeVar("Row", bound=Model)
Convert = Callable[[Any], Any]


class Column(NamedTuple):
    """A column: its quoted name, the attribute with its value, and how values other than None are converted.

    `write` and `read` are None where the database has the same value as the attribute.
    """

    name: str
    attribute: str
    field: Field[Any, Any]
    write: Convert | None
    read: Convert | None


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert new rows of one model in one statement."""
    model = type(rows[0])
    values = [_written(row, column, is_new=True) for row in rows for column in columns_of(model, connection.vendor)]
    with connection.cursor() as cursor:
        cursor.execute(_insert_statement(model, connection.vendor, len(rows)), values)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def update_row(row: Model, fields: Iterable[str]) -> None:
    """Write some fields of a row. Raises DatabaseError if it no longer exists."""
    model, names = type(row), tuple(dict.fromkeys(fields))
    by_name = _by_name(model, connection.vendor)
    values = [_written(row, by_name[name], is_new=False) for name in names]
    with connection.cursor() as cursor:
        cursor.execute(_update_statement(model, connection.vendor, names), [*values, row.pk])
        if cursor.rowcount != 1:
            raise DatabaseError(f"no row of {model._meta.db_table} was updated")


def update_returning(model: type[Row], key: str, values: Mapping[str, Any], more_text: str = "") -> Row:
    """Write some fields of the row with this key, put `more_text` behind its text, and return the whole row.

    Raises DatabaseError if the row no longer exists.
    """
    by_name, names = _by_name(model, connection.vendor), tuple(values)
    written = [_converted(value, by_name[name].write) for name, value in values.items()]
    with connection.cursor() as cursor:
        statement = _returning_statement(model, connection.vendor, names, bool(more_text))
        cursor.execute(statement, [*written, *([more_text] if more_text else []), key])
        found = cursor.fetchall()
    if not found:
        raise DatabaseError(f"no row of {model._meta.db_table} was updated")
    return made(model, found[0])


def lock_rows(model: type[Row], keys: Collection[str], *, wait: bool = True) -> list[Row]:
    """Lock the rows with these keys, in the order of the keys, and return them. No keys need no query.

    Rows that another transaction has locked are left out if `wait` is off. (SQLite locks the whole database when a
    transaction begins.)
    """
    if not keys:
        return []
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can only be locked in a transaction")
    with connection.cursor() as cursor:
        cursor.execute(_lock_statement(model, connection.vendor, len(keys), wait), list(keys))
        return [made(model, values) for values in cursor.fetchall()]


def lock_row_with(model: type[Row], key: str, expression: str) -> tuple[Row, Any] | None:
    """Lock the row with this key; return it with the value of an SQL expression, or None if it does not exist."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can only be locked in a transaction")
    with connection.cursor() as cursor:
        cursor.execute(_lock_with_statement(model, connection.vendor, expression), [key])
        found = cursor.fetchone()
    return None if found is None else (made(model, found[:-1]), found[-1])


def lock_values(
    model: type[Model], attributes: tuple[str, ...], keys: Collection[str], *, wait: bool = True
) -> list[tuple[Any, ...]]:
    """Lock rows as `lock_rows` does; return some of their columns, which must need no conversion, in this order."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can only be locked in a transaction")
    with connection.cursor() as cursor:
        cursor.execute(_lock_values_statement(model, connection.vendor, attributes, len(keys), wait), list(keys))
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def read_rows(model: type[Row], attributes: tuple[str, ...], condition: str, values: Sequence[Any]) -> list[Row]:
    """Read some columns of the rows that fulfil a condition: SQL that follows WHERE, with a place for each value."""
    with connection.cursor() as cursor:
        cursor.execute(_read_statement(model, connection.vendor, attributes, condition), values)
        columns = _chosen(model, connection.vendor, attributes)
        return [_made(model, columns, row) for row in cursor.fetchall()]


def made(model: type[Row], values: Sequence[Any]) -> Row:
    """Make a row of the values of all its columns, as the database has them."""
    return _made(model, columns_of(model, connection.vendor), values)


def _made(model: type[Row], columns: Sequence[Column], values: Sequence[Any]) -> Row:
    read = [_converted(value, column.read) for value, column in zip(values, columns, strict=True)]
    return model.from_db(connection.alias, [column.attribute for column in columns], read)


def read_value(model: type[Model], attribute: str, value: Any) -> Any:
    """Return a value as the model's attribute has it, given what the database has."""
    return _converted(value, _by_name(model, connection.vendor)[attribute].read)


@cache
def columns_of(model: type[Model], vendor: str) -> tuple[Column, ...]:
    return tuple(_column(field) for field in model._meta.concrete_fields)


def names_of(model: type[Model], table: str) -> str:
    """Return the columns that `made` takes for a SELECT in which the model's table is called `table`."""
    return ", ".join(f"{table}.{column.name}" for column in columns_of(model, connection.vendor))


@cache
def _by_name(model: type[Model], vendor: str) -> dict[str, Column]:
    columns = columns_of(model, vendor)
    return {column.field.name: column for column in columns} | {column.attribute: column for column in columns}


@cache
def _chosen(model: type[Model], vendor: str, attributes: tuple[str, ...]) -> tuple[Column, ...]:
    # Rows are made of values in the order of the model's columns.
    return tuple(column for column in columns_of(model, vendor) if column.attribute in attributes)


def _column(field: Field[Any, Any]) -> Column:
    name = connection.ops.quote_name(field.column or field.attname)
    return Column(name, field.attname, field, _writer(field), _reader(field))


def _writer(field: Field[Any, Any]) -> Convert | None:
    # Texts, numbers, booleans and ids are written as they are.
    if isinstance(field, JSONField | DateField):
        return lambda value: field.get_db_prep_save(value, connection)
    return None


def _reader(field: Field[Any, Any]) -> Convert | None:
    expression: Any = field.cached_col
    steps = [*connection.ops.get_db_converters(expression), *field.get_db_converters(connection)]
    if not steps:
        return None

    def read(value: Any) -> Any:
        for step in steps:
            value = step(value, expression, connection)
        return value

    return read


def _written(row: Model, column: Column, *, is_new: bool) -> Any:
    field = column.field
    is_set_now = getattr(field, "auto_now", False) or (is_new and getattr(field, "auto_now_add", False))
    value = field.pre_save(row, is_new) if is_set_now else getattr(row, column.attribute)
    return _converted(value, column.write)


def _converted(value: Any, convert: Convert | None) -> Any:
    return value if value is None or convert is None else convert(value)


@cache
def _insert_statement(model: type[Model], vendor: str, count: int) -> str:
    columns = columns_of(model, vendor)
    names = ", ".join(column.name for column in columns)
    values = ", ".join([f"({_marks(len(columns))})"] * count)
    return f"INSERT INTO {_table(model)} ({names}) VALUES {values}"  # noqa: S608  # only names of the model


@cache
def _update_statement(model: type[Model], vendor: str, names: tuple[str, ...]) -> str:
    by_name = _by_name(model, vendor)
    values = ", ".join(f"{by_name[name].name} = %s" for name in names)
    return f"UPDATE {_table(model)} SET {values} WHERE {_key(model)} = %s"  # noqa: S608  # only names of the model


@cache
def _returning_statement(model: type[Model], vendor: str, names: tuple[str, ...], has_more_text: bool) -> str:
    by_name, table = _by_name(model, vendor), _table(model)
    values = [f"{by_name[name].name} = %s" for name in names] + ["text = text || %s"] * has_more_text
    row = names_of(model, table)
    return f"UPDATE {table} SET {', '.join(values)} WHERE {_key(model)} = %s RETURNING {row}"  # noqa: S608  # only names of the model


@lru_cache(maxsize=256)
def _lock_statement(model: type[Model], vendor: str, count: int, wait: bool) -> str:
    return _locking(model, vendor, names_of(model, _table(model)), count, wait)


@cache
def _lock_with_statement(model: type[Model], vendor: str, expression: str) -> str:
    return _locking(model, vendor, f"{names_of(model, _table(model))}, {expression}", 1, True)


@lru_cache(maxsize=512)
def _lock_values_statement(model: type[Model], vendor: str, attributes: tuple[str, ...], count: int, wait: bool) -> str:
    by_name = _by_name(model, vendor)
    return _locking(model, vendor, ", ".join(by_name[name].name for name in attributes), count, wait)


def _locking(model: type[Model], vendor: str, names: str, count: int, wait: bool) -> str:
    key = _key(model)
    lock = "" if vendor == "sqlite" else " FOR UPDATE" if wait else " FOR UPDATE SKIP LOCKED"
    return f"SELECT {names} FROM {_table(model)} WHERE {key} IN ({_marks(count)}) ORDER BY {key}{lock}"  # noqa: S608  # only names of the model


@cache
def _read_statement(model: type[Model], vendor: str, attributes: tuple[str, ...], condition: str) -> str:
    names = ", ".join(column.name for column in _chosen(model, vendor, attributes))
    return f"SELECT {names} FROM {_table(model)} WHERE {condition}"  # noqa: S608  # the condition is the caller's own SQL


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _key(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.pk.column or "id")


def _marks(count: int) -> str:
    return ", ".join(["%s"] * count)
