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
    JobLease.objects.bulk_create([JobLease(name=name, expires_at=timezone.now())], ignore_conflicts=True)
    holder = secrets.token_hex(16)
    free = JobLease.objects.filter(name=name, expires_at__lte=Now())
    return holder if free.update(holder=holder, expires_at=Now() + timedelta(seconds=seconds)) else None


def renew(name: str, holder: str, seconds: float) -> bool:
    """Keep a lease for longer; False when it has expired and another process took it."""
    return bool(_held(name, holder).update(expires_at=Now() + timedelta(seconds=seconds)))


def release(name: str, holder: str, *, finished: bool = True) -> None:
    """Give a lease back; `finished` notes that the job was done."""
    done = {"finished_at": Now()} if finished else {}
    _held(name, holder).update(holder="", expires_at=Now(), **done)


def _held(name: str, holder: str) -> QuerySet[JobLease]:
    return JobLease.objects.filter(name=name, holder=holder)
