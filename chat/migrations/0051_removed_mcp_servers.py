"""When an MCP server was removed; it can be restored for a while. The column is added by ALTER TABLE, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0050_schedule_paused_by_staff")]

    operations = [AddColumn("mcpserver", "removed_at", models.DateTimeField(blank=True, null=True))]
