from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0004_search'),
    ]

    operations = [
        migrations.AlterField(
            model_name='messagerevision',
            name='kind',
            field=models.CharField(choices=[('edit', 'Edit'), ('withdraw', 'Withdraw'), ('remove', 'Remove'), ('retry', 'Retry'), ('restore', 'Restore'), ('exclude', 'Exclude'), ('include', 'Include')], max_length=8),
        ),
    ]
