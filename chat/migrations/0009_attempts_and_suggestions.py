"""Who edited a message, who stopped a turn, held queued messages, earlier attempts, suggested edits; names cleaned.

The columns are added by ALTER TABLE on SQLite too: rebuilding these tables would copy every message and drop the triggers
of 0002 and 0004.
"""

import chat.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, OuterRef, Q, Subquery

from chat import names
from chat.overrides.sqlite.columns import AddColumn


def name_editors(apps, schema_editor):
    """Name the last editor of messages that were edited before, where that was not the author (MSG-11)."""
    ChatMessage = apps.get_model('chat', 'ChatMessage')
    MessageRevision = apps.get_model('chat', 'MessageRevision')
    edits = MessageRevision.objects.filter(message=OuterRef('pk'), kind='edit').order_by('-pk')
    edited = ChatMessage.objects.filter(edited_at__isnull=False).annotate(editor=Subquery(edits.values('user')[:1]))
    others = edited.filter(editor__isnull=False).filter(Q(user__isnull=True) | ~Q(user=F('editor')))
    people = apps.get_model('chat', 'User').objects.in_bulk(others.values_list('editor', flat=True).distinct())
    found = list(others.values_list('pk', 'editor'))
    for pk, editor_id in found:
        editor = people[editor_id]
        full_name = f'{editor.first_name} {editor.last_name}'.strip()
        name = editor.display_name or full_name or editor.username or 'User'
        ChatMessage.objects.filter(pk=pk).update(edited_by=editor, edited_by_name=name[:200])


def clean_names(apps, schema_editor):
    """Clean the display names of before, which may hold characters that cannot be seen."""
    User = apps.get_model('chat', 'User')
    for user in User.objects.exclude(display_name='').only('display_name').iterator():
        name = names.clean(user.display_name)[:80]
        if name != user.display_name:
            User.objects.filter(pk=user.pk).update(display_name=name)


def person():
    return models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)


def name():
    return models.CharField(blank=True, db_default='', default='', max_length=200)


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0008_key_digests'),
    ]

    operations = [
        AddColumn('chatmessage', 'edited_by', person()),
        AddColumn('chatmessage', 'edited_by_name', name()),
        AddColumn('chatmessage', 'suggested_by_name', name()),
        AddColumn('chatmessage', 'open_suggestions', models.PositiveIntegerField(db_default=0, default=0)),
        AddColumn('chatmessage', 'end_reason', models.CharField(blank=True, choices=[('stopped', 'Stopped'), ('restarted', 'Restarted')], db_default='', default='', max_length=9)),
        AddColumn('chatmessage', 'stopped_by', person()),
        AddColumn('chatmessage', 'stopped_by_name', name()),
        AddColumn('chatmessage', 'held', models.BooleanField(db_default=False, default=False)),
        AddColumn('chatmessage', 'attempt', models.CharField(blank=True, db_default='', default='', max_length=32)),
        AddColumn('chatmessage', 'attempt_place', models.PositiveBigIntegerField(blank=True, null=True)),
        migrations.AddIndex('chatmessage', models.Index(condition=~Q(attempt=''), fields=['attempt'], name='message_by_attempt')),
        AddColumn('sessionrun', 'stopped_by', person()),
        migrations.CreateModel(
            name='Suggestion',
            fields=[
                ('id', models.CharField(default=chat.ids.suggestion_id, editable=False, max_length=32, primary_key=True, serialize=False)),
                ('user_name', models.CharField(max_length=200)),
                ('text', models.TextField()),
                ('revision', models.PositiveBigIntegerField()),
                ('status', models.CharField(choices=[('open', 'Open'), ('accepted', 'Accepted'), ('dismissed', 'Dismissed')], default='open', max_length=9)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('decided_at', models.DateTimeField(null=True)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='suggestions', to='chat.chatmessage')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('created_at', 'pk'),
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('status', 'open')), fields=('message', 'user'), name='suggestion_open_once'),
                    models.CheckConstraint(condition=models.Q(('status__in', ['open', 'accepted', 'dismissed'])), name='suggestion_status'),
                ],
            },
        ),
        migrations.RunPython(clean_names, migrations.RunPython.noop),
        migrations.RunPython(name_editors, migrations.RunPython.noop),
    ]
