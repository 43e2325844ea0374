"""Where foreign text comes from, and the pages that answers cite. The columns are added by ALTER TABLE, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0029_memory")]

    operations = [
        AddColumn("chatmessage", "origin", models.CharField(blank=True, db_default="", default="", max_length=200)),
        AddColumn("chatmessage", "sources", models.JSONField(blank=True, null=True)),
    ]
