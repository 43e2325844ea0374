"""Indexes for erasing users, which would otherwise read all messages for each of these columns."""

from django.db import migrations, models

from chat.overrides.postgres.indexes import AddIndexConcurrently


def named_by(column: str, name: str) -> AddIndexConcurrently:
    condition = models.Q((f"{column}__isnull", False))
    return AddIndexConcurrently("chatmessage", models.Index(condition=condition, fields=[column], name=name))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("chat", "0052_readable_names")]

    operations = [
        named_by("edited_by", "message_by_editor"),
        named_by("stopped_by", "message_by_stopper"),
        named_by("answered_by", "message_by_answerer"),
        AddIndexConcurrently(
            "chatmessage",
            models.Index(
                condition=models.Q(("approval__isnull", False), ("asked__isnull", False), _connector="OR"),
                fields=["session"],
                name="message_with_decisions",
            ),
        ),
    ]
