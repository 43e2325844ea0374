import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def forget_readable_keys(apps, schema_editor):
    """End all logins once: their keys stood readable in this table, and in every backup of it."""
    apps.get_model('sessions', 'Session').objects.using(schema_editor.connection.alias).all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('sessions', '0001_initial'),
        ('chat', '0009_attempts_and_suggestions'),
    ]

    operations = [
        migrations.CreateModel(
            name='LoginSession',
            fields=[
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('session_key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('user', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'login',
            },
        ),
        migrations.RunPython(forget_readable_keys, migrations.RunPython.noop),
    ]
