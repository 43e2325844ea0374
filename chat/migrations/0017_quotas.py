"""Whose turn runs, and what people use in a day."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0016_fewer_indexes'),
    ]

    operations = [
        AddColumn(
            model_name='sessionrun',
            name='started_by',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='sessionrun',
            index=models.Index(condition=~models.Q(state='idle'), fields=['started_by'], name='run_at_work'),
        ),
        migrations.CreateModel(
            name='DailyUsage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('tokens', models.PositiveBigIntegerField(default=0)),
                ('responses', models.PositiveBigIntegerField(default=0)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='daily_usage', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'day'), name='usage_once_a_day')],
            },
        ),
    ]
