"""Leases for jobs that only one process may run at a time."""

from __future__ import annotations

from django.db import models


class JobLease(models.Model):
    """The exclusive right to run a job until `expires_at`.

    `holder` is a random token of the process that has the lease, or "" if no process has it. `finished_at` is the time
    of the last successful run.
    """

    name = models.CharField(primary_key=True, max_length=80)
    holder = models.CharField(max_length=32, blank=True)
    expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
