"""Rename two fields of messages. Their columns keep their names, so nothing changes in the database."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("chat", "0020_model_names"),)

    operations = (
        migrations.SeparateDatabaseAndState(
            state_operations=[
                # A renamed field keeps its old name in indexes and constraints.
                migrations.RemoveIndex("chatmessage", "message_by_turn"),
                migrations.RemoveConstraint("chatmessage", "message_key_once"),
                migrations.RenameField("chatmessage", "run_id", "turn_id"),
                migrations.RenameField("chatmessage", "key", "idempotency_key"),
                migrations.AlterField(
                    "chatmessage", "turn_id", models.CharField(blank=True, db_column="run_id", max_length=32)
                ),
                migrations.AlterField(
                    "chatmessage",
                    "idempotency_key",
                    models.CharField(blank=True, db_column="key", max_length=100, null=True),
                ),
                migrations.AddIndex("chatmessage", models.Index(fields=["turn_id"], name="message_by_turn")),
                migrations.AddConstraint(
                    "chatmessage",
                    models.UniqueConstraint(fields=("session", "idempotency_key"), name="message_key_once"),
                ),
            ]
        ),
    )
