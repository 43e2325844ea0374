"""Schedules in words: how often they are due, how the last run ended, and why a schedule is paused."""

from __future__ import annotations

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.languages import listed
from chat.models import Schedule
from chat.recurrence import LAST_DAY, Rhythm

OUTCOMES = {
    "queued": gettext_lazy("Queued"),
    "held": gettext_lazy("On hold"),
    "running": gettext_lazy("Running"),
    "waiting": gettext_lazy("Running"),
    "completed": gettext_lazy("Completed"),
    "interrupted": gettext_lazy("Stopped"),
    "failed": gettext_lazy("Failed"),
    "withdrawn": gettext_lazy("Message deleted"),
}
REFUSALS = {
    "quota_exceeded": gettext_lazy("Not sent: a usage limit was reached"),
    "disk_full": gettext_lazy("Not sent: the server’s disk is full"),
}
PAUSES = {
    Schedule.Pause.ACCESS: gettext_lazy("Paused: the person who created it can’t write here anymore."),
    Schedule.Pause.ARCHIVED: gettext_lazy("Paused because the session was archived."),
    Schedule.Pause.DELETED: gettext_lazy("Paused because the session was deleted."),
    Schedule.Pause.FAILURES: gettext_lazy("Paused after 5 failed runs in a row."),
    Schedule.Pause.INVALID: gettext_lazy("Paused: its times are no longer valid. Edit it to resume."),
    Schedule.Pause.STAFF: gettext_lazy("Paused by an administrator."),
}


def rhythm_words(rhythm: Rhythm) -> str:
    """Return how often a schedule is due, such as "Every weekday at 09:00"."""
    words = {"time": f"{rhythm.hour:02}:{rhythm.minute:02}", "minute": f"{rhythm.minute:02}", "cron": rhythm.cron}
    match rhythm.kind:
        case "daily":
            return _("Every day at %(time)s") % words
        case "weekdays":
            return _("Every weekday at %(time)s") % words
        case "weekly":
            return _("Every %(days)s at %(time)s") % {**words, "days": _days(rhythm)}
        case "monthly":
            if rhythm.day == LAST_DAY:
                return _("On the last day of each month at %(time)s") % words
            return _("On day %(day)s of each month at %(time)s") % {**words, "day": rhythm.day}
        case "hours":
            if rhythm.every == 1:
                return _("Every hour at minute %(minute)s") % words
            return _("Every %(count)s hours at minute %(minute)s") % {**words, "count": rhythm.every}
        case "cron":
            return _("By cron expression %(cron)s") % words


def _days(rhythm: Rhythm) -> str:
    *others, last = [str(WEEKDAYS[day - 1]) for day in rhythm.days]
    return _("%(days)s and %(day)s") % {"days": listed(others), "day": last} if others else last


def outcome_words(outcome: str, error: str = "") -> str:
    """Return the outcome of a run, in words. `outcome` is from `chat.queries.schedules`, `error` a refusal's code."""
    if outcome == Schedule.Outcome.REFUSED:
        return str(REFUSALS.get(error, _("Not sent")))
    return str(OUTCOMES.get(outcome, ""))


def pause_words(reason: str) -> str:
    """Return why a schedule is paused, or "" if it is not."""
    return str(PAUSES.get(Schedule.Pause(reason), "")) if reason in Schedule.Pause.values else ""
