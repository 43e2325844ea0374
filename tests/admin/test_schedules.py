"""Schedules in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from chat.models import Schedule, SecurityEvent, Session, User
from chat.services.sessions import schedules
from tests.admin.pages import said
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
LIST = reverse("admin:chat_schedule_changelist")


@pytest.fixture
def operator(staff_with: Callable[..., User]) -> Client:
    return signed_in(staff_with("view_schedule", "change_schedule", name="ona"))


@pytest.fixture
def row(ana: User, session: Session) -> Schedule:
    return schedules.add(author=ana, session_id=session.pk, text="The secret report", cron="0 9 * * *", zone="UTC")


def act(client: Client, action: str, *rows: Schedule, sure: bool = False) -> Any:
    data = {"action": action, "_selected_action": [each.pk for each in rows], **({"sure": "yes"} if sure else {})}
    return client.post(LIST, data, follow=True)


def state_of(row: Schedule) -> tuple[bool, str, bool]:
    row.refresh_from_db()
    return row.is_on, row.paused, row.next_at is not None


def test_staff_see_schedules_without_their_words(ana: User, session: Session) -> None:
    """RUN-19: staff see when schedules run and why they are paused, and cannot change their values."""
    root = signed_in(User.objects.create_superuser("root"))
    row = schedules.add(author=ana, session_id=session.pk, text="The secret report", cron="0 9 * * 1-5", zone="UTC")
    Schedule.objects.update(is_on=False, next_at=None, paused="failures", last_outcome="failed")
    page = reverse("admin:chat_schedule_change", args=[quote(row.pk)])
    for address in (reverse("admin:chat_schedule_changelist"), page):
        html = root.get(address).content.decode()
        assert "Every weekday at 09:00" in html
        assert "Paused after 5 failed runs in a row." in html
        assert "secret" not in html
    assert root.get(LIST, {"text__contains": "secret"}).status_code == 400
    assert root.post(page, {"cron": "0 1 * * *"}).status_code == 403
    assert root.post(reverse("admin:chat_schedule_delete", args=[quote(row.pk)]), {"post": "yes"}).status_code == 403


def test_staff_pause_and_resume(operator: Client, row: Schedule, ana: User) -> None:
    """UI-24: pausing needs a confirmation. Both actions are logged, and the dialog reports who paused it."""
    asked = said(act(operator, "pause", row))
    assert ("Pause these schedules?" in asked, "Every day at 09:00" in asked, "secret" in asked) == (True, True, False)
    assert state_of(row) == (True, "", True)

    assert "Paused 1 schedule." in said(act(operator, "pause", row, sure=True))
    assert state_of(row) == (False, "staff", False)
    dialog = signed_in(ana).get(reverse("session-schedules", args=[row.session_id]))
    assert "Paused by an administrator." in said(dialog)
    assert "Every day at 09:00" in said(operator.get(LIST, {"paused": "staff"}))
    assert "Every day at 09:00" not in said(operator.get(LIST, {"paused": "failures"}))

    assert "Resumed 1 schedule." in said(act(operator, "resume", row))
    assert state_of(row) == (True, "", True)
    assert list(LogEntry.objects.order_by("pk").values_list("object_id", "change_message")) == [
        (row.pk, "Paused the schedule."),
        (row.pk, "Resumed the schedule."),
    ]
    events = SecurityEvent.objects.filter(object_id=row.pk).order_by("pk")
    assert list(events.values_list("kind", "actor__username", "person", "object_type")) == [
        ("schedule_paused", "ona", ana.pk, "schedule"),
        ("schedule_resumed", "ona", ana.pk, "schedule"),
    ]


def test_its_user_turns_a_paused_schedule_on_again(operator: Client, row: Schedule, ana: User) -> None:
    """UI-24: the schedule's user can resume it.

    To prevent that, staff archive the session or deactivate the account.
    """
    act(operator, "pause", row, sure=True)
    schedules.change(author=ana, session_id=row.session_id, schedule_id=row.pk, is_on=True)
    assert state_of(row) == (True, "", True)


def test_what_cannot_resume_says_why(operator: Client, row: Schedule, ana: User, session: Session) -> None:
    """UI-24: schedules that cannot resume are not logged, and the others resume."""
    other = schedules.add(author=ana, session_id=session.pk, text="Hi", cron="0 8 * * *", zone="UTC")
    act(operator, "pause", row, other, sure=True)
    LogEntry.objects.all().delete()
    Schedule.objects.filter(pk=row.pk).update(zone="Atlantis")
    assert "Unknown time zone." in said(act(operator, "resume", row, other))
    assert (state_of(row)[0], state_of(other)) == (False, (True, "", True))
    Schedule.objects.update(is_on=False, next_at=None)
    Session.objects.update(status=Session.Status.ARCHIVED)
    act(operator, "resume", other)
    User.objects.filter(pk=ana.pk).update(is_active=False)
    Session.objects.update(status=Session.Status.ACTIVE)
    assert "can’t write in its session anymore" in said(act(operator, "resume", other))
    assert state_of(other) == (False, "", False)
    assert LogEntry.objects.count() == 1


def test_nothing_to_do_says_so(operator: Client, row: Schedule) -> None:
    """UI-24: schedules that are already in the requested state, or removed, are reported as unchanged."""
    assert "The selected schedules are already on." in said(act(operator, "resume", row))
    schedules.change(author=row.owner, session_id=row.session_id, schedule_id=row.pk, is_on=False)
    assert "None of the selected items" in said(act(operator, "pause", row))
    schedules.remove(author=row.owner, session_id=row.session_id, schedule_id=row.pk)
    act(operator, "resume", row)
    assert state_of(row) == (False, "", False)
    assert not LogEntry.objects.exists()


def test_many_are_changed_in_steps(operator: Client, row: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-24: the page reports how many schedules can be changed at a time."""
    monkeypatch.setattr("chat.admin.schedules.MAX_ROWS", 1)
    other = schedules.add(author=row.owner, session_id=row.session_id, text="Hi", cron="0 8 * * *", zone="UTC")
    assert "You can change 1 schedules at a time." in said(act(operator, "pause", row, other))


def test_staff_without_the_permission_only_look(staff_with: Callable[..., User], row: Schedule) -> None:
    """UI-24: viewing and changing have separate permissions."""
    kim = signed_in(staff_with("view_schedule", name="kim"))
    assert kim.get(LIST).status_code == 200
    for action in ("pause", "resume"):
        act(kim, action, row, sure=True)
    assert state_of(row) == (True, "", True)
