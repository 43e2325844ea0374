"""Who runs a session, and how far: the claim with its fencing epoch, and the workers' leases."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat import ids
from chat.models.session import Session


class RunState(models.TextChoices):
    """idle → running → (cancelling | waiting) → idle; a waiting run goes on as running when it is answered."""

    IDLE = "idle"
    RUNNING = "running"
    CANCELLING = "cancelling"
    WAITING = "waiting"


class Worker(models.Model):
    """A process that runs sessions. Its claims hold until `lease_until`, which it moves on while it lives."""

    id = models.CharField(primary_key=True, max_length=32, default=ids.worker_id)
    label = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.label or self.id


class SessionRun(models.Model):
    """The run of one session.

    `wanted` counts the requests to run, `done` those that were served: work is due while they differ. `owner` is
    the worker that has the claim, `epoch` the claim's number: every write of a run is conditional on it, so that a
    worker which lost its claim cannot write (RUN-15). `state` and `turn_id` tell of the open turn, `stopped_by` who
    asked to stop it.
    """

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True, related_name="run")
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.IDLE)
    turn_id = models.CharField(max_length=32, blank=True)
    turn_started_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    # Whose turn it is, or was: their quotas count it.
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    wanted = models.PositiveBigIntegerField(default=0)
    done = models.PositiveBigIntegerField(default=0)
    epoch = models.PositiveBigIntegerField(default=0)
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, blank=True, related_name="runs")

    class Meta:
        indexes = (
            models.Index(
                fields=["session"],
                name="run_due",
                condition=models.Q(wanted__gt=models.F("done"), owner__isnull=True),
            ),
            models.Index(fields=["started_by"], name="run_at_work", condition=~models.Q(state=RunState.IDLE)),
        )
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state=RunState.IDLE, turn_id="")
                | (~models.Q(state=RunState.IDLE) & ~models.Q(turn_id="")),
                name="run_turn_iff_not_idle",
            ),
        )

    def __str__(self) -> str:
        return f"{self.session_id}: {self.state}"
