"""Tool calls that wait for people, and approvals in advance. A waiting call needs an open turn, as running calls do.

The columns are added by ALTER TABLE on SQLite too: rebuilding the tables would copy every message and drop the triggers
of 0004. The triggers of 0002 are made again with the waiting calls.
"""

from __future__ import annotations

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from chat.overrides.sqlite.columns import AddColumn

guard = import_module("chat.migrations.0002_in_flight_guard")
UNFINISHED = "('streaming', 'running', 'pending', 'waiting')"


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    statements = guard.SQLITE if schema_editor.connection.vendor == "sqlite" else guard.POSTGRESQL
    for statement in statements:
        schema_editor.execute(statement.replace(guard.UNFINISHED, UNFINISHED))


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0022_verbose_names'),
    ]

    operations = [
        migrations.RunPython(guard.drop, guard.create),
        migrations.CreateModel(
            name='ApprovalRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(max_length=80, verbose_name='agent')),
                ('rule', models.CharField(max_length=1200, verbose_name='rule')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
            ],
            options={
                'verbose_name': 'approval rule',
                'verbose_name_plural': 'approval rules',
            },
        ),
        migrations.RemoveIndex(
            model_name='chatmessage',
            name='message_unfinished',
        ),
        AddColumn('chatmessage', 'answer', models.JSONField(blank=True, null=True)),
        AddColumn('chatmessage', 'answered_at', models.DateTimeField(blank=True, null=True)),
        AddColumn('chatmessage', 'answered_by', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
        AddColumn('chatmessage', 'answered_by_name', models.CharField(blank=True, db_default='', default='', max_length=200)),
        AddColumn('chatmessage', 'question', models.CharField(blank=True, choices=[('approval', 'Approval'), ('form', 'Form'), ('selection', 'Selection'), ('confirmation', 'Confirmation'), ('plan_review', 'Plan Review'), ('feedback', 'Feedback'), ('action_selection', 'Action Selection')], db_default='', default='', max_length=16)),
        AddColumn('sessionrun', 'waiting_since', models.DateTimeField(blank=True, null=True)),
        migrations.AddIndex(
            model_name='chatmessage',
            index=models.Index(condition=models.Q(('status__in', ['streaming', 'running', 'pending', 'waiting'])), fields=['session'], name='message_unfinished'),
        ),
        migrations.AddIndex(
            model_name='sessionrun',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['waiting_since'], name='run_waiting'),
        ),
        migrations.AddField(
            model_name='approvalrule',
            name='user',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='approved by'),
        ),
        migrations.AddField(
            model_name='approvalrule',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='approval_rules', to='chat.workspace', verbose_name='workspace'),
        ),
        migrations.AddConstraint(
            model_name='approvalrule',
            constraint=models.UniqueConstraint(fields=('workspace', 'agent', 'rule'), name='approval_rule_once'),
        ),
        migrations.AlterField(
            model_name='sessionrevision',
            name='kind',
            field=models.CharField(choices=[('system_prompt', 'System Prompt'), ('title', 'Title'), ('model', 'Model'), ('agent', 'Agent'), ('reasoning', 'Reasoning'), ('approval', 'Approval')], max_length=13),
        ),
        migrations.RunPython(create_triggers, guard.drop),
    ]
