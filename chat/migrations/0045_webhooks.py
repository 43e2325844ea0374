"""Webhooks of workspaces, and their deliveries: two new tables."""

import chat.ids
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0044_schedules"),
    ]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=2000, verbose_name="address")),
                ("secret", models.TextField()),
                ("events", models.JSONField(default=list, verbose_name="events")),
                ("include_text", models.BooleanField(default=False, verbose_name="include texts")),
                ("is_enabled", models.BooleanField(default=True, verbose_name="on")),
                (
                    "off_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("gone", "The address answered 410 Gone."),
                            ("failing", "All deliveries failed for five days."),
                        ],
                        default="",
                        max_length=8,
                    ),
                ),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("holder", models.CharField(blank=True, default="", max_length=32)),
                ("busy_until", models.DateTimeField(blank=True, null=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="chat.workspace",
                        verbose_name="workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook",
                "verbose_name_plural": "webhooks",
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.ids.delivery_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("event", models.CharField(max_length=20)),
                ("facts", models.JSONField(default=dict)),
                ("happened_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "status",
                    models.CharField(
                        choices=[("pending", "Pending"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("answered", models.PositiveIntegerField(null=True)),
                ("duration_ms", models.PositiveIntegerField(null=True)),
                (
                    "problem",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("status", "The address answered with an error."),
                            ("redirect", "The address redirects. Redirects aren’t followed."),
                            ("timeout", "No answer within 10 seconds."),
                            ("refused", "The address isn’t on the public internet."),
                            ("connection", "Couldn’t connect."),
                            ("secret", "The signing secret can’t be decrypted. Add the webhook again."),
                            ("off", "The webhook was turned off."),
                        ],
                        default="",
                        max_length=10,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chat.session"
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="chat.webhook",
                    ),
                ),
            ],
            options={
                "ordering": ("-pk",),
                "indexes": [
                    models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="delivery_due"
                    ),
                    models.Index(fields=["happened_at"], name="delivery_by_age"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("next_at__isnull", False), ("status", "pending")),
                            models.Q(("next_at__isnull", True), ("status__in", ["delivered", "failed"])),
                            _connector="OR",
                        ),
                        name="delivery_due_iff_pending",
                    )
                ],
            },
        ),
    ]
