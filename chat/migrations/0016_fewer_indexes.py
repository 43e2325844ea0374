"""Indexes that serve no query are dropped: each of them is written with every row.

- A foreign key's own index, where another index begins with the same column. SQLite would rebuild the whole table for
  such a change of a field, so that the index is dropped by hand and only the state is altered.
- On PostgreSQL, the `varchar_pattern_ops` twins that Django makes of each indexed CharField for LIKE 'prefix%', which
  Parley never asks. Schema changes by Django look for such a twin with IF EXISTS.

And two are made: the rows of a turn are read whenever a run begins; and a worker's own sessions with each heartbeat,
among all those at rest, of which a full index of the column would be made.
"""

from __future__ import annotations

import re

from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

COVERED = (
    ("chat_chatmessage", "session_id"),
    ("chat_messagedelta", "message_id"),
    ("chat_modelrequest", "session_id"),
    ("chat_session", "owner_id"),
    ("chat_session", "workspace_id"),
    ("chat_sessionrevision", "session_id"),
    ("chat_sessionrun", "owner_id"),
)


def drop_indexes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    for table in connection.introspection.django_table_names(only_existing=True):
        if not table.startswith("chat_"):
            continue
        with connection.cursor() as cursor:
            names = connection.introspection.get_constraints(cursor, table)
        for name in names:
            if _is_unused(table, name):
                schema_editor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")


def _is_unused(table: str, name: str) -> bool:
    """Tell by Django's names for the indexes that it makes for a field; indexes that are named by Parley stay."""
    if re.fullmatch(r"chat_.*_[0-9a-f]{8}_like", name):
        return True
    return any(
        table == covered and re.fullmatch(rf"{table}_{column}_[0-9a-f]{{8}}", name) for covered, column in COVERED
    )


def key(to: str, related_name: str, on_delete: object = models.CASCADE, **options: bool) -> models.ForeignKey:
    return models.ForeignKey(to, on_delete, related_name=related_name, db_index=False, **options)


class Migration(migrations.Migration):
    dependencies = [("chat", "0015_numbered_claims")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("chatmessage", "session", key("chat.session", "chat_messages")),
                migrations.AlterField("messagedelta", "message", key("chat.chatmessage", "deltas")),
                migrations.AlterField("modelrequest", "session", key("chat.session", "requests")),
                migrations.AlterField("session", "owner", key(settings.AUTH_USER_MODEL, "sessions", models.PROTECT)),
                migrations.AlterField("session", "workspace", key("chat.workspace", "sessions", models.PROTECT)),
                migrations.AlterField("sessionrevision", "session", key("chat.session", "revisions")),
                migrations.AlterField(
                    "sessionrun", "owner", key("chat.worker", "runs", models.SET_NULL, blank=True, null=True)
                ),
            ],
            database_operations=[migrations.RunPython(drop_indexes, migrations.RunPython.noop)],
        ),
        migrations.AddIndex("chatmessage", models.Index(fields=["run_id"], name="message_by_turn")),
        migrations.AddIndex(
            "sessionrun",
            models.Index(fields=["owner"], name="run_by_owner", condition=models.Q(("owner__isnull", False))),
        ),
    ]
