"""Leases of jobs, as rows, so that only one of several servers on a database runs a job."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from chat.models import JobLease


def acquire(name: str, seconds: float) -> str | None:
    """Take a lease. Return the token of its holder, or None while another process has it."""
    # A day ago, because the database's clock decides, and it may be behind this machine's clock or less precise.
    long_ago = timezone.now() - timedelta(days=1)
    JobLease.objects.bulk_create([JobLease(name=name, expires_at=long_ago)], ignore_conflicts=True)
    holder = secrets.token_hex(16)
    free = JobLease.objects.filter(name=name, expires_at__lte=Now())
    return holder if free.update(holder=holder, expires_at=Now() + timedelta(seconds=seconds)) else None


def renew(name: str, holder: str, seconds: float) -> bool:
    """Extend a lease. Return False if it has expired and another process took it."""
    return bool(_held_lease(name, holder).update(expires_at=Now() + timedelta(seconds=seconds)))


def release(name: str, holder: str) -> None:
    """Release a lease, and store when the job was done."""
    _held_lease(name, holder).update(holder="", expires_at=Now(), finished_at=Now())


def drop(name: str, holder: str) -> None:
    """Release a lease and delete its row."""
    _held_lease(name, holder).delete()


def _held_lease(name: str, holder: str) -> QuerySet[JobLease]:
    return JobLease.objects.filter(name=name, holder=holder)
