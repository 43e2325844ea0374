"""Agents that members of a workspace make. Columns as in 0023; the two that refer to rows are of a small table."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0034_tool_files")]

    operations = [
        AddColumn("agentpreset", "archived_at", models.DateTimeField(blank=True, null=True, verbose_name="archived")),
        AddColumn("agentpreset", "icon", models.CharField(blank=True, db_default="", default="", max_length=30)),
        AddColumn(
            "agentpreset", "is_shared", models.BooleanField(db_default=False, default=False, verbose_name="shared")
        ),
        AddColumn("agentpreset", "revision", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "agentpreset",
            "user",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="agents",
                to=settings.AUTH_USER_MODEL,
                verbose_name="made by",
            ),
        ),
        migrations.AddField(
            "agentpreset",
            "workspace",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="agents",
                to="chat.workspace",
                verbose_name="workspace",
            ),
        ),
    ]
