"""Schedules, which send messages without a user waiting."""

import chat.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0043_mentions")]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.ids.schedule_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("text", models.TextField(verbose_name="text")),
                ("cron", models.CharField(max_length=100)),
                ("zone", models.CharField(max_length=64, verbose_name="time zone")),
                ("is_on", models.BooleanField(db_default=True, default=True, verbose_name="on")),
                ("next_at", models.DateTimeField(blank=True, null=True, verbose_name="next run")),
                (
                    "paused",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("access", "Access"),
                            ("archived", "Archived"),
                            ("deleted", "Deleted"),
                            ("failures", "Failures"),
                            ("invalid", "Invalid"),
                        ],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
                ("failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("last_run_at", models.DateTimeField(blank=True, null=True, verbose_name="last run")),
                ("last_message_id", models.CharField(blank=True, db_default="", default="", max_length=32)),
                (
                    "last_outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("interrupted", "Interrupted"),
                            ("failed", "Failed"),
                            ("refused", "Refused"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        db_default="",
                        default="",
                        max_length=11,
                    ),
                ),
                ("last_error", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="schedules", to="chat.session"
                    ),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "ordering": ("created_at", "pk"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="schedule_due"
                    ),
                    models.Index(
                        condition=models.Q(("last_outcome", "running")),
                        fields=["last_outcome"],
                        name="schedule_running",
                    ),
                    models.Index(
                        condition=models.Q(("removed_at__isnull", False)),
                        fields=["removed_at"],
                        name="schedule_removed",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("next_at__isnull", True),
                            models.Q(("is_on", True), ("removed_at__isnull", True)),
                            _connector="OR",
                        ),
                        name="schedule_due_only_if_on",
                    )
                ],
            },
        ),
    ]
