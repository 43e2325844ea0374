"""The state of a session's run: its turn, the claim of a worker with a fencing epoch, and the workers' leases."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from chat import ids
from chat.models.session import Session
from chat.models.workspace_id import WorkspaceIdField


class RunState(models.TextChoices):
    """The state of a session's run.

    idle → running: a turn begins. running ⇄ waiting: the turn waits for users or other agents, and continues. running
    or waiting → cancelling: a user has stopped it. running or cancelling → idle: the turn has ended; if messages are
    queued, the next turn is running instead.

    A waiting run has no worker. Statements in `chat/services/messages/starting.py` repeat these values.
    """

    IDLE = "idle"
    RUNNING = "running"
    CANCELLING = "cancelling"
    WAITING = "waiting"


class Worker(models.Model):
    """A process that runs sessions.

    The worker renews `lease_until` while it lives. Other workers take over its sessions when `lease_until` has not
    changed for `lease_seconds` by their own clock, or when its process is known to have ended
    (`chat/runs/liveness.py`). A `draining` worker was asked to claim no sessions and to hand over its own. `capacity`
    is the most sessions that it may run at a time.
    """

    id = models.CharField(primary_key=True, max_length=32, default=ids.worker_id)
    label = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    lease_until = models.DateTimeField()
    lease_seconds = models.FloatField(db_default=10.0)
    draining = models.BooleanField(default=False, db_default=False)
    capacity = models.PositiveIntegerField(null=True)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return self.label or self.id


class SessionRun(models.Model):
    """The run of one session.

    `wanted` counts the requests to run and `done` the requests served. A run is due while they differ, since
    `due_since`. `state` and `turn_id` describe the open turn, and `stopped_by` is the user who asked to stop it.

    `owner` is the worker that has the claim, `claimant` the worker of the last claim, even after its release, and
    `epoch` the number of the claim. Each write of a run is conditional on owner and epoch, so that a worker that has
    lost its claim cannot write (RUN-15). The epoch alone is not enough, because a database failover that loses the last
    transactions can issue the same number twice. `written` is the number of the claim's last committed job
    (`chat/services/runs/recording.py`). `attempts` counts the claims of the open turn since its last finished response.
    These are not the attempts at an answer that retries make. `leaving_epoch` is the claim whose worker was asked to
    hand the session over to another one.
    """

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True, related_name="run")
    workspace_id = WorkspaceIdField()
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.IDLE)
    turn_id = models.CharField(max_length=32, blank=True)
    turn_started_at = models.DateTimeField(null=True, blank=True)
    # The time since when the open turn waits for people. It stays until the run is claimed again.
    waiting_since = models.DateTimeField(null=True, blank=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    # The user who started the present or last turn, whose quotas count it.
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    wanted = models.PositiveBigIntegerField(default=0)
    done = models.PositiveBigIntegerField(default=0)
    due_since = models.DateTimeField(db_default=Now())
    epoch = models.PositiveBigIntegerField(default=0)
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, blank=True, related_name="runs", db_index=False)
    claimant = models.CharField(max_length=32, blank=True, db_default="")
    written = models.PositiveBigIntegerField(db_default=0)
    attempts = models.PositiveIntegerField(db_default=0)
    leaving_epoch = models.PositiveBigIntegerField(null=True, blank=True)
    # True if the open turn waits only for other agents, not for people.
    delegating = models.BooleanField(default=False, db_default=False)
    # True if the open turn has no messages, and its worker summarizes earlier ones
    # (`chat/services/runs/compaction.py`).
    compacting = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        indexes = (
            models.Index(
                fields=["due_since"],
                name="run_due",
                condition=models.Q(wanted__gt=models.F("done"), owner__isnull=True),
            ),
            models.Index(fields=["waiting_since"], name="run_waiting", condition=models.Q(state=RunState.WAITING)),
            models.Index(fields=["started_by"], name="run_at_work", condition=~models.Q(state=RunState.IDLE)),
            # Only sessions with an owner: nearly all rows have none, so the planner would not use a full index.
            models.Index(fields=["owner"], name="run_by_owner", condition=models.Q(owner__isnull=False)),
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
