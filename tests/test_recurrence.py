"""The times at which schedules are due: pure functions of a cron expression, a time zone and a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.recurrence import (
    DAYS_OF_MONTH,
    EVERY_HOURS,
    MAX_CRON_LENGTH,
    MIN_GAP,
    BadCron,
    Fault,
    Kind,
    Rhythm,
    from_cron,
    latest_until,
    next_after,
    to_cron,
    valid_cron,
    zone_names,
)
from chat.rendering.text.schedule_words import rhythm_words

# Time zones whose clocks change by an hour, by half an hour, at midnight, and not at all.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata", "UTC")
times = st.datetimes(datetime(2024, 1, 1), datetime(2029, 1, 1), timezones=st.just(UTC))
zones = st.sampled_from(ZONES)


@st.composite
def rhythms(draw: st.DrawFn) -> Rhythm:
    """Return a rhythm that users can choose in the dialog."""
    kind: Any = draw(st.sampled_from([kind for kind in get_args(Kind) if kind != "cron"]))
    hour, minute = draw(st.integers(0, 23)), draw(st.integers(0, 59))
    if kind == "hours":
        return Rhythm("hours", minute=minute, every=draw(st.sampled_from(EVERY_HOURS)))
    days: tuple[int, ...] = ()
    if kind == "weekly":
        days = tuple(sorted(draw(st.sets(st.integers(1, 7), min_size=1))))
    day = draw(st.sampled_from(DAYS_OF_MONTH)) if kind == "monthly" else 1
    return Rhythm(kind, hour=hour, minute=minute, days=days, day=day)


crons = rhythms().map(to_cron) | st.sampled_from(
    ["*/5 * * * *", "*/30 1-4 * * *", "15,45 2 * * *", "0 0 L * *", "0 12 * * MON#2", "30 2 29 2 *", "7 */2 * * SUN"]
)


def at(text: str, zone: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def instants(cron: str, zone: str, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < count:
        following = next_after(cron, zone, found[-1] if found else after)
        assert following is not None
        found.append(following)
    return found


@given(rhythms())
def test_rhythm_survives_its_expression(rhythm: Rhythm) -> None:
    """UI-24: a schedule is edited as it was made."""
    assert from_cron(to_cron(rhythm)) == rhythm


@given(crons, zones, times)
def test_next_instant_fits_the_expression(cron: str, zone: str, now: datetime) -> None:
    """RUN-19: it is later, it is a whole minute, and instants come at least five minutes apart."""
    found = instants(cron, zone, now, 4)
    assert found[0] > now
    assert all((each.second, each.microsecond, each.tzinfo) == (0, 0, UTC) for each in found)
    clocks_change = {each.astimezone(ZoneInfo(zone)).utcoffset() for each in (now, *found)}
    shortest = MIN_GAP if len(clocks_change) == 1 else timedelta(minutes=1)
    assert all(later - earlier >= shortest for earlier, later in pairwise(found))


@given(crons, zones, times, st.integers(0, 60 * 24 * 40), st.integers(0, 59))
def test_last_missed_instant_is_the_newest(cron: str, zone: str, now: datetime, minutes: int, seconds: int) -> None:
    """RUN-19: after an outage of any length, nothing between it and the present time is due."""
    first = next_after(cron, zone, now)
    assert first is not None
    back = first + timedelta(minutes=minutes, seconds=seconds)
    newest = latest_until(cron, zone, first, back)
    assert first <= newest <= back
    following = next_after(cron, zone, newest)
    assert following is not None
    assert following > back


@given(
    st.text(max_size=120)
    | st.lists(st.text("0123456789*/,-LW#MONJAN", max_size=8), min_size=5, max_size=5).map(" ".join)
)
def test_any_text_is_an_expression_or_an_error(text: str) -> None:
    """RUN-19, MSG-12: nothing else is raised, and what is accepted has a next instant."""
    try:
        cron = valid_cron(text)
    except BadCron:
        return
    assert valid_cron(cron) == cron
    assert next_after(cron, "Europe/Berlin", datetime(2026, 1, 1, tzinfo=UTC)) is not None
    assert rhythm_words(from_cron(cron))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "form"),
        ("0 9 * *", "form"),
        ("0 0 9 * * *", "form"),
        ("61 9 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 9 32 * *", "day"),
        ("0 9 1 13 *", "month"),
        ("0 9 * * 8", "weekday"),
        ("0 9 * * \x00", "weekday"),
        ("٠ ٩ * * *", "form"),
        ("0 9 * * " + "1," * MAX_CRON_LENGTH + "1", "form"),
        ("* * * * *", "too_often"),
        ("*/4 9 * * *", "too_often"),
        ("0,58 * * * *", "too_often"),
        ("0 0 31 2,4 *", "never"),
        ("0 0 LW * */7", "never"),
    ],
)
def test_bad_expressions_say_what_is_wrong(text: str, fault: Fault) -> None:
    """RUN-19, MSG-12: at most every five minutes, and not never."""
    with pytest.raises(BadCron) as refused:
        valid_cron(text)
    assert refused.value.fault == fault


def test_minutes_at_both_ends_of_a_single_hour_are_far_apart() -> None:
    """RUN-19: 09:02 and 09:58 are 56 minutes apart, and 23 hours."""
    assert valid_cron("2,58  9 * * mon") == "2,58 9 * * MON"


def test_time_that_does_not_exist_runs_at_the_next_valid_one() -> None:
    """RUN-19: on 29 March 2026, Berlin has no 02:30."""
    found = instants("30 2 * * *", "Europe/Berlin", at("2026-03-28T12:00", "Europe/Berlin"), 2)
    assert found == [at("2026-03-29T03:00", "Europe/Berlin"), at("2026-03-30T02:30", "Europe/Berlin")]


def test_time_that_exists_twice_runs_once() -> None:
    """RUN-19: on 25 October 2026, Berlin has 02:30 twice."""
    found = instants("30 2 * * *", "Europe/Berlin", at("2026-10-24T12:00", "Europe/Berlin"), 2)
    assert found == [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 26, 1, 30, tzinfo=UTC)]
    second_time = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # the second 02:10 of that day
    assert next_after("30 2 * * *", "Europe/Berlin", second_time) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_every_other_hour_follows_the_clock_and_every_hour_the_time() -> None:
    """RUN-19: 24 or 25 hours of a day, but not two runs for one time on the clock."""
    before = at("2026-10-25T00:30", "Europe/Berlin")
    clock = [
        each.astimezone(ZoneInfo("Europe/Berlin")) for each in instants("0 0-23/2 * * *", "Europe/Berlin", before, 2)
    ]
    assert [each.hour for each in clock] == [2, 4]
    hours = instants("0 * * * *", "Europe/Berlin", before, 4)
    assert {later - earlier for earlier, later in pairwise(hours)} == {timedelta(hours=1)}


def test_long_outage_is_looked_at_from_its_end() -> None:
    """RUN-19: ten years of every five minutes are not gone through."""
    first, now = datetime(2016, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 3, 4, 5, tzinfo=UTC)
    assert latest_until("*/5 * * * *", "America/New_York", first, now) == datetime(2026, 1, 1, tzinfo=UTC)


def test_last_missed_instant_in_an_hour_that_exists_twice() -> None:
    """RUN-19: 02:45 is over when it is 02:10 for the second time; and an instant is due at its very second."""
    day_before, night = datetime(2026, 10, 24, 0, 45, tzinfo=UTC), datetime(2026, 10, 25, 0, 45, tzinfo=UTC)
    assert latest_until("45 2 * * *", "Europe/Berlin", day_before, night + timedelta(minutes=25)) == night
    assert latest_until("45 2 * * *", "Europe/Berlin", day_before, night) == night


# Nights in which clocks change by an hour, by half an hour, at 02:45, at midnight, by two hours, and by a whole day.
NIGHTS = [
    ("Europe/Berlin", datetime(2026, 3, 29)),
    ("Europe/Berlin", datetime(2026, 10, 25)),
    ("Australia/Lord_Howe", datetime(2026, 4, 5)),
    ("Australia/Lord_Howe", datetime(2026, 10, 4)),
    ("Pacific/Chatham", datetime(2026, 4, 5)),
    ("Pacific/Chatham", datetime(2026, 9, 27)),
    ("America/Havana", datetime(2026, 3, 8)),
    ("Antarctica/Troll", datetime(2026, 3, 29)),
    ("Pacific/Apia", datetime(2011, 12, 30)),
]


@pytest.mark.parametrize(("zone", "night"), NIGHTS, ids=str)
@pytest.mark.parametrize("cron", ["*/15 2 * * *", "0 */2 * * *", "30 * * * *", "*/30 */3 * * *"])
def test_elapsed_time_is_followed_through_any_change(cron: str, zone: str, night: datetime) -> None:
    """RUN-19: each minute whose local time matches is due, and a search from a later time finds the last of them.

    cronsim itself left out some of these times. Its search from a later time did not end in Chatham.
    """
    since, minutes, hours = night.replace(tzinfo=UTC) - timedelta(days=1), *cron.split()[:2]
    every = [since + timedelta(minutes=minute) for minute in range(1, 60 * 48)]
    local = {each: each.astimezone(ZoneInfo(zone)) for each in every}
    due = [each for each in every if local[each].minute in _of(minutes, 60) and local[each].hour in _of(hours, 24)]
    assert instants(cron, zone, since, len(due)) == due
    for now in every[every.index(due[0]) :: 97]:
        assert latest_until(cron, zone, due[0], now) == max(each for each in due if each <= now)


def _of(field: str, size: int) -> set[int]:
    """Return the values of a field such as "*", "*/2" or "30"."""
    if field.startswith("*"):
        return set(range(0, size, int(field.removeprefix("*").removeprefix("/") or 1)))
    return {int(field)}


@pytest.mark.parametrize(
    ("zone", "skipped", "next_valid"),
    [
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-04T02:30"),
        ("Pacific/Chatham", "2026-09-27T03:10", "2026-09-27T03:45"),
        ("America/Havana", "2026-03-08T00:10", "2026-03-08T01:00"),
        ("Antarctica/Troll", "2026-03-29T01:20", "2026-03-29T03:00"),
        ("Pacific/Apia", "2011-12-30T09:00", "2011-12-31T00:00"),
    ],
)
def test_skipped_time_runs_at_the_change_in_any_zone(zone: str, skipped: str, next_valid: str) -> None:
    """RUN-19: also if the clocks skip half an hour, midnight, two hours, or a whole day."""
    time = datetime.fromisoformat(skipped)
    cron = f"{time.minute} {time.hour} * * *"
    before = time.replace(tzinfo=UTC) - timedelta(days=2)
    found = instants(cron, zone, before, 4)
    assert at(next_valid, zone) in found
    assert len(set(found)) == len(found)
    assert latest_until(cron, zone, found[0], at(next_valid, zone) + timedelta(minutes=3)) == at(next_valid, zone)


def test_rhythm_words_name_the_rhythm() -> None:
    """UI-24: in words, and in the order of the week."""
    words = {
        "0 9 * * *": "Every day at 09:00",
        "5 17 * * 1-5": "Every weekday at 17:05",
        "0 9 * * 4,1,0": "Every Monday, Thursday and Sunday at 09:00",
        "0 9 15 * *": "On day 15 of each month at 09:00",
        "0 9 L * *": "On the last day of each month at 09:00",
        "15 * * * *": "Every hour at minute 15",
        "15 0-23/6 * * *": "Every 6 hours at minute 15",
        "0 9 * 1 *": "By cron expression 0 9 * 1 *",
    }
    assert {cron: rhythm_words(from_cron(cron)) for cron in words} == words


def test_zone_names_are_those_of_places() -> None:
    """RUN-19: not those that mean another place on each machine."""
    assert {"Europe/Berlin", "UTC"} <= zone_names()
    assert not {"localtime", "posixrules"} & zone_names()
