"""Name the model UserSessionState. The table keeps its name, so nothing changes in the database."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("chat", "0018_learned_dialects"),)

    operations = (
        migrations.AlterModelTable(name="participation", table="chat_participation"),
        migrations.RenameModel(old_name="Participation", new_name="UserSessionState"),
    )
