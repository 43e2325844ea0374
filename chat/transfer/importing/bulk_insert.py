"""Insert many rows exactly as they are, including times and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import AutoField, Model


@dataclass(frozen=True, slots=True)
class PreparedInsert:
    """Rows that are ready to insert. Preparing them takes longer than the insert, and needs no lock."""

    statement: str
    values: list[list[Any]]

    def run(self) -> None:
        if self.values:
            with connection.cursor() as cursor:
                cursor.executemany(self.statement, self.values)


def prepare_insert(rows: Sequence[Model]) -> PreparedInsert:
    """Prepare rows of one model.

    Unlike `bulk_create`, this does not set columns with auto_now_add.
    """
    if not rows:
        return PreparedInsert("", [])
    options = rows[0]._meta
    fields = [field for field in options.concrete_fields if not isinstance(field, AutoField)]
    quoted = connection.ops.quote_name
    columns = ", ".join(quoted(str(field.column)) for field in fields)
    statement = f"INSERT INTO {quoted(options.db_table)} ({columns}) VALUES ({', '.join(['%s'] * len(fields))})"  # noqa: S608  # names of the model's own
    prepared = [[field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in rows]
    return PreparedInsert(statement, prepared)
