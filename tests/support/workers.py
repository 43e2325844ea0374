"""What happens to workers: they die, and others notice."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from chat.models import Worker
from chat.runs import lease


def declare_dead(worker_id: str) -> None:
    """Free a worker's sessions, as others do after its lease. Rows that are locked at the moment are tried again."""
    while (sign := lease.others("").get(worker_id)) is not None:
        lease.take_over(worker_id, sign)


def declare_all_dead() -> None:
    for worker_id in Worker.objects.values_list("pk", flat=True):
        declare_dead(worker_id)


def expire(worker_id: str) -> None:
    """Let a worker's lease be over by the database's clock; others have not noticed yet."""
    Worker.objects.filter(pk=worker_id).update(lease_until=F("lease_until") - timedelta(hours=1))
