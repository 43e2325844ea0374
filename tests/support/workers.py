"""Workers that die or whose leases expire."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from chat.models import Worker
from chat.runs import lease


def declare_dead(worker_id: str) -> None:
    """Release a worker's sessions, as other workers do after its lease has ended. Retry while rows are locked."""
    while (renewal := lease.other_workers("").get(worker_id)) is not None:
        lease.take_over(worker_id, renewal)


def declare_all_dead() -> None:
    for worker_id in Worker.objects.values_list("pk", flat=True):
        declare_dead(worker_id)


def expire(worker_id: str) -> None:
    """End a worker's lease by the database's clock, without other workers noticing it yet."""
    Worker.objects.filter(pk=worker_id).update(lease_until=F("lease_until") - timedelta(hours=1))
