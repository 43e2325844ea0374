"""No unfinished row in an idle session (MSG-07): a rule across two tables, so triggers and not constraints.

SQLite drops the triggers of a table that a later migration rebuilds; such a migration repeats `create`.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

UNFINISHED = "('streaming', 'running', 'pending')"
MESSAGE_AT_REST = f"""NEW.status IN {UNFINISHED} AND NEW.removed_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM chat_sessionrun r WHERE r.session_id = NEW.session_id AND r.state <> 'idle')"""
RUN_LEAVES_ROWS = f"""NEW.state = 'idle' AND EXISTS (
    SELECT 1 FROM chat_chatmessage m
    WHERE m.session_id = NEW.session_id AND m.status IN {UNFINISHED} AND m.removed_at IS NULL)"""
MESSAGE_ERROR = "a message may only be unfinished while its session runs"
RUN_ERROR = "a run may not end while messages of its session are unfinished"

SQLITE = [
    f"""CREATE TRIGGER message_in_flight_{event.split()[0].lower()} BEFORE {event} ON chat_chatmessage
    WHEN {MESSAGE_AT_REST} BEGIN SELECT RAISE(ABORT, '{MESSAGE_ERROR}'); END"""
    for event in ("INSERT", "UPDATE OF status, removed_at")
] + [
    f"""CREATE TRIGGER run_at_rest BEFORE UPDATE OF state ON chat_sessionrun
    WHEN {RUN_LEAVES_ROWS} BEGIN SELECT RAISE(ABORT, '{RUN_ERROR}'); END"""
]

POSTGRESQL = [
    f"""CREATE FUNCTION chat_message_in_flight() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF {MESSAGE_AT_REST} THEN RAISE EXCEPTION '{MESSAGE_ERROR}' USING ERRCODE = 'check_violation'; END IF;
    RETURN NEW; END $$""",
    """CREATE TRIGGER message_in_flight BEFORE INSERT OR UPDATE OF status, removed_at ON chat_chatmessage
    FOR EACH ROW WHEN (NEW.status IN ('streaming', 'running', 'pending')) EXECUTE FUNCTION chat_message_in_flight()""",
    f"""CREATE FUNCTION chat_run_at_rest() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF {RUN_LEAVES_ROWS} THEN RAISE EXCEPTION '{RUN_ERROR}' USING ERRCODE = 'check_violation'; END IF;
    RETURN NEW; END $$""",
    """CREATE TRIGGER run_at_rest BEFORE UPDATE OF state ON chat_sessionrun
    FOR EACH ROW WHEN (NEW.state = 'idle') EXECUTE FUNCTION chat_run_at_rest()""",
]

DROP_SQLITE = [
    "DROP TRIGGER message_in_flight_insert",
    "DROP TRIGGER message_in_flight_update",
    "DROP TRIGGER run_at_rest",
]
DROP_POSTGRESQL = [
    "DROP TRIGGER message_in_flight ON chat_chatmessage",
    "DROP TRIGGER run_at_rest ON chat_sessionrun",
    "DROP FUNCTION chat_message_in_flight",
    "DROP FUNCTION chat_run_at_rest",
]


def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in DROP_SQLITE if schema_editor.connection.vendor == "sqlite" else DROP_POSTGRESQL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
