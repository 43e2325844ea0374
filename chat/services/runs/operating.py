"""Operators' actions on workers and turns: drain, hand over, close."""

from __future__ import annotations

from django.db import transaction

from chat.models import Session, User
from chat.runs import lease
from chat.services.runs import control


def set_draining(*, worker_id: str, draining: bool) -> bool:
    """Let a worker claim nothing and hand over its sessions, or let it work again. Return False if nothing changes.

    It takes effect with the worker's next heartbeat.
    """
    return lease.set_draining(worker_id, draining)


def hand_over(*, session: Session) -> bool:
    """Let another worker continue a session after its current response. Return False if no worker has it.

    If there is no other worker, the same one continues.
    """
    return lease.ask_to_hand_over(session.pk)


@transaction.atomic
def close(*, session: Session, author: User) -> bool:
    """Stop the open turn, and take it from its worker, which may hang. Return False if no turn is open.

    A worker that hangs can no longer write, and another one writes the end of the turn (RUN-08).
    """
    if not control.cancel(session=session, author=author):
        return False
    lease.take_from_worker(session.pk)
    return True
