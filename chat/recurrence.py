"""Compute when a schedule is due: the instants of a cron expression in a time zone, and users' rhythms. Pure.

If a change of the clocks skips a time of day, the schedule is due at the next time that exists. If a time exists twice,
it is due once. Expressions whose minutes or hours begin with a star follow the elapsed time through such a change, as
in Debian's cron.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

MAX_CRON_LENGTH = 100
MIN_GAP = timedelta(minutes=5)
# Hours that divide a day. Others would run at different times each day.
EVERY_HOURS = (1, 2, 3, 4, 6, 8, 12)
# Days that each month has. The last day of a month is 0.
LAST_DAY = 0
DAYS_OF_MONTH = (*range(1, 29), LAST_DAY)
Kind = Literal["daily", "weekdays", "weekly", "monthly", "hours", "cron"]
Fault = Literal["form", "never", "too_often", "minute", "hour", "day", "month", "weekday"]
FIELDS: tuple[Fault, ...] = ("minute", "hour", "day", "month", "weekday")
# Names in the tz database that are not time zones of users.
_NO_ZONES = {"localtime", "posixrules", "Factory"}

_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class BadCron(ValueError):
    """The expression cannot be used: it has not five fields, a field is wrong, or it is due never or too often."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a schedule is due, as users choose it.

    `days` are the days of a weekly rhythm, from 1, Monday, to 7. `day` is the day of a monthly one. `every` is the
    number of hours of an hourly one, which has no `hour`. `cron` is an expression that a user has written.
    """

    kind: Kind
    hour: int = 9
    minute: int = 0
    days: tuple[int, ...] = ()
    day: int = 1
    every: int = 1
    cron: str = ""


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all time zones that this machine has."""
    return frozenset(available_timezones() - _NO_ZONES)


def valid_cron(text: str) -> str:
    """Return an expression of five fields in its usual form. Raise BadCron."""
    cron = " ".join(text.upper().split())
    if not cron.isascii() or len(cron) > MAX_CRON_LENGTH or len(cron.split()) != 5:
        raise BadCron("form")
    try:
        parsed = CronSim(cron, _SOME_DAY)
    except CronSimError as error:
        raise BadCron("never" if _is_of_no_month(cron) else _wrong_field(cron)) from error
    if _shortest_gap(parsed.minutes, parsed.hours) < MIN_GAP:
        raise BadCron("too_often")
    if next(parsed, None) is None:
        raise BadCron("never")
    return cron


def _wrong_field(cron: str) -> Fault:
    """Return the first field that is invalid on its own, or "form"."""
    for place, (field, name) in enumerate(zip(cron.split(), FIELDS, strict=True)):
        alone = ["*"] * len(FIELDS)
        alone[place] = field
        try:
            CronSim(" ".join(alone), _SOME_DAY)
        except CronSimError:
            return name
    return "form"


def _is_of_no_month(cron: str) -> bool:
    """Return whether an expression that cronsim refuses has a day that its months do not have."""
    minute, hour, day, month, weekday = cron.split()
    try:
        CronSim(f"{minute} {hour} 1 {month} {weekday}", _SOME_DAY)
        CronSim(f"{minute} {hour} {day} * {weekday}", _SOME_DAY)
    except CronSimError:
        return False
    return True


def _shortest_gap(minutes: set[int], hours: set[int]) -> timedelta:
    """Return the shortest time between two instants of a day, or of a day and the next."""
    ordered = sorted(minutes)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    if any((hour + 1) % 24 in hours for hour in hours):
        gaps.append(ordered[0] + 60 - ordered[-1])
    return timedelta(minutes=min(gaps, default=60))


def next_after(cron: str, zone: str, after: datetime) -> datetime | None:
    """Return the first instant after a time, in UTC, or None if there is none within 50 years."""
    minute, hour, *_ = cron.split()
    follows_elapsed_time = minute.startswith("*") or hour.startswith("*")
    return (_next_elapsed if follows_elapsed_time else _next_on_clock)(cron, ZoneInfo(zone), after.astimezone(UTC))


def latest_until(cron: str, zone: str, since: datetime, now: datetime) -> datetime:
    """Return the last instant up to `now`. `since` must be an instant that is not after `now`."""
    latest, end = since, now
    # There is no instant between `end` and `now`, and instants are whole minutes.
    while end - latest >= timedelta(minutes=1):
        middle = latest + (end - latest) / 2
        found = next_after(cron, zone, middle)
        if found is None or found > now:
            end = middle
        else:
            latest = found
    return latest


# cronsim gets local times without a time zone: with one, its search misses times, or never ends, if the clocks change
# by half an hour or at a time that is not a whole hour.
def _next_on_clock(cron: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the next instant of an expression that names times of day."""
    for local in CronSim(cron, after.astimezone(zone).replace(tzinfo=None)):
        # If the time exists twice, fold=0 is the first one.
        instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) != local:
            # It is skipped, and `instant` has the offset from before the change. Up to a day can be skipped.
            instant = _next_change(zone, instant - timedelta(days=1, hours=1), instant) or instant
        if instant > after:
            return instant
    return None


def _next_elapsed(cron: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the next instant whose local time matches. A local time that exists twice has two instants."""
    since, start = after, after
    while True:
        offset = _offset(zone, since)
        local = next(CronSim(cron, (start + offset).replace(tzinfo=None)), None)
        if local is None:
            return None
        instant = local.replace(tzinfo=UTC) - offset
        change = _next_change(zone, since, instant)
        if change is None:
            return instant
        since, start = change, change - timedelta(seconds=1)


def _next_change(zone: ZoneInfo, after: datetime, until: datetime) -> datetime | None:
    """Return when the clocks change next, after a time and up to `until`, or None if they do not change."""
    before, end = int(after.timestamp()), int(until.timestamp())
    offset = _offset(zone, after)
    while before < end:
        changed = min(before + 24 * 3600, end)
        if _offset(zone, datetime.fromtimestamp(changed, UTC)) == offset:
            before = changed
            continue
        while changed - before > 1:
            middle = (before + changed) // 2
            if _offset(zone, datetime.fromtimestamp(middle, UTC)) == offset:
                before = middle
            else:
                changed = middle
        return datetime.fromtimestamp(changed, UTC)
    return None


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def to_cron(rhythm: Rhythm) -> str:
    """Return the expression of a rhythm. Raise BadCron if a part of it is out of range."""
    at = f"{rhythm.minute} {rhythm.hour}"
    match rhythm.kind:
        case "daily":
            cron = f"{at} * * *"
        case "weekdays":
            cron = f"{at} * * 1-5"
        case "weekly":
            if not rhythm.days or not set(rhythm.days) <= set(range(1, 8)):
                raise BadCron("form")
            cron = f"{at} * * {','.join(map(str, sorted(set(rhythm.days))))}"
        case "monthly":
            if rhythm.day not in DAYS_OF_MONTH:
                raise BadCron("form")
            cron = f"{at} {'L' if rhythm.day == LAST_DAY else rhythm.day} * *"
        case "hours":
            if rhythm.every not in EVERY_HOURS:
                raise BadCron("form")
            cron = f"{rhythm.minute} {'*' if rhythm.every == 1 else f'0-23/{rhythm.every}'} * * *"
        case "cron":
            cron = rhythm.cron
    return valid_cron(cron)


_MINUTE, _HOUR = r"(?P<minute>[0-5]?\d)", r"(?P<hour>[01]?\d|2[0-3])"
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("daily", re.compile(rf"{_MINUTE} {_HOUR} \* \* \*")),
    ("weekdays", re.compile(rf"{_MINUTE} {_HOUR} \* \* 1-5")),
    ("weekly", re.compile(rf"{_MINUTE} {_HOUR} \* \* (?P<days>[0-7](,[0-7])*)")),
    ("monthly", re.compile(rf"{_MINUTE} {_HOUR} (?P<day>[1-9]|1\d|2[0-8]|L) \* \*")),
    ("hours", re.compile(rf"{_MINUTE} (\*|0-23/(?P<every>2|3|4|6|8|12)) \* \* \*")),
)


def from_cron(cron: str) -> Rhythm:
    """Return the rhythm of an expression: one of the simple kinds if it fits, otherwise the kind "cron"."""
    for kind, form in _FORMS:
        if match := form.fullmatch(cron):
            found = match.groupdict()
            day = found.get("day") or "1"
            days = {int(each) or 7 for each in (found.get("days") or "").split(",") if each}
            return Rhythm(
                kind,
                hour=int(found.get("hour") or 9),
                minute=int(found["minute"]),
                days=tuple(sorted(days)),
                day=LAST_DAY if day == "L" else int(day),
                every=int(found.get("every") or 1),
            )
    return Rhythm("cron", cron=cron)
