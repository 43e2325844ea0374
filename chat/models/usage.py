"""What people have used: counted as it happens, so that no request adds up all rows."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class DailyUsage(models.Model):
    """What models were sent and have written for one person on one day, in UTC: in turns, and for titles."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="daily_usage")
    day = models.DateField()
    tokens = models.PositiveBigIntegerField(default=0)
    responses = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["user", "day"], name="usage_once_a_day"),)

    def __str__(self) -> str:
        return f"{self.user_id}: {self.day}"
