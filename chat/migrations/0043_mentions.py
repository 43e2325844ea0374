"""Mentions of people, and sessions that are open to their workspace. Columns are added by ALTER TABLE, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0042_fill_workspaces")]

    operations = [
        AddColumn("chatmessage", "mentions", models.JSONField(blank=True, null=True)),
        AddColumn("usersessionstate", "mentioned_revision", models.PositiveBigIntegerField(db_default=0, default=0)),
        AddColumn(
            "session",
            "workspace_role",
            models.CharField(
                blank=True,
                choices=[("viewer", "Viewer"), ("editor", "Editor")],
                db_default="",
                default="",
                max_length=6,
                verbose_name="workspace role",
            ),
        ),
        migrations.AddIndex(
            "session", models.Index(fields=["workspace", "workspace_role"], name="session_by_workspace_role")
        ),
    ]
