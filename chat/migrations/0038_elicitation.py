"""What running tools ask people. The column is added by ALTER TABLE, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0037_installation")]

    operations = [AddColumn("chatmessage", "asked", models.JSONField(blank=True, null=True))]
