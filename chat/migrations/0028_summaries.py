"""Summaries that stand for earlier messages. The columns are added by ALTER TABLE on SQLite too, as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0027_replies_auto'),
    ]

    operations = [
        AddColumn('chatmessage', 'summarises', models.PositiveIntegerField(blank=True, null=True)),
        AddColumn('sessionrun', 'compacting', models.BooleanField(db_default=False, default=False)),
        migrations.AddIndex(
            model_name='chatmessage',
            index=models.Index(condition=models.Q(('summarises__isnull', False)), fields=['session'], name='message_summary'),
        ),
    ]
