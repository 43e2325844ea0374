"""Files that tools have returned. The column is added by ALTER TABLE, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0033_operating")]

    operations = [AddColumn("chatmessage", "files", models.JSONField(blank=True, null=True))]
