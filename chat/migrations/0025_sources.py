"""Where foreign text comes from, and the pages that answers cite."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("chat", "0024_replies"),)

    operations = (
        migrations.AddField(
            model_name="chatmessage",
            name="origin",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="chatmessage",
            name="sources",
            field=models.JSONField(blank=True, null=True),
        ),
    )
