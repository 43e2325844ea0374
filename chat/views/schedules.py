"""The dialog of a session's schedules."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from secrets import token_urlsafe
from typing import Any, TypedDict, get_args

from django.conf import settings
from django.http import HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.timesince import timeuntil
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chat.access import is_guest_in, session_for
from chat.errors import Forbidden, Invalid, NoSuchSchedule, NoSuchSession, ServiceError
from chat.models import Session, SessionRole
from chat.queries.schedules import Listed, schedules_of
from chat.recurrence import DAYS_OF_MONTH, EVERY_HOURS, MAX_CRON_LENGTH, BadCron, Kind, Rhythm, from_cron, to_cron
from chat.rendering.text.schedule_words import outcome_words, pause_words, rhythm_words
from chat.services.sessions import schedules as service
from chat.views.requests import SignedInRequest, number, signed_in, status_of
from chat.zones import zone_of

Values = dict[str, Any]
REVISION = re.compile(r"[0-9]{1,18}")
TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(:[0-5]\d)?")
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class ScheduleValues(TypedDict):
    text: str
    cron: str
    zone: str


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def schedules(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the dialog, or run the action `part` and return the dialog's new content as `html` in JSON."""
    session, role = session_for(request.user, session_id)
    if request.method == "GET":
        return render(request, "chat/session/schedules.html", _values(request, session, role))
    part, schedule_id = request.POST.get("part", ""), request.POST.get("schedule", "")
    try:
        if part not in PARTS:
            raise Invalid(_("Choose what to do with the schedule."))
        done = PARTS[part](request, session, schedule_id)
    except (Forbidden, NoSuchSession):
        raise
    except ServiceError as refused:
        is_stale = refused.code == "stale"
        hint = _("Its new values are above. Save again to replace them with yours.") if is_stale else ""
        words = f"{refused.message} {hint}".rstrip()
        if part == "change" and isinstance(refused, NoSuchSchedule):
            part, words = "add", _("This schedule was deleted in the meantime. Your entries are in this form.")
        field = refused.field if isinstance(refused, Invalid) else ""
        about = {"refused_part": part, "refused_id": schedule_id, "refused_field": field}
        given = {"refused": words, **about, "given": request.POST}
        return _answer(request, session, role, given, status=409 if is_stale else status_of(refused))
    return _answer(request, session, role, {"done": done})


def _answer(
    request: SignedInRequest, session: Session, role: SessionRole, more: Values, status: int = 200
) -> HttpResponse:
    values = {**_values(request, session, role, more.get("given")), **more}
    html = render_to_string("chat/session/schedule_list.html", values, request)
    answer = {"done": more.get("done", ""), "message": more.get("refused", ""), "html": html}
    return JsonResponse(answer, status=status)


def _add(request: SignedInRequest, session: Session, _schedule_id: str) -> str:
    key = request.POST.get("key", "")
    service.add(author=request.user, session_id=session.pk, key=key, **_read_form(request.POST))
    return _("Schedule added.")


def _change(request: SignedInRequest, session: Session, schedule_id: str) -> str:
    given, seen = _read_form(request.POST), _seen_revisions(request.POST)
    service.change(author=request.user, session_id=session.pk, schedule_id=schedule_id, seen=seen, **given)
    return _("Schedule saved.")


def _switch(request: SignedInRequest, session: Session, schedule_id: str) -> str:
    is_on = request.POST.get("on") == "yes"
    service.change(author=request.user, session_id=session.pk, schedule_id=schedule_id, is_on=is_on)
    return _("Schedule turned on.") if is_on else _("Schedule turned off.")


def _run(request: SignedInRequest, session: Session, schedule_id: str) -> str:
    sent = service.run_now(author=request.user, session_id=session.pk, schedule_id=schedule_id)
    return _("Added to the queue.") if sent.queued else _("Run started.")


def _remove(request: SignedInRequest, session: Session, schedule_id: str) -> str:
    service.remove(author=request.user, session_id=session.pk, schedule_id=schedule_id)
    return _("Schedule deleted.")


def _restore(request: SignedInRequest, session: Session, schedule_id: str) -> str:
    row = service.restore(author=request.user, session_id=session.pk, schedule_id=schedule_id)
    if row.owner_id == request.user.pk:
        return _("Schedule restored.")
    return _("Schedule restored. It is off, and only %(name)s can turn it on.") % {"name": row.owner.sender}


PARTS: dict[str, Callable[[SignedInRequest, Session, str], str]] = {
    "add": _add,
    "change": _change,
    "switch": _switch,
    "run": _run,
    "remove": _remove,
    "restore": _restore,
}


def _seen_revisions(form: QueryDict) -> set[int] | None:
    """Return the revision that the user edited, in a set, or None. Pages of earlier versions do not send it."""
    text = form.get("revision", "")
    return {int(text) if REVISION.fullmatch(text) else 0} if text else None


def _read_form(form: QueryDict) -> ScheduleValues:
    """Return the values of the form for the service. Raise Invalid."""
    try:
        cron = to_cron(_rhythm(form))
    except BadCron as error:
        if error.fault not in ("never", "too_often") and form.get("kind") != "cron":
            raise Invalid(_("Choose when the schedule runs.")) from error
        cron = form.get("cron", "")  # the service reports what is wrong with it
    return {"text": form.get("text", "").replace("\r\n", "\n"), "cron": cron, "zone": form.get("zone", "").strip()}


def _rhythm(form: QueryDict) -> Rhythm:
    """Return the rhythm in the form. Raise BadCron."""
    kind, time = KINDS.get(form.get("kind", "")), TIME.fullmatch(form.get("time", ""))
    if kind == "cron":
        return Rhythm("cron", cron=form.get("cron", ""))
    if kind == "hours":
        return Rhythm("hours", minute=_number(form, "minute"), every=_number(form, "every"))
    if kind is None or time is None:
        raise BadCron("form")
    days = tuple(number(day) or 0 for day in form.getlist("days")) if kind == "weekly" else ()
    day = _number(form, "day") if kind == "monthly" else 1
    return Rhythm(kind, hour=int(time[1]), minute=int(time[2]), days=days, day=day)


def _number(form: QueryDict, name: str) -> int:
    """Return a number in the form. Raise BadCron."""
    parsed = number(form.get(name, ""))
    if parsed is None:
        raise BadCron("form")
    return parsed


def _values(request: SignedInRequest, session: Session, role: SessionRole, given: QueryDict | None = None) -> Values:
    """Return the template context of the dialog. `given` is a form that was refused."""
    may_schedule = role.covers(SessionRole.EDITOR) and not is_guest_in(request.user, session)
    is_open = session.status == Session.Status.ACTIVE
    fresh = _form("", Rhythm("weekdays"), str(zone_of(request)))
    return {
        "session": session,
        "zone": str(zone_of(request)),
        "may_schedule": may_schedule,
        "is_open": is_open,
        "schedules": [_row(each, request, role, may_schedule=may_schedule) for each in schedules_of(session)],
        "fresh": fresh,
        "key": token_urlsafe(9),
        "refused_form": _refused_values(given) if given is not None and "kind" in given else None,
        "kinds": KINDS,
        "weekdays": [(day + 1, name) for day, name in WEEKDAYS.items()],
        "days": DAYS_OF_MONTH,
        "hours": EVERY_HOURS,
        "longest_cron": MAX_CRON_LENGTH,
        "longest_text": settings.MAX_MESSAGE_CHARS,
        "most": service.MAX_SCHEDULES,
    }


def _time_until(moment: datetime) -> str:
    """Return the time until a moment in words, or "" if it is less than a minute."""
    now = timezone.now()
    return timeuntil(moment, now, depth=1) if moment - now >= timedelta(minutes=1) else ""


def _row(listed: Listed, request: SignedInRequest, role: SessionRole, *, may_schedule: bool) -> Values:
    row, is_own = listed.row, listed.row.owner_id == request.user.pk
    rhythm = from_cron(row.cron)
    return {
        "row": row,
        # Times are shown in the user's time zone, but the rhythm is in the schedule's time zone.
        "is_elsewhere": row.zone != str(zone_of(request)),
        "is_own": is_own,
        "may_edit": may_schedule and is_own,
        "may_remove": may_schedule and (is_own or role == SessionRole.OWNER),
        "rhythm": rhythm_words(rhythm),
        "pause": pause_words(row.paused),
        "next_in": _time_until(row.next_at) if row.next_at else "",
        "outcome": outcome_words(listed.outcome, row.last_error),
        "is_bad": listed.outcome in ("failed", "refused"),
        "has_message": listed.has_message,
        "form": _form(row.text, rhythm, row.zone),
    }


def _form(text: str, rhythm: Rhythm, zone: str) -> Values:
    return {
        "text": text,
        "zone": zone,
        "kind": rhythm.kind,
        "time": f"{rhythm.hour:02}:{rhythm.minute:02}",
        "minute": rhythm.minute,
        "days": [str(day) for day in rhythm.days],
        "day": rhythm.day,
        "every": rhythm.every,
        "cron": rhythm.cron,
    }


def _refused_values(given: QueryDict) -> Values:
    """Return the values of a refused form, so that the user can correct them."""
    names = ("text", "zone", "kind", "time", "minute", "cron")
    chosen = {"day": number(given.get("day", "")), "every": number(given.get("every", ""))}
    return {**{name: given.get(name, "") for name in names}, "days": given.getlist("days"), **chosen}
