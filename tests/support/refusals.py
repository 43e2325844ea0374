"""Triggers that make the database reject certain writes until the test permits them again."""

from __future__ import annotations

from django.db import connection


def refuse(name: str, *, event: str, table: str, when: str = "1 = 1") -> None:
    """Reject every `event` ("INSERT", "UPDATE OF done") on rows that match `when`, as if a constraint were violated."""
    trigger = f"CREATE TRIGGER {name} BEFORE {event} ON {table}"
    if connection.vendor == "sqlite":
        _execute(f"{trigger} WHEN {when} BEGIN SELECT RAISE(ABORT, 'refused'); END")
        return
    no = "BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation'; END"
    _execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ {no} $$",
        f"{trigger} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {name}()",
    )


def permit(name: str) -> None:
    """Permit the writes that `refuse` rejects under this name."""
    _execute(f"DROP TRIGGER {name}" if connection.vendor == "sqlite" else f"DROP FUNCTION {name} CASCADE")


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
