"""Read and write rows of a model with statements that are composed once.

Django composes each statement again, which takes ten times as long as executing it. The values are those that
`QuerySet.get` and `Model.save` would read and write, but no signals are sent.
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

    `write` and `read` are None if the database has the same value as the attribute.
    """

    name: str
    attribute: str
    field: Field[Any, Any]
    write: Convert | None
    read: Convert | None


class _Values:
    """The values of some columns: of a row, to be written, and of the database, to be made into a row.

    A model has many columns, and few of them need a conversion or are set by their field, so these are found once.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.attributes = [column.attribute for column in columns]
        self._names = frozenset(self.attributes)
        self._writes = [(i, column.write) for i, column in enumerate(columns) if column.write is not None]
        self._reads = [(i, column.read) for i, column in enumerate(columns) if column.read is not None]
        fields = [(i, column.field) for i, column in enumerate(columns)]
        self._set_always = [(i, field) for i, field in fields if getattr(field, "auto_now", False)]
        set_when_new = [(i, field) for i, field in fields if getattr(field, "auto_now_add", False)]
        self._set_when_new = self._set_always + set_when_new

    def of(self, row: Model, *, is_new: bool) -> list[Any]:
        """Return the values of a row as they are written."""
        values = [getattr(row, attribute) for attribute in self.attributes]
        for i, field in self._set_when_new if is_new else self._set_always:
            values[i] = field.pre_save(row, is_new)
        for i, write in self._writes:
            values[i] = _converted(values[i], write)
        return values

    def row_of(self, model: type[Row], values: Sequence[Any]) -> Row:
        """Return a row from the database's values."""
        if len(values) != len(self.attributes):
            raise ValueError(f"{len(self.attributes)} values are needed, not {len(values)}")
        read = list(values)
        for i, convert in self._reads:
            read[i] = _converted(read[i], convert)
        return model.from_db(connection.alias, self._names, read)


def new_row(model: type[Row], /, **values: Any) -> Row:
    """Return a new row with these values, by attribute, and the defaults of all other columns.

    It is equal to `model(**values)`, which looks up each column's default again and takes three times as long.
    """
    defaults = _defaults(model)
    if unknown := values.keys() - defaults.keys():
        raise TypeError(f"{model.__name__} has no columns {', '.join(sorted(unknown))}")
    made = defaults | values
    for name in _computed_defaults(model) - values.keys():
        made[name] = made[name]()
    return model(*made.values())


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert new rows of one model in one statement."""
    model, vendor = type(rows[0]), connection.vendor
    values = [value for row in rows for value in _all_values(model, vendor).of(row, is_new=True)]
    with connection.cursor() as cursor:
        cursor.execute(_insert_statement(model, vendor, len(rows)), values)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def update_row(row: Model, fields: Iterable[str]) -> None:
    """Write some fields of a row. Raise DatabaseError if it no longer exists."""
    model, names, vendor = type(row), tuple(dict.fromkeys(fields)), connection.vendor
    values = _named_values(model, vendor, names).of(row, is_new=False)
    with connection.cursor() as cursor:
        cursor.execute(_update_statement(model, vendor, names), [*values, row.pk])
        if cursor.rowcount != 1:
            raise DatabaseError(f"no row of {model._meta.db_table} was updated")


def update_returning(model: type[Row], key: str, values: Mapping[str, Any], more_text: str = "") -> Row:
    """Write some fields of the row with this key, append `more_text` to its text, and return the whole row.

    Raise DatabaseError if the row no longer exists.
    """
    by_name, names = _by_name(model, connection.vendor), tuple(values)
    written = [_converted(value, by_name[name].write) for name, value in values.items()]
    with connection.cursor() as cursor:
        statement = _returning_statement(model, connection.vendor, names, bool(more_text))
        cursor.execute(statement, [*written, *([more_text] if more_text else []), key])
        found = cursor.fetchall()
    if not found:
        raise DatabaseError(f"no row of {model._meta.db_table} was updated")
    return row_of(model, found[0])


def lock_rows(model: type[Row], keys: Collection[str]) -> list[Row]:
    """Lock the rows with these keys, in the order of the keys, and return them. Without keys there is no query."""
    if not keys:
        return []
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can only be locked in a transaction")
    with connection.cursor() as cursor:
        cursor.execute(_lock_statement(model, connection.vendor, len(keys)), list(keys))
        return [row_of(model, values) for values in cursor.fetchall()]


def lock_row_with(model: type[Row], key: str, expression: str) -> tuple[Row, Any] | None:
    """Lock the row with this key. Return it with the value of an SQL expression, or None if it does not exist."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can only be locked in a transaction")
    with connection.cursor() as cursor:
        cursor.execute(_lock_with_statement(model, connection.vendor, expression), [key])
        found = cursor.fetchone()
    return None if found is None else (row_of(model, found[:-1]), found[-1])


def lock_values(
    model: type[Model], attributes: tuple[str, ...], keys: Collection[str], *, wait: bool = True
) -> list[tuple[Any, ...]]:
    """Lock rows as `lock_rows` does. Return some of their columns in this order; these must need no conversion.

    If `wait` is False, rows that another transaction has locked are left out. (SQLite locks the whole database when a
    transaction begins.)
    """
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can only be locked in a transaction")
    with connection.cursor() as cursor:
        cursor.execute(_lock_values_statement(model, connection.vendor, attributes, len(keys), wait), list(keys))
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def read_rows(model: type[Row], attributes: tuple[str, ...], condition: str, values: Sequence[Any]) -> list[Row]:
    """Return rows with some columns. `condition` is the SQL after WHERE, with a placeholder for each value."""
    with connection.cursor() as cursor:
        cursor.execute(_read_statement(model, connection.vendor, attributes, condition), values)
        chosen = _chosen_values(model, connection.vendor, attributes)
        return [chosen.row_of(model, row) for row in cursor.fetchall()]


def row_of(model: type[Row], values: Sequence[Any]) -> Row:
    """Return a row from the database's values of all its columns."""
    return _all_values(model, connection.vendor).row_of(model, values)


def read_value(model: type[Model], attribute: str, value: Any) -> Any:
    """Return the value of a model's attribute for a value of the database."""
    return _converted(value, _by_name(model, connection.vendor)[attribute].read)


@cache
def columns_of(model: type[Model], vendor: str) -> tuple[Column, ...]:
    return tuple(_column(field) for field in model._meta.concrete_fields)


def names_of(model: type[Model], table: str) -> str:
    """Return the column list of a SELECT whose rows `row_of` takes. `table` is the table's name in the statement."""
    return ", ".join(f"{table}.{column.name}" for column in columns_of(model, connection.vendor))


@cache
def _by_name(model: type[Model], vendor: str) -> dict[str, Column]:
    columns = columns_of(model, vendor)
    return {column.field.name: column for column in columns} | {column.attribute: column for column in columns}


@cache
def _chosen_columns(model: type[Model], vendor: str, attributes: tuple[str, ...]) -> tuple[Column, ...]:
    # Rows are made of values in the order of the model's columns.
    return tuple(column for column in columns_of(model, vendor) if column.attribute in attributes)


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    """Return the default of each column by attribute, or the function that computes it, in the order of the model."""
    computed = _computed_defaults(model)
    fields = model._meta.concrete_fields
    return {each.attname: each.default if each.attname in computed else each.get_default() for each in fields}


@cache
def _computed_defaults(model: type[Model]) -> frozenset[str]:
    fields = model._meta.concrete_fields
    return frozenset(each.attname for each in fields if each.has_default() and callable(each.default))


@cache
def _all_values(model: type[Model], vendor: str) -> _Values:
    return _Values(columns_of(model, vendor))


@cache
def _named_values(model: type[Model], vendor: str, names: tuple[str, ...]) -> _Values:
    by_name = _by_name(model, vendor)
    return _Values([by_name[name] for name in names])


@cache
def _chosen_values(model: type[Model], vendor: str, attributes: tuple[str, ...]) -> _Values:
    return _Values(_chosen_columns(model, vendor, attributes))


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
def _lock_statement(model: type[Model], vendor: str, count: int) -> str:
    return _locking(model, vendor, names_of(model, _table(model)), count, wait=True)


@cache
def _lock_with_statement(model: type[Model], vendor: str, expression: str) -> str:
    return _locking(model, vendor, f"{names_of(model, _table(model))}, {expression}", 1, wait=True)


@lru_cache(maxsize=512)
def _lock_values_statement(model: type[Model], vendor: str, attributes: tuple[str, ...], count: int, wait: bool) -> str:
    by_name = _by_name(model, vendor)
    return _locking(model, vendor, ", ".join(by_name[name].name for name in attributes), count, wait=wait)


def _locking(model: type[Model], vendor: str, names: str, count: int, *, wait: bool) -> str:
    key = _key(model)
    lock = "" if vendor == "sqlite" else " FOR UPDATE" if wait else " FOR UPDATE SKIP LOCKED"
    return f"SELECT {names} FROM {_table(model)} WHERE {key} IN ({_marks(count)}) ORDER BY {key}{lock}"  # noqa: S608  # only names of the model


@cache
def _read_statement(model: type[Model], vendor: str, attributes: tuple[str, ...], condition: str) -> str:
    names = ", ".join(column.name for column in _chosen_columns(model, vendor, attributes))
    return f"SELECT {names} FROM {_table(model)} WHERE {condition}"  # noqa: S608  # the condition is the caller's own SQL


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _key(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.pk.column or "id")


def _marks(count: int) -> str:
    return ", ".join(["%s"] * count)
