"""Notes that agents remember across sessions."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0028_summaries'),
    ]

    operations = [
        migrations.CreateModel(
            name='MemoryNote',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField(verbose_name='text')),
                ('accepted', models.BooleanField(db_default=True, default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('removed_at', models.DateTimeField(blank=True, null=True)),
                ('made_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('session', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.session')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='chat.workspace')),
            ],
            options={
                'verbose_name': 'note',
                'verbose_name_plural': 'notes',
                'ordering': ('pk',),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('user__isnull', False), ('workspace__isnull', True)), models.Q(('user__isnull', True), ('workspace__isnull', False)), _connector='OR'), name='memory_note_of_one')],
            },
        ),
        migrations.AlterField(
            model_name='chatmessage',
            name='question',
            field=models.CharField(blank=True, choices=[('approval', 'Approval'), ('form', 'Form'), ('selection', 'Selection'), ('confirmation', 'Confirmation'), ('plan_review', 'Plan Review'), ('feedback', 'Feedback'), ('action_selection', 'Action Selection'), ('memory', 'Memory')], db_default='', default='', max_length=16),
        ),
    ]
