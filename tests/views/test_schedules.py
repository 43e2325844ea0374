"""The dialog of schedules: its forms and its messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import Schedule, Session, User
from chat.queries.messages import message_snapshot
from chat.rendering.messages.frames import message_html
from chat.services.sessions import schedules
from chat.zones import ZONE_COOKIE
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
FORM = {"part": "add", "text": "Report", "kind": "daily", "time": "09:30", "zone": "Europe/Berlin"}


def post(client: Client, session: Session, **values: Any) -> Any:
    return client.post(reverse("session-schedules", args=[session.pk]), {**FORM, **values})


def page(client: Client, session: Session) -> str:
    return client.get(reverse("session-schedules", args=[session.pk])).content.decode()


@pytest.mark.parametrize(
    ("values", "cron"),
    [
        ({}, "30 9 * * *"),
        ({"kind": "weekdays"}, "30 9 * * 1-5"),
        ({"kind": "weekly", "days": ["7", "1"]}, "30 9 * * 1,7"),
        ({"kind": "monthly", "day": "15"}, "30 9 15 * *"),
        ({"kind": "monthly", "day": "0"}, "30 9 L * *"),
        ({"kind": "hours", "every": "6", "minute": "5"}, "5 0-23/6 * * *"),
        ({"kind": "hours", "every": "1", "minute": "5", "time": ""}, "5 * * * *"),
        ({"kind": "cron", "cron": " 0  9 * jan mon#1 ", "time": ""}, "0 9 * JAN MON#1"),
    ],
)
def test_form_becomes_an_expression(
    signed_in: SignIn, ana: User, session: Session, values: dict[str, Any], cron: str
) -> None:
    """UI-24: the form gives an expression for each rhythm, and fields of other rhythms are ignored."""
    answer = post(signed_in(ana), session, day="3", every="2", minute="7", **values) if not values else None
    answer = answer or post(signed_in(ana), session, **values)
    assert (answer.status_code, answer.json()["done"]) == (200, "Schedule added.")
    row = Schedule.objects.get()
    assert (row.cron, row.zone, row.text) == (cron, "Europe/Berlin", "Report")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "weekly"}, "Choose when the schedule runs."),
        ({"kind": "weekly", "days": ["8"]}, "Choose when the schedule runs."),
        ({"kind": "monthly", "day": "29"}, "Choose when the schedule runs."),
        ({"kind": "hours", "every": "5", "minute": "0"}, "Choose when the schedule runs."),
        ({"kind": "hours", "every": "6", "minute": "60"}, "Choose when the schedule runs."),
        ({"kind": "often"}, "Choose when the schedule runs."),
        ({"time": "25:00"}, "Choose when the schedule runs."),
        ({"kind": "cron", "cron": "daily"}, "This is not a cron expression."),
        ({"kind": "cron", "cron": "61 * * * *"}, "The minute isn’t valid. Use 0–59, such as 30 or */15."),
        ({"kind": "cron", "cron": "0 9 * * 5-1"}, "The weekday isn’t valid. Use 0–7, such as 1 or 1-5."),
        ({"kind": "cron", "cron": "* * * * *"}, "at most every 5 minutes"),
        ({"zone": "Atlantis"}, "Unknown time zone."),
        ({"text": " "}, "The message is empty."),
    ],
)
def test_refused_form_keeps_what_was_filled_in(
    signed_in: SignIn, ana: User, session: Session, values: dict[str, Any], words: str
) -> None:
    """UI-24: a refused form keeps its values and shows the reason above them."""
    answer = post(signed_in(ana), session, **{"text": "My long report", **values})
    assert answer.status_code == 422
    html = answer.json()["html"]
    assert words in answer.json()["message"]
    assert words in html
    assert values.get("text", "My long report") in html
    marked = re.findall(r'name="(\w+)"(?:(?!<)[\s\S])*?aria-invalid="true"', html)
    assert marked == [name for name in ("cron", "zone") if name in values]
    assert not Schedule.objects.exists()


def test_form_for_older_values_shows_both(signed_in: SignIn, ana: User, session: Session) -> None:
    """UI-24: a form with older values shows both; saving it again replaces the values that another tab has saved."""
    client = signed_in(ana)
    row = schedules.add(author=ana, session_id=session.pk, text="Report", cron="0 9 * * *", zone="UTC")
    seen = revision_in(page(client, session))
    assert seen == str(row.revision)
    schedules.change(author=ana, session_id=session.pk, schedule_id=row.pk, text="Other report")
    refused = post(client, session, part="change", schedule=row.pk, text="My report", revision=seen)
    html = refused.json()["html"]
    assert refused.status_code == 409
    assert "This schedule was changed in the meantime. Its new values are above." in html
    assert html.index("Other report") < html.index("My report")
    for odd in ("", "x", "-1", "9" * 5000, "a\0b"):
        answer = post(client, session, part="change", schedule=row.pk, text="My report", revision=odd)
        assert answer.status_code == (409 if odd else 200)
        Schedule.objects.update(text="Other report")
    again = post(client, session, part="change", schedule=row.pk, text="My report", revision=current(row))
    assert (again.status_code, Schedule.objects.get().text) == (200, "My report")


def test_schedule_is_added_once_for_the_key_of_its_form(signed_in: SignIn, ana: User, session: Session) -> None:
    """MSG-02: the form is sent again after a lost response. With other values it adds another schedule.

    A schedule that was removed since is added again.
    """
    client = signed_in(ana)
    [key] = re.findall(r'name="key" value="([^"]+)"', page(client, session))
    assert key not in page(client, session)
    for text in ("Report", "Report", "Another report"):
        assert post(client, session, key=key, text=text).status_code == 200
    rows = Schedule.objects.filter(session=session, removed_at=None)
    assert list(rows.values_list("text", flat=True)) == ["Report", "Another report"]
    schedules.remove(author=ana, session_id=session.pk, schedule_id=rows[0].pk)
    post(client, session, key=key)
    assert list(rows.values_list("text", flat=True)) == ["Another report", "Report"]


def revision_in(html: str) -> str:
    return html.split('name="revision" value="')[1].split('"')[0]


def current(row: Schedule) -> str:
    row.refresh_from_db()
    return str(row.revision)


def test_entries_for_a_deleted_schedule_move_to_the_form_of_a_new_one(
    signed_in: SignIn, ana: User, session: Session
) -> None:
    """UI-24: a change of a schedule that another page has deleted says so, and keeps what was entered."""
    client = signed_in(ana)
    post(client, session)
    row = Schedule.objects.get()
    post(client, session, part="remove", schedule=row.pk)
    refused = post(client, session, part="change", schedule=row.pk, text="Typed").json()
    words = "This schedule was deleted in the meantime. Your entries are in this form."
    assert refused["message"] == words
    form = refused["html"][refused["html"].index('id="schedule-form-new"') :]
    assert words in form
    assert "Typed</textarea>" in form


def test_times_are_in_the_zone_of_the_browser(signed_in: SignIn, ana: User, session: Session) -> None:
    """UI-24: the form of a new schedule has the browser's time zone."""
    client = signed_in(ana)
    client.cookies[ZONE_COOKIE] = "Asia/Tokyo"
    assert 'value="Asia/Tokyo"' in page(client, session)


def test_times_name_their_zone_where_it_is_not_the_schedules(signed_in: SignIn, ana: User, session: Session) -> None:
    """UI-24: the rhythm is in the schedule's zone, and the next run in the viewer's."""
    client = signed_in(ana)
    post(client, session)  # in the zone of Berlin
    shown = []
    for zone in ("Europe/Berlin", "Asia/Tokyo"):
        client.cookies[ZONE_COOKIE] = zone
        after_time = page(client, session).split("Next run:")[1].split("(in ")[0].split("</time>")[1]
        shown.append(zone in after_time)
    assert shown == [False, True]


def test_dialog_says_how_a_schedule_is(signed_in: SignIn, ana: User, session: Session) -> None:
    """UI-24: the dialog shows the next run, the outcome of the last one, and the reason of a pause."""
    client = signed_in(ana)
    assert "No schedules yet." in page(client, session)
    post(client, session)
    row = Schedule.objects.get()
    assert "Every day at 09:30" in page(client, session)
    assert "Next run:" in page(client, session)
    Schedule.objects.update(next_at=timezone.now() + timedelta(seconds=50))
    assert "(in less than a minute)" in page(client, session)
    answer = post(client, session, part="run", schedule=row.pk)
    assert answer.json()["done"] == "Run started."
    html = page(client, session)
    assert f'href="#{Schedule.objects.get().last_message_id}"' in html
    assert "Running" in html
    gone = {"last_outcome": "refused", "last_error": "quota_exceeded", "last_message_id": "", "paused": "failures"}
    Schedule.objects.update(next_at=None, is_on=False, last_run_at=timezone.now() - timedelta(hours=1), **gone)
    html = page(client, session)
    assert "Paused after 5 failed runs in a row." in html
    assert "Not sent: a usage limit was reached" in html


def test_viewers_and_archived_sessions_only_show(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    """UI-24: buttons that would be refused are not shown."""
    schedules.add(author=ana, session_id=session.pk, text="Report", cron="0 9 * * *", zone="UTC")
    let_in(session, bo, "viewer")
    html = page(signed_in(bo), session)
    assert "Every day at 09:00" in html
    assert "data-part=" not in html
    let_in(session, bo, "editor")
    html = page(signed_in(bo), session)
    assert 'data-part="add"' in html
    assert 'data-part="run"' not in html
    Session.objects.filter(pk=session.pk).update(status="archived")
    html = page(signed_in(ana), session)
    assert 'data-part="remove"' in html
    assert 'data-part="run"' not in html


def test_message_says_that_it_was_scheduled(ana: User, session: Session) -> None:
    """MSG-09: a scheduled message shows the rhythm that it was sent with, even if the schedule is gone.

    Its JSON can be read back (MSG-10).
    """
    row = schedules.add(author=ana, session_id=session.pk, text="Report", cron="0 9 * * 1-5", zone="Europe/Berlin")
    sent = schedules.run_now(author=ana, session_id=session.pk, schedule_id=row.pk)
    Schedule.objects.all().delete()
    message = message_snapshot(sent.id)
    assert message is not None
    assert "Scheduled · Every weekday at 09:00" in message_html(message)
    assert type(message).from_json(message.to_json()) == message


def test_owner_of_the_session_reads_that_a_restored_schedule_is_off(
    signed_in: SignIn, ana: User, bo: User, session: Session
) -> None:
    """UI-24: after Undo, the dialog names the user who can turn the schedule on."""
    let_in(session, bo, "editor")
    rows = [
        schedules.add(author=each, session_id=session.pk, text="Report", cron="0 9 * * *", zone="UTC")
        for each in (ana, bo)
    ]
    client = signed_in(ana)
    for row in rows:
        post(client, session, part="remove", schedule=row.pk)
    done = [post(client, session, part="restore", schedule=row.pk).json()["done"] for row in rows]
    assert done == ["Schedule restored.", "Schedule restored. It is off, and only Bo can turn it on."]
