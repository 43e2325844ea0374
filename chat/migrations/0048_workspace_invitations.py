"""Links that make people members of a workspace: a new table."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0047_archived_by'),
    ]

    operations = [
        migrations.CreateModel(
            name='WorkspaceInvitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('max_uses', models.PositiveIntegerField(verbose_name='uses')),
                ('uses', models.PositiveIntegerField(db_default=0, default=0, verbose_name='used')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('expires_at', models.DateTimeField(verbose_name='expires')),
                ('created_by', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='chat.workspace', verbose_name='workspace')),
            ],
            options={
                'verbose_name': 'workspace invitation',
                'verbose_name_plural': 'workspace invitations',
                'indexes': [models.Index(fields=['workspace', 'expires_at'], name='workspace_invitation')],
            },
        ),
    ]
