"""Whether the number of people decides which messages the agent answers. Sessions of before keep what they have."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0026_attempt_counts'),
    ]

    operations = [
        AddColumn('session', 'replies_auto', models.BooleanField(db_default=False, default=False)),
    ]
