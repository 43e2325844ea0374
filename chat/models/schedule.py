"""Schedules: messages that are sent in a session at set times, without a user waiting (MSG-09)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat import ids
from chat.models.session import Session

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Schedule(models.Model):
    """A message that is sent for its owner at the instants of `cron` in the time zone `zone`.

    `next_at` is the next instant. It is set while the schedule is on and not removed, and claimed by compare-and-set by
    the process that sends. `paused` is the reason why the schedule was turned off. `failures` counts failed runs since
    the last success. `last_message_id` is the message of the last run, and `last_outcome` the run's outcome.
    `last_error` is the code of a refusal, for which there is no message. Removed schedules can be restored for a while.
    """

    class Outcome(models.TextChoices):
        """The outcome of the last run. Running includes queued."""

        RUNNING = "running"
        COMPLETED = "completed"
        INTERRUPTED = "interrupted"
        FAILED = "failed"
        REFUSED = "refused"
        WITHDRAWN = "withdrawn"

    class Pause(models.TextChoices):
        ACCESS = "access"
        ARCHIVED = "archived"
        DELETED = "deleted"
        FAILURES = "failures"
        INVALID = "invalid"
        STAFF = "staff"

    id = models.CharField(primary_key=True, max_length=32, default=ids.schedule_id, editable=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="schedules")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="schedules", verbose_name=_("created by")
    )
    text = models.TextField(_("text"))
    cron = models.CharField(max_length=100)
    zone = models.CharField(_("time zone"), max_length=64)
    is_on = models.BooleanField(_("on"), default=True, db_default=True)
    next_at = models.DateTimeField(_("next run"), null=True, blank=True)
    paused = models.CharField(max_length=10, choices=Pause.choices, blank=True, default="", db_default="")
    failures = models.PositiveIntegerField(default=0, db_default=0)
    last_run_at = models.DateTimeField(_("last run"), null=True, blank=True)
    last_message_id = models.CharField(max_length=32, blank=True, default="", db_default="")
    last_outcome = models.CharField(max_length=11, choices=Outcome.choices, blank=True, default="", db_default="")
    last_error = models.CharField(max_length=40, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ("created_at", "pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(next_at__isnull=True) | Q(is_on=True, removed_at__isnull=True),
                name="schedule_due_only_if_on",
            ),
        )
        indexes = (
            models.Index(fields=["next_at"], name="schedule_due", condition=Q(next_at__isnull=False)),
            models.Index(fields=["last_outcome"], name="schedule_running", condition=Q(last_outcome="running")),
            models.Index(fields=["removed_at"], name="schedule_removed", condition=Q(removed_at__isnull=False)),
        )

    def __str__(self) -> str:
        """Return the id, because the text is written by a user."""
        return self.id

    def pause(self, reason: str) -> None:
        """Turn the schedule off for a reason. The caller saves the row."""
        self.is_on, self.next_at, self.paused = False, None, reason

    @property
    def revision(self) -> int:
        """The time of the last change by a user, in microseconds, to detect conflicts. Runs do not change it."""
        return (self.updated_at - EPOCH) // timedelta(microseconds=1)

    @property
    def label(self) -> dict[str, dict[str, str]]:
        """The `arguments` of the schedule's messages, which keep its times from when each message was sent."""
        return {"schedule": {"cron": self.cron, "zone": self.zone}}
