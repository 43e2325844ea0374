"""Who has archived a session. The column is added by ALTER TABLE, as in 0023."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0046_webhook_previous_secret")]

    operations = [
        AddColumn(
            "session",
            "archived_by",
            models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
