"""Sessions in which an agent works for another one. The columns are added by ALTER TABLE, as in 0023."""

import django.db.models.deletion
from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0035_agents_of_members")]

    operations = [
        AddColumn(
            "session",
            "caller_session",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="subsessions",
                to="chat.session",
            ),
        ),
        AddColumn(
            "session", "caller_message_id", models.CharField(blank=True, db_default="", default="", max_length=32)
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("caller_session__isnull", False)),
                fields=["caller_session"],
                name="session_by_caller",
            ),
        ),
        AddColumn("chatmessage", "subsession", models.JSONField(blank=True, null=True)),
        AddColumn("sessionrun", "delegating", models.BooleanField(db_default=False, default=False)),
    ]
