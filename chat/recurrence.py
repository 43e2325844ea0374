"""When a schedule is due: the instants of a cron expression in a time zone, and the rhythms that people choose. Pure.

A time of day that a change of the clocks leaves out is due at the next one that exists, and one that exists twice is
due once. Expressions whose minutes or hours begin with a star go by elapsed time through such a change, as in Debian's
cron.
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

LONGEST_CRON = 100
SHORTEST_GAP = timedelta(minutes=5)
# Hours that divide a day. Others would run at different times each day.
EVERY_HOURS = (1, 2, 3, 4, 6, 8, 12)
# Days that each month has. The last day is 0.
LAST_DAY = 0
DAYS_OF_MONTH = (*range(1, 29), LAST_DAY)
Kind = Literal["daily", "weekdays", "weekly", "monthly", "hours", "cron"]
Fault = Literal["form", "never", "too_often", "minute", "hour", "day", "month", "weekday"]
FIELDS: tuple[Fault, ...] = ("minute", "hour", "day", "month", "weekday")
# Names that the tz database has for machines.
_NO_ZONES = {"localtime", "posixrules", "Factory"}

_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class BadCron(ValueError):
    """The expression cannot be used: not one of five fields, a field is wrong, without an instant, or due too often."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a schedule is due, as people choose it.

    `days` are days of the week from 1, Monday, to 7, of a weekly one; `day` is the day of a monthly one; `every` counts
    the hours of an hourly one, which has no `hour`. `cron` is what a person has written.
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
    """Return the names of all time zones that this machine knows."""
    return frozenset(available_timezones() - _NO_ZONES)


def valid_cron(text: str) -> str:
    """Return an expression of five fields in its usual form. Raises BadCron."""
    cron = " ".join(text.upper().split())
    if not cron.isascii() or len(cron) > LONGEST_CRON or len(cron.split()) != 5:
        raise BadCron("form")
    try:
        parsed = CronSim(cron, _SOME_DAY)
    except CronSimError as error:
        raise BadCron("never" if _is_of_no_month(cron) else _wrong_field(cron)) from error
    if _shortest_gap(parsed.minutes, parsed.hours) < SHORTEST_GAP:
        raise BadCron("too_often")
    if next(parsed, None) is None:
        raise BadCron("never")
    return cron


def _wrong_field(cron: str) -> Fault:
    """Return the first field that is wrong by itself."""
    for place, (field, name) in enumerate(zip(cron.split(), FIELDS, strict=True)):
        alone = ["*"] * len(FIELDS)
        alone[place] = field
        try:
            CronSim(" ".join(alone), _SOME_DAY)
        except CronSimError:
            return name
    return "form"


def _is_of_no_month(cron: str) -> bool:
    """Return whether an expression that cronsim refuses is one of a day that its months do not have."""
    minute, hour, day, month, weekday = cron.split()
    try:
        CronSim(f"{minute} {hour} 1 {month} {weekday}", _SOME_DAY)
        CronSim(f"{minute} {hour} {day} * {weekday}", _SOME_DAY)
    except CronSimError:
        return False
    return True


def _shortest_gap(minutes: set[int], hours: set[int]) -> timedelta:
    """Return the shortest time between two instants of a day, or of one and the next."""
    ordered = sorted(minutes)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    if any((hour + 1) % 24 in hours for hour in hours):
        gaps.append(ordered[0] + 60 - ordered[-1])
    return timedelta(minutes=min(gaps, default=60))


def next_after(cron: str, zone: str, after: datetime) -> datetime | None:
    """Return the first instant after a time, in UTC; None if there is none within 50 years."""
    for instant in CronSim(cron, after.astimezone(ZoneInfo(zone))):
        # Of an hour that exists twice, cronsim names the times of the first one.
        if (found := instant.astimezone(UTC)) > after:
            return found
    return None


def latest_until(cron: str, zone: str, since: datetime, now: datetime) -> datetime:
    """Return the last instant up to `now`. `since` is one, and not after `now`."""
    latest = since
    for instant in CronSim(cron, now.astimezone(ZoneInfo(zone)), reverse=True):
        if (found := instant.astimezone(UTC)) <= now:
            latest = max(since, found)
            break
    # Backwards, times of an hour that exists twice, and of one that was left out, can be missed.
    while (after := next_after(cron, zone, latest)) is not None and after <= now:
        latest = after
    return latest


def to_cron(rhythm: Rhythm) -> str:
    """Return the expression of a rhythm. Raises BadCron if a part of it is out of range."""
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
    """Return the rhythm of an expression: a plain one, if there is one, or else the expression itself."""
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
