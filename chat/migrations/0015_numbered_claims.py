"""What a claim needs to be unmistakable: its worker, its jobs' numbers, the attempts at a turn; and its order, by age.

SQLite rebuilds a table to add such columns, which drops its triggers and is refused while triggers elsewhere name it:
those of 0002 are removed before and made again afterwards. PostgreSQL adds the columns without touching the rows.
"""

from __future__ import annotations

from importlib import import_module

import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

guard = import_module("chat.migrations.0002_in_flight_guard")


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "sqlite":
        guard.drop(apps, schema_editor)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "sqlite":
        guard.create(apps, schema_editor)


class Migration(migrations.Migration):
    dependencies = [("chat", "0014_erasing_and_guests")]
    operations = [
        migrations.RemoveIndex("sessionrun", "run_due"),
        migrations.RunPython(drop_triggers, create_triggers),
        migrations.AddField("sessionrun", "attempts", models.PositiveIntegerField(db_default=0)),
        migrations.AddField("sessionrun", "claimant", models.CharField(blank=True, db_default="", max_length=32)),
        migrations.AddField(
            "sessionrun", "due_since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())
        ),
        migrations.AddField("sessionrun", "written", models.PositiveBigIntegerField(db_default=0)),
        migrations.AddField("worker", "lease_seconds", models.FloatField(db_default=10.0)),
        migrations.RunPython(create_triggers, drop_triggers),
        migrations.AddIndex(
            "sessionrun",
            models.Index(
                fields=["due_since"],
                name="run_due",
                condition=models.Q(("owner__isnull", True), ("wanted__gt", models.F("done"))),
            ),
        ),
    ]
