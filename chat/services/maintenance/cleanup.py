"""Deletes what time has made useless: expired logins and links, old security events, uploads of imports."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from chat.models import LoginSession, SecurityEvent, SignInLink
from chat.services import import_uploads
from chat.services.batches import Deadline

logger = logging.getLogger(__name__)

# Rows that one transaction deletes: others must be able to write in between.
BATCH = 1000


def delete_expired(deadline: Deadline) -> int:
    """Delete what has expired, a batch at a time; returns how many rows went.

    SECURITY_LOG_DAYS=0 keeps all events. What is left at the deadline goes the next time.
    """
    now = timezone.now()
    count = _delete(LoginSession.objects.filter(expire_date__lt=now), deadline)
    count += _delete(SignInLink.objects.filter(expires_at__lt=now), deadline)
    if settings.SECURITY_LOG_DAYS:
        kept_since = now - timedelta(days=settings.SECURITY_LOG_DAYS)
        count += _delete(SecurityEvent.objects.filter(at__lt=kept_since), deadline)
    import_uploads.delete_expired()
    if count:
        logger.info("Deleted %d rows that have expired", count)
    return count


def _delete(rows: QuerySet[Any], deadline: Deadline) -> int:
    count = 0
    while not deadline.is_over and (batch := list(rows.values_list("pk", flat=True)[:BATCH])):
        count += rows.filter(pk__in=batch).delete()[0]
    return count
