"""Schedules in the admin: when they run and why they are paused, with actions to pause and resume them.

The texts of their messages are not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.utils.translation import gettext_lazy as _

from chat.admin import audit_log
from chat.admin.base import HiddenColumns, NamedChoicesFilter, time_column
from chat.admin.permissions import StaffRequest
from chat.admin.runs import MAX_ROWS, Confirmation, OperatedByPermission, confirmation_page
from chat.admin.shares import SessionColumn
from chat.errors import ServiceError
from chat.models import Schedule
from chat.recurrence import from_cron
from chat.rendering.text.schedule_words import PAUSES, outcome_words, pause_words, rhythm_words
from chat.services.sessions import schedules as service

if TYPE_CHECKING:
    Schedules = admin.ModelAdmin[Schedule]
else:
    Schedules = admin.ModelAdmin

NEXT_AT, LAST_RUN_AT = time_column(Schedule, "next_at"), time_column(Schedule, "last_run_at")
COLUMNS = ("id", "session", "owner", "is_on", "pause_reason", "rhythm", "zone", NEXT_AT, LAST_RUN_AT, "outcome")
PAUSE = Confirmation(
    _("Pause these schedules?"),
    _(
        "They won’t send messages until they’re resumed. Turns that are already running continue. The people who made "
        "them see that an administrator paused them, and can turn them on again."
    ),
    _("Pause"),
)


class PauseFilter(NamedChoicesFilter):
    title, parameter_name, column, named_choices = _("reason for pausing"), "paused", "paused", PAUSES


@admin.action(description=gettext_lazy("Pause…"), permissions=["operate"])
def pause(model_admin: ScheduleAdmin, request: StaffRequest, chosen: QuerySet[Schedule]) -> HttpResponse | None:
    rows = _first(request, chosen.filter(is_on=True))
    page = confirmation_page(model_admin, request, PAUSE, map(_name_of, rows), [row.pk for row in rows])
    if page is not None:
        return page

    def turn_off(row: Schedule) -> bool:
        return service.pause_for_staff(author=request.user, schedule_id=row.pk, session_id=row.session_id)

    changed = _apply(request, rows, turn_off, audit_log.PAUSED)
    if changed:
        text = ngettext("Paused %(count)d schedule.", "Paused %(count)d schedules.", changed)
        messages.success(request, text % {"count": changed})
    return None


@admin.action(description=gettext_lazy("Resume"), permissions=["operate"])
def resume(model_admin: ScheduleAdmin, request: StaffRequest, chosen: QuerySet[Schedule]) -> None:
    def turn_on(row: Schedule) -> bool:
        return service.resume_for_staff(author=request.user, schedule_id=row.pk, session_id=row.session_id)

    rows = _first(request, chosen.filter(is_on=False))
    changed = _apply(request, rows, turn_on, audit_log.RESUMED)
    if not rows:
        messages.info(request, gettext("The selected schedules are already on."))
    if changed:
        text = ngettext("Resumed %(count)d schedule.", "Resumed %(count)d schedules.", changed)
        messages.success(request, text % {"count": changed})


def _first(request: StaffRequest, chosen: QuerySet[Schedule]) -> list[Schedule]:
    """Return the first MAX_ROWS of the chosen rows, and warn the user if there are more."""
    rows = list(chosen.select_related("owner")[: MAX_ROWS + 1])
    if len(rows) > MAX_ROWS:
        text = gettext("You can change %(count)d schedules at a time. These are the first ones.")
        messages.warning(request, text % {"count": MAX_ROWS})
    return rows[:MAX_ROWS]


def _apply(request: StaffRequest, rows: list[Schedule], change: Callable[[Schedule], bool], message: str) -> int:
    """Change and log each row in its own transaction, and show the errors. Return the number of changed rows."""
    changed = 0
    errors: set[str] = set()
    for row in rows:
        try:
            with transaction.atomic():
                if change(row):
                    changed += 1
                    audit_log.log_row(request.user, row, message)
        except ServiceError as error:
            errors.add(error.message)
    for words in sorted(errors):
        messages.error(request, words)
    return changed


def _name_of(row: Schedule) -> str:
    return f"{row.owner.sender}, {rhythm_words(from_cron(row.cron))}, {row.session_id}"


@admin.register(Schedule)
class ScheduleAdmin(HiddenColumns, SessionColumn, OperatedByPermission, Schedules):
    """The schedules that were not removed. Only their owners can edit them."""

    hidden_columns = ("text",)
    when_empty = _("No schedules yet. Members add them in a session, to send messages at set times.")
    list_display = fields = COLUMNS
    list_display_links = ("id",)
    list_filter = ("is_on", PauseFilter)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("owner", "session")
    search_fields = ("id", "session__id", "owner__username")
    ordering = ("next_at", "pk")
    actions = (pause, resume)  # type: ignore[assignment]  # they take a StaffRequest: the admin site lets only staff in

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        return super().get_queryset(request).filter(removed_at=None).defer("text")

    @admin.display(description=_("Repeat"), ordering="cron")
    def rhythm(self, row: Schedule) -> str:
        return rhythm_words(from_cron(row.cron))

    @admin.display(description=_("Last outcome"))
    def outcome(self, row: Schedule) -> str:
        return outcome_words(row.last_outcome, row.last_error) or "—"

    @admin.display(description=_("Paused"), ordering="paused")
    def pause_reason(self, row: Schedule) -> str:
        return pause_words(row.paused) or "—"
