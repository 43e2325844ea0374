"""MCP servers of workspaces."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0024_replies'),
    ]

    operations = [
        migrations.CreateModel(
            name='McpServer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=24, verbose_name='name')),
                ('url', models.CharField(max_length=2000, verbose_name='address')),
                ('secret_headers', models.TextField(blank=True, db_default='', default='')),
                ('tools', models.JSONField(blank=True, null=True, verbose_name='tools')),
                ('time_limit', models.FloatField(db_default=60.0, default=60.0, help_text='Seconds for one call.', verbose_name='time limit')),
                ('approval', models.CharField(choices=[('unless_read_only', 'unless the server calls the tool read-only'), ('always', 'always'), ('never', 'never')], default='unless_read_only', max_length=20, verbose_name='approval')),
                ('for_all_agents', models.BooleanField(db_default=True, default=True, verbose_name='for all agents')),
                ('is_enabled', models.BooleanField(db_default=True, default=True, verbose_name='available')),
                ('revision', models.PositiveIntegerField(db_default=1, default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='last changed')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mcp_servers', to='chat.workspace', verbose_name='workspace')),
            ],
            options={
                'verbose_name': 'MCP server',
                'verbose_name_plural': 'MCP servers',
                'ordering': ('workspace', 'name'),
                'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='mcp_server_once')],
            },
        ),
    ]
