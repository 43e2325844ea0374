"""Leases on jobs that only one process may do at a time."""

from __future__ import annotations

from django.db import models


class JobLease(models.Model):
    """The right to do a job until `expires_at`. `holder` is a random token of the process that has it, "" if none.

    `finished_at` is when the job last ended.
    """

    name = models.CharField(primary_key=True, max_length=80)
    holder = models.CharField(max_length=32, blank=True)
    expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
