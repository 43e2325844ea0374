"""Which messages the agent of a session answers. The columns are added by ALTER TABLE on SQLite too, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0023_questions'),
    ]

    operations = [
        AddColumn('chatmessage', 'for_agent', models.BooleanField(db_default=True, default=True)),
        AddColumn('session', 'replies', models.CharField(choices=[('all', 'All'), ('mentions', 'Mentions')], db_default='all', default='all', max_length=8)),
    ]
