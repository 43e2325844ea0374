"""Workers and the runs of sessions in the admin, with actions to drain workers and to hand over or close turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.db.models import Count, F, Model, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.utils.translation import gettext_lazy as _

from chat.admin import audit_log
from chat.admin.base import NamedChoicesFilter, ReadOnly
from chat.admin.permissions import StaffRequest
from chat.admin.shares import SessionColumn
from chat.models import RunState, SessionRun, Worker
from chat.rendering.text.formatting import spelled_duration
from chat.services.runs import operating

if TYPE_CHECKING:
    Workers = admin.ModelAdmin[Worker]
    Runs = admin.ModelAdmin[SessionRun]
else:
    Workers = Runs = admin.ModelAdmin

Row = TypeVar("Row", bound=Model)
# The maximum number of rows of an action, because the confirmation page lists each one.
MAX_ROWS = 50
STATES = {
    RunState.RUNNING: _("running"),
    RunState.CANCELLING: _("stopping"),
    RunState.WAITING: _("waiting for an answer"),
    RunState.IDLE: _("idle"),
}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The texts of a confirmation page: its title, the consequence of the action, and the button."""

    title: Any
    consequence: Any
    button: Any


DRAIN = Confirmation(
    _("Drain these workers?"),
    _(
        "The workers take no more sessions. They finish answers that are being written, then other workers continue. "
        "If there are no others, messages wait until a worker takes sessions again."
    ),
    _("Drain"),
)
HAND_OVER = Confirmation(
    _("Hand these turns over?"),
    _("After its current response, each turn continues on another worker, if there is one. Nothing is lost."),
    _("Hand over"),
)
CLOSE = Confirmation(
    _("Close these turns?"),
    _(
        "The turns are stopped immediately and taken from their worker, even if it doesn’t respond. Partial answers "
        "are kept, and running tools count as interrupted. Messages in the queue wait until someone sends them."
    ),
    _("Close the turns"),
)


def age(since: datetime | None) -> str:
    """Return the time since `since` as a text in the user's language, or "—" for None."""
    if since is None:
        return "—"
    seconds = max(0.0, (timezone.now() - since).total_seconds())
    return timesince(since) if seconds >= 60 else spelled_duration(seconds)


def ago(at: datetime) -> str:
    """Return how long ago `at` was, such as "5 seconds ago", in the user's language."""
    if timezone.now() - at < timedelta(seconds=1):
        return gettext("just now")
    return gettext("%(time)s ago") % {"time": age(at)}


class OperatedByPermission(ReadOnly):
    """A mixin for rows that cannot be edited or deleted. Staff with the permission to change them may run actions."""

    opts: Any

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        user: Any = request.user
        return bool(user.has_perm(f"chat.change_{self.opts.model_name}"))


def confirmation_page(
    model_admin: admin.ModelAdmin[Any],
    request: HttpRequest,
    confirmation: Confirmation,
    names: Iterable[str],
    pks: list[Any],
) -> HttpResponse | None:
    """Return the confirmation page, or None if the request contains the confirmation."""
    if request.POST.get("sure") == "yes":
        return None
    values = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.model._meta,
        "title": confirmation.title,
        "confirmation": confirmation,
        "rows": list(zip(pks, names, strict=True)),
        "action": request.POST.get("action", ""),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return render(request, "admin/chat/confirm.html", values)


@admin.action(description=gettext_lazy("Drain…"), permissions=["operate"])
def drain(model_admin: WorkerAdmin, request: StaffRequest, chosen: QuerySet[Worker]) -> HttpResponse | None:
    workers = _first(request, chosen.filter(draining=False))
    page = confirmation_page(model_admin, request, DRAIN, map(str, workers), [worker.pk for worker in workers])
    if page is None:
        _set_draining(request, workers, draining=True)
    return page


@admin.action(description=gettext_lazy("Take sessions again"), permissions=["operate"])
def undrain(model_admin: WorkerAdmin, request: StaffRequest, chosen: QuerySet[Worker]) -> None:
    _set_draining(request, _first(request, chosen.filter(draining=True)), draining=False)


def _first(request: StaffRequest, chosen: QuerySet[Row]) -> list[Row]:
    """Return the first MAX_ROWS of the chosen rows, and warn the user if there are more."""
    rows = list(chosen[: MAX_ROWS + 1])
    if len(rows) > MAX_ROWS:
        text = gettext("You can change %(count)d rows at a time. These are the first ones.")
        messages.warning(request, text % {"count": MAX_ROWS})
    return rows[:MAX_ROWS]


def _set_draining(request: StaffRequest, workers: list[Worker], *, draining: bool) -> None:
    changed = 0
    for worker in workers:
        with transaction.atomic():
            if operating.set_draining(worker_id=worker.pk, draining=draining):
                changed += 1
                audit_log.log_row(request.user, worker, audit_log.DRAINED if draining else audit_log.UNDRAINED)
    text = ngettext("Changed %(count)d worker.", "Changed %(count)d workers.", changed)
    messages.success(request, text % {"count": changed})


@admin.register(Worker)
class WorkerAdmin(OperatedByPermission, Workers):
    when_empty = _("No workers. Workers run the agents: start one with “manage.py runagents”.")
    fields = list_display = ("named", "status", "running", "limit", "started", "renewed")
    show_facets = admin.ShowFacets.NEVER
    search_fields = ("label", "id")
    ordering = ("started_at",)
    list_per_page = 50
    actions = (drain, undrain)  # type: ignore[assignment]  # they take a StaffRequest: the admin site lets only staff in

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        # The lease is compared with the database's clock, because the clocks of the processes may differ.
        is_alive = Q(lease_until__gt=Now())
        return super().get_queryset(request).annotate(run_count=Count("runs"), is_alive=is_alive)

    @admin.display(description=_("worker"), ordering="label")
    def named(self, worker: Any) -> str:
        return f"{worker.label or '—'} ({worker.pk})"

    @admin.display(description=_("status"))
    def status(self, worker: Any) -> str:
        if not worker.is_alive:
            return gettext("no heartbeat")
        return gettext("draining") if worker.draining else gettext("working")

    @admin.display(description=_("sessions"), ordering="run_count")
    def running(self, worker: Any) -> int:
        return int(worker.run_count)

    @admin.display(description=_("capacity"), ordering="capacity")
    def limit(self, worker: Worker) -> str:
        return str(worker.capacity or "—")

    @admin.display(description=_("age"), ordering="-started_at")
    def started(self, worker: Worker) -> str:
        return age(worker.started_at)

    @admin.display(description=_("last heartbeat"), ordering="-lease_until")
    def renewed(self, worker: Worker) -> str:
        return ago(worker.lease_until - timedelta(seconds=worker.lease_seconds))


def _name_of(run: SessionRun) -> str:
    parts = [run.session_id, str(STATES[RunState(run.state)]), age(run.turn_started_at)]
    return ", ".join([*parts, run.owner.label if run.owner is not None else gettext("no worker")])


@admin.action(description=gettext_lazy("Hand over to another worker…"), permissions=["operate"])
def hand_over(model_admin: RunAdmin, request: StaffRequest, chosen: QuerySet[SessionRun]) -> HttpResponse | None:
    def ask(run: SessionRun) -> bool:
        done = operating.hand_over(session=run.session)
        if done:
            audit_log.log_change(request.user, run.session, audit_log.HANDED_OVER)
        return done

    return _operate(model_admin, request, HAND_OVER, chosen.filter(owner__isnull=False), ask)


@admin.action(description=gettext_lazy("Close the turn…"), permissions=["operate"])
def close(model_admin: RunAdmin, request: StaffRequest, chosen: QuerySet[SessionRun]) -> HttpResponse | None:
    def end(run: SessionRun) -> bool:
        done = operating.close(session=run.session, author=request.user)
        if done:
            audit_log.log_change(request.user, run.session, audit_log.CLOSED)
        return done

    return _operate(model_admin, request, CLOSE, chosen.exclude(state=RunState.IDLE), end)


def _operate(
    model_admin: RunAdmin,
    request: StaffRequest,
    confirmation: Confirmation,
    chosen: QuerySet[SessionRun],
    change: Callable[[SessionRun], bool],
) -> HttpResponse | None:
    runs = _first(request, chosen.select_related("owner", "session"))
    page = confirmation_page(model_admin, request, confirmation, map(_name_of, runs), [run.pk for run in runs])
    if page is not None:
        return page
    changed = 0
    for run in runs:
        with transaction.atomic():
            changed += change(run)
    text = ngettext("Changed %(count)d run.", "Changed %(count)d runs.", changed)
    messages.success(request, text % {"count": changed})
    return None


class StateFilter(NamedChoicesFilter):
    title = _("state")
    parameter_name = column = "state"
    named_choices = STATES


@admin.register(SessionRun)
class RunAdmin(SessionColumn, OperatedByPermission, Runs):
    """The runs that are not idle or are due. Other sessions are not listed."""

    when_empty = _("No turns are running or waiting for a worker.")
    fields = list_display = ("session", "shown_state", "turn_age", "waits", "attempts_made", "worker")
    list_filter = (StateFilter,)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("session", "owner")
    search_fields = ("session__title", "session__id", "owner__label")
    ordering = ("turn_started_at", "due_since")
    list_per_page = 50
    actions = (hand_over, close)  # type: ignore[assignment]  # they take a StaffRequest: the admin site lets only staff in

    def get_queryset(self, request: HttpRequest) -> QuerySet[SessionRun]:
        return super().get_queryset(request).filter(~Q(state=RunState.IDLE) | Q(wanted__gt=F("done")))

    @admin.display(description=_("state"), ordering="state")
    def shown_state(self, run: SessionRun) -> str:
        return str(STATES[RunState(run.state)])

    @admin.display(description=_("age of the turn"), ordering="-turn_started_at")
    def turn_age(self, run: SessionRun) -> str:
        return age(run.turn_started_at)

    @admin.display(description=_("waiting for a worker"), ordering="-due_since")
    def waits(self, run: SessionRun) -> str:
        is_due = run.owner_id is None and run.wanted > run.done
        return age(min(run.due_since, timezone.now())) if is_due else "—"

    @admin.display(description=_("attempts"), ordering="attempts")
    def attempts_made(self, run: SessionRun) -> int:
        return run.attempts

    @admin.display(description=_("worker"), ordering="owner__label")
    def worker(self, run: SessionRun) -> str:
        return str(run.owner) if run.owner is not None else "—"
