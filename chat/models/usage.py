"""Token counts of users, added up with each response so that no request has to sum over all messages."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class DailyUsage(models.Model):
    """The tokens that one user's turns and session titles have used on one day (UTC), input and output together."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="daily_usage")
    day = models.DateField()
    tokens = models.PositiveBigIntegerField(default=0)
    responses = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("daily usage")
        verbose_name_plural = _("daily usage")
        constraints = (models.UniqueConstraint(fields=["user", "day"], name="usage_once_a_day"),)

    def __str__(self) -> str:
        return f"{self.user_id}: {self.day}"
