"""What has to be done now and then, by one server process at a time: erasing, purging, cleaning up."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.utils import timezone

from chat.models import Erasure, JobLease
from chat.services.batches import Counts, Deadline
from chat.services.deletion import overwriting, purging, requests
from chat.services.maintenance import cleanup, leases
from chat.services.people.security_log import Kind, record
from chat.services.sessions import incomplete

logger = logging.getLogger(__name__)

JOB = "maintenance"
PURGE = "purge"
# Longer than a round usually takes. If it takes longer and a second process begins, both do no harm.
LEASE_SECONDS = 600.0
PURGE_EVERY = timedelta(days=1)


def run(deadline: Deadline | None = None) -> bool:
    """Do what is due; returns False when nothing is, or another process is doing it."""
    if not _is_due() or not (holder := leases.acquire(JOB, LEASE_SECONDS)):
        return False
    deadline = deadline or Deadline()
    try:
        for erasure in requests.unfinished():
            try:
                requests.carry_out(erasure, deadline)
            except Exception:  # the next round tries again; the others must not wait for it
                logger.exception("Erasing %s failed", erasure)
        if _is_purge_due():
            purge(before=_purged_before(), deadline=deadline)
        elif incomplete.abandoned().exists():
            purging.purge(before=None, deadline=deadline)
        if overwriting.is_requested():
            overwriting.overwrite_deleted(deadline)
    finally:
        leases.release(JOB, holder)
    return True


def purge(*, before: datetime | None, deadline: Deadline | None = None) -> Counts:
    """Delete what has expired, purge, and note when that was; returns how much was purged, by kind."""
    deadline = deadline or Deadline()
    try:
        cleanup.delete_expired(deadline)
    except Exception:  # tomorrow is early enough; the purge must not wait for it
        logger.exception("What has expired could not be deleted")
    counts = purging.purge(before=before, deadline=deadline)
    if not deadline.is_over:
        JobLease.objects.filter(name=PURGE).update(finished_at=timezone.now())
    if counts:
        overwriting.request()
        record(Kind.PURGED, actor=None, face=None, target=None, **counts)
    return counts


def _is_due() -> bool:
    """Look, without writing: this is asked every minute."""
    is_asked = Erasure.objects.filter(finished_at=None).exists() or overwriting.is_requested()
    return is_asked or incomplete.abandoned().exists() or _is_purge_due()


def _is_purge_due() -> bool:
    known, _is_new = JobLease.objects.get_or_create(name=PURGE, defaults={"expires_at": timezone.now()})
    return known.finished_at is None or known.finished_at <= timezone.now() - PURGE_EVERY


def _purged_before() -> datetime | None:
    """Return the time before which deleted things are purged now; None: nothing is.

    What was deleted in a version that never purged stays for PURGE_AFTER_DAYS from the first start of this one.
    """
    before = purging.cutoff()
    began = JobLease.objects.get(name=PURGE).created_at
    return before if before is not None and began <= before else None
