"""By what a process finds that its SECRET_KEY is not that of the others: one new column."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0048_workspace_invitations"),
    ]

    operations = [
        migrations.AddField(
            model_name="installation",
            name="key_mark",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
    ]
