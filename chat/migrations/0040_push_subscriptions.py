"""Browsers that get push messages, and which login has which of them. The column is added by ALTER TABLE, as in 0023."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn


class Migration(migrations.Migration):
    dependencies = [("chat", "0039_mcp_sign_in")]

    operations = [
        AddColumn("loginsession", "push", models.CharField(blank=True, db_default="", default="", max_length=64)),
        migrations.CreateModel(
            name="PushSubscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                ("endpoint", models.CharField(max_length=2048)),
                ("p256dh", models.CharField(max_length=100)),
                ("auth", models.CharField(max_length=32)),
                ("key", models.CharField(max_length=16)),
                ("name", models.CharField(max_length=80)),
                ("language", models.CharField(blank=True, max_length=10)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("refreshed_at", models.DateTimeField(auto_now_add=True)),
                ("last_success_at", models.DateTimeField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="push_subscriptions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
                "constraints": [models.UniqueConstraint(fields=("user", "digest"), name="push_subscription_once")],
            },
        ),
    ]
