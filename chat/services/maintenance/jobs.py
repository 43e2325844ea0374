"""Maintenance jobs, run by one server process at a time: erasures, purging, and deletion of expired rows."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from chat.models import Erasure, JobLease, LoginSession, SecurityEvent, SignInLink
from chat.queries import subsessions
from chat.services import import_uploads
from chat.services.batches import NO_DEADLINE, Counts, Deadline
from chat.services.deletion import overwriting, purging, requests
from chat.services.maintenance import leases
from chat.services.people import mcp_servers, push
from chat.services.people.security_log import Kind, record
from chat.services.runs import answering, delegation, lapsing
from chat.services.sessions import incomplete
from chat.services.webhooks import delivering

logger = logging.getLogger(__name__)

JOB = "maintenance"
PURGE = "purge"
# Longer than a round usually takes. Two processes in parallel do no harm.
LEASE_SECONDS = 600.0
PURGE_EVERY = timedelta(days=1)
# Rows that one transaction deletes, so that other writers do not wait for long.
BATCH = 1000


def run(deadline: Deadline = NO_DEADLINE) -> bool:
    """Run the jobs that are due. Return False if none is, or if another process runs them."""
    if not _is_due() or not (holder := leases.acquire(JOB, LEASE_SECONDS)):
        return False
    try:
        answering.expire(deadline)
        lapsing.lapse()
        delegation.report_forgotten()
        for erasure in requests.unfinished():
            try:
                requests.carry_out(erasure, deadline)
            except Exception:  # the next round tries again; the other erasures continue
                logger.exception("Could not erase %s", erasure)
        if _is_purge_due():
            purge(before=_purge_cutoff(), deadline=deadline)
        elif incomplete.abandoned().exists():
            purging.purge(before=None, deadline=deadline)
        if overwriting.is_requested():
            overwriting.overwrite_deleted(deadline)
    finally:
        leases.release(JOB, holder)
    return True


def purge(*, before: datetime | None, deadline: Deadline = NO_DEADLINE) -> Counts:
    """Delete expired rows, purge, and store the time. Return how many rows were purged, by kind."""
    try:
        delete_expired(deadline)
    except Exception:  # the next day tries again; the purge continues
        logger.exception("Could not delete expired rows")
    counts = purging.purge(before=before, deadline=deadline)
    if not deadline.is_over:
        JobLease.objects.filter(name=PURGE).update(finished_at=timezone.now())
    if counts:
        overwriting.request()
        record(Kind.PURGED, actor=None, interface=None, target=None, **counts)
    return counts


def delete_expired(deadline: Deadline) -> int:
    """Delete expired logins, links, security events, push subscriptions, deliveries of webhooks, and uploads.

    Return the number of deleted rows.

    SECURITY_LOG_DAYS=0 keeps all security events. The next run deletes what is left at the deadline.
    """
    now = timezone.now()
    count = _delete_in_batches(LoginSession.objects.filter(expire_date__lt=now), deadline)
    count += _delete_in_batches(SignInLink.objects.filter(expires_at__lt=now), deadline)
    if settings.SECURITY_LOG_DAYS:
        kept_since = now - timedelta(days=settings.SECURITY_LOG_DAYS)
        count += _delete_in_batches(SecurityEvent.objects.filter(at__lt=kept_since), deadline)
    count += push.delete_abandoned()
    for rows in (*delivering.expired(), mcp_servers.removed_long_ago()):
        count += _delete_in_batches(rows, deadline)
    import_uploads.delete_expired()
    if count:
        logger.info("Deleted %d expired rows", count)
    return count


def _delete_in_batches(rows: QuerySet[Any], deadline: Deadline) -> int:
    count = 0
    while not deadline.is_over and (batch := list(rows.values_list("pk", flat=True)[:BATCH])):
        count += rows.filter(pk__in=batch).delete()[0]
    return count


def _is_due() -> bool:
    """Return whether a job is due. Does not write, because it is called every minute."""
    is_asked = Erasure.objects.filter(finished_at=None).exists() or overwriting.is_requested()
    is_asked = is_asked or answering.expired().exists()
    is_asked = (
        is_asked or subsessions.ended_calls().exists() or bool(subsessions.outdated_calls() or lapsing.outdated())
    )
    return is_asked or incomplete.abandoned().exists() or _is_purge_due()


def _is_purge_due() -> bool:
    known, _is_new = JobLease.objects.get_or_create(name=PURGE, defaults={"expires_at": timezone.now()})
    return known.finished_at is None or known.finished_at <= timezone.now() - PURGE_EVERY


def _purge_cutoff() -> datetime | None:
    """Return the time before which deleted rows are purged; None to purge nothing.

    Rows that were deleted in a version without purging stay for PURGE_AFTER_DAYS from the first start with purging.
    """
    before = purging.cutoff()
    began = JobLease.objects.get(name=PURGE).created_at
    return before if before is not None and began <= before else None
