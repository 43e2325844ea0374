"""Which process does a job: leases in rows, so that of several servers on one database only one does it."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from chat.models import JobLease


def acquire(name: str, seconds: float) -> str | None:
    """Take a lease; returns the token that keeps it, or None while another process has it."""
    # The database's clock decides, which may be a little behind this one, or say less than microseconds.
    long_ago = timezone.now() - timedelta(days=1)
    JobLease.objects.bulk_create([JobLease(name=name, expires_at=long_ago)], ignore_conflicts=True)
    holder = secrets.token_hex(16)
    free = JobLease.objects.filter(name=name, expires_at__lte=Now())
    return holder if free.update(holder=holder, expires_at=Now() + timedelta(seconds=seconds)) else None


def renew(name: str, holder: str, seconds: float) -> bool:
    """Keep a lease for longer; False when it has expired and another process took it."""
    return bool(_held(name, holder).update(expires_at=Now() + timedelta(seconds=seconds)))


def release(name: str, holder: str) -> None:
    """Give a lease back, and note when the job was done."""
    _held(name, holder).update(holder="", expires_at=Now(), finished_at=Now())


def drop(name: str, holder: str) -> None:
    """Give a lease back of which nothing has to be remembered."""
    _held(name, holder).delete()


def _held(name: str, holder: str) -> QuerySet[JobLease]:
    return JobLease.objects.filter(name=name, holder=holder)
