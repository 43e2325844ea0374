"""Schedules in the admin: when they run and why they are paused, without the words of their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin.base import ReadOnly, time_column
from chat.admin.shares import SessionColumn
from chat.models import Schedule
from chat.recurrence import from_cron
from chat.rendering.text.schedule_words import outcome_words, pause_words, rhythm_words

if TYPE_CHECKING:
    Schedules = admin.ModelAdmin[Schedule]
else:
    Schedules = admin.ModelAdmin

NEXT_AT, LAST_RUN_AT = time_column(Schedule, "next_at"), time_column(Schedule, "last_run_at")


@admin.register(Schedule)
class ScheduleAdmin(ReadOnly, SessionColumn, Schedules):
    """The schedules that are not deleted. Their users change them; archiving a session pauses those in it."""

    list_display = ("id", "session", "owner", "rhythm", "zone", "is_on", NEXT_AT, LAST_RUN_AT, "outcome", "pause")
    list_display_links = ("id",)
    list_filter = ("is_on",)
    list_select_related = ("owner", "session")
    search_fields = ("id", "session__id", "owner__username")
    fields = ("id", "session", "owner", "rhythm", "zone", "is_on", NEXT_AT, LAST_RUN_AT, "outcome", "pause")
    ordering = ("next_at", "pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        return super().get_queryset(request).filter(removed_at=None).defer("text")

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @admin.display(description=_("Repeat"), ordering="cron")
    def rhythm(self, row: Schedule) -> str:
        return rhythm_words(from_cron(row.cron))

    @admin.display(description=_("Last outcome"))
    def outcome(self, row: Schedule) -> str:
        return outcome_words(row.last_outcome, row.last_error) or "—"

    @admin.display(description=_("Paused"), ordering="paused")
    def pause(self, row: Schedule) -> str:
        return pause_words(row.paused) or "—"
