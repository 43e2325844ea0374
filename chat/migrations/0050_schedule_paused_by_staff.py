"""One more reason why a schedule is paused. Databases do not know the reasons: nothing is altered there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0049_key_mark"),
    ]

    operations = [
        migrations.AlterField(
            model_name="schedule",
            name="paused",
            field=models.CharField(
                blank=True,
                choices=[
                    ("access", "Access"),
                    ("archived", "Archived"),
                    ("deleted", "Deleted"),
                    ("failures", "Failures"),
                    ("invalid", "Invalid"),
                    ("staff", "Staff"),
                ],
                db_default="",
                default="",
                max_length=10,
            ),
        ),
    ]
