"""Erasing, guests, counted invitations, and a text index of SQLite that keeps removed messages.

Removing and restoring a message used to take its text out of the index and put it in again, which wrote twenty times
its size. Now it stays until the row itself goes, and a search leaves out what is removed. Like those of 0004, the
triggers stand on chat_chatmessage: a migration that rebuilds that table must make them again.
"""

from __future__ import annotations

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

FINISHED = "('complete', 'interrupted', 'failed')"


def indexed(row: str = "") -> str:
    """The condition under which a message is in the index."""
    return f"({row}type = 'text' AND {row}status IN {FINISHED})"


FORGET = """INSERT INTO chat_search(chat_search, rowid, text)
    SELECT 'delete', docid, OLD.text FROM chat_searchdoc WHERE message_id = OLD.id;"""
LEARN = f"""INSERT OR IGNORE INTO chat_searchdoc(message_id, session_id)
    SELECT NEW.id, NEW.session_id WHERE {indexed("NEW.")};
    INSERT INTO chat_search(rowid, text) SELECT docid, NEW.text FROM chat_searchdoc WHERE message_id = NEW.id;"""
TRIGGERS = [
    f"""CREATE TRIGGER message_search_insert AFTER INSERT ON chat_chatmessage
    WHEN {indexed("NEW.")} BEGIN {LEARN} END""",
    f"""CREATE TRIGGER message_search_update AFTER UPDATE OF text, type, status ON chat_chatmessage
    WHEN {indexed("OLD.")} <> {indexed("NEW.")} OR ({indexed("NEW.")} AND OLD.text <> NEW.text)
    BEGIN {FORGET}
    DELETE FROM chat_searchdoc WHERE message_id = OLD.id AND NOT {indexed("NEW.")};
    {LEARN} END""",
    f"""CREATE TRIGGER message_search_delete AFTER DELETE ON chat_chatmessage
    WHEN {indexed("OLD.")} BEGIN {FORGET} DELETE FROM chat_searchdoc WHERE message_id = OLD.id; END""",
]
DROP = [f"DROP TRIGGER message_search_{event}" for event in ("insert", "update", "delete")]
# What earlier versions took out of the index when it was removed.
ADD_REMOVED = [
    f"""INSERT INTO chat_searchdoc(message_id, session_id)
    SELECT id, session_id FROM chat_chatmessage
    WHERE removed_at IS NOT NULL AND {indexed()} AND id NOT IN (SELECT message_id FROM chat_searchdoc)
    ORDER BY timestamp""",
    """INSERT INTO chat_search(rowid, text)
    SELECT d.docid, m.text FROM chat_searchdoc d JOIN chat_chatmessage m ON m.id = d.message_id
    WHERE m.removed_at IS NOT NULL""",
]
FORGET_REMOVED = [
    """INSERT INTO chat_search(chat_search, rowid, text)
    SELECT 'delete', d.docid, m.text FROM chat_searchdoc d JOIN chat_chatmessage m ON m.id = d.message_id
    WHERE m.removed_at IS NOT NULL""",
    "DELETE FROM chat_searchdoc WHERE message_id IN (SELECT id FROM chat_chatmessage WHERE removed_at IS NOT NULL)",
]


def keep_removed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "sqlite":
        for statement in (*DROP, *ADD_REMOVED, *TRIGGERS):
            schema_editor.execute(statement)


def forget_removed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "sqlite":
        search = import_module("chat.migrations.0004_search")
        triggers = [statement for statement in search.SQLITE if statement.startswith("CREATE TRIGGER")]
        for statement in (*DROP, *FORGET_REMOVED, *triggers):
            schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0013_models'),
    ]

    operations = [
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('session', 'Session'), ('user', 'User')], max_length=7)),
                ('target', models.CharField(max_length=32)),
                ('requested_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('counts', models.JSONField(default=dict)),
            ],
            options={
                'ordering': ('-requested_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='JobLease',
            fields=[
                ('name', models.CharField(max_length=80, primary_key=True, serialize=False)),
                ('holder', models.CharField(blank=True, max_length=32)),
                ('expires_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AlterModelOptions(
            name='session',
            options={'permissions': (('erase_session', 'Can erase sessions for good'),)},
        ),
        migrations.AlterModelOptions(
            name='user',
            options={'permissions': (('erase_user', 'Can erase users for good'), ('reset_second_factor', 'Can reset the second factor of people')), 'verbose_name': 'user', 'verbose_name_plural': 'users'},
        ),
        migrations.AddField(
            model_name='invitation',
            name='max_uses',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='invitation',
            name='uses',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='session',
            name='purged_revision',
            field=models.PositiveBigIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='can_own_workspace',
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('guest', 'Guest')], default='member', max_length=10),
        ),
        migrations.AddIndex(
            model_name='chatmessage',
            index=models.Index(condition=models.Q(('removed_at__isnull', False)), fields=['removed_at'], name='message_by_removal'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='session_by_deletion'),
        ),
        migrations.AddField(
            model_name='erasure',
            name='requested_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='erasure',
            index=models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['requested_at'], name='erasure_open'),
        ),
        migrations.AddIndex(
            model_name='attachment',
            index=models.Index(fields=['file'], name='attachment_by_file'),
        ),
        migrations.RunPython(keep_removed, forget_removed),
    ]
