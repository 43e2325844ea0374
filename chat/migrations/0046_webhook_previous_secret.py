"""The secret of a webhook before the present one, which signs for a day more: two new columns."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0045_webhooks"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="previous_secret",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="webhook",
            name="previous_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="webhookdelivery",
            name="problem",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", ""),
                    ("status", "The address answered with an error."),
                    ("redirect", "The address redirects. Redirects aren’t followed."),
                    ("timeout", "No answer within 10 seconds."),
                    ("refused", "The address isn’t on the public internet."),
                    ("connection", "Couldn’t connect."),
                    ("secret", "The signing secret can’t be decrypted. Make a new one."),
                    ("off", "The webhook was turned off."),
                ],
                default="",
                max_length=10,
            ),
        ),
    ]
