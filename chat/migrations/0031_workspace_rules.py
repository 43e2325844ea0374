"""Rules of a workspace and of agents that staff keep, and calls that need several approvals. Columns as in 0023."""

from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0030_sources'),
    ]

    operations = [
        AddColumn('agentpreset', 'approval', models.JSONField(blank=True, db_default={}, default=dict)),
        AddColumn('approvalrule', 'approvals', models.PositiveSmallIntegerField(db_default=1, default=1, verbose_name='approvals')),
        AddColumn('approvalrule', 'approvers', models.CharField(blank=True, choices=[('', 'Everyone who can answer'), ('admin', 'Owners and admins'), ('owner', 'Owners')], db_default='', default='', max_length=5, verbose_name='who can approve')),
        AddColumn('approvalrule', 'verdict', models.CharField(choices=[('allow', 'Always allow'), ('ask', 'Ask'), ('deny', 'Never allow')], db_default='allow', default='allow', max_length=5, verbose_name='decision')),
        AddColumn('chatmessage', 'approval', models.JSONField(blank=True, null=True)),
        migrations.AlterField(
            model_name='approvalrule',
            name='agent',
            field=models.CharField(blank=True, max_length=80, verbose_name='agent'),
        ),
    ]
