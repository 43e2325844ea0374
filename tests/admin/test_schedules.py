"""Schedules in the admin."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from chat.models import Schedule, Session, User
from chat.services.sessions import schedules
from tests.admin.conftest import signed_in

pytestmark = pytest.mark.django_db


def test_staff_see_schedules_without_their_words(ana: User, session: Session) -> None:
    """RUN-19: when they run and why they are paused; nothing can be changed there."""
    root = signed_in(User.objects.create_superuser("root"))
    row = schedules.add(author=ana, session_id=session.pk, text="The secret report", cron="0 9 * * 1-5", zone="UTC")
    Schedule.objects.update(is_on=False, next_at=None, paused="failures", last_outcome="failed")
    page = reverse("admin:chat_schedule_change", args=[quote(row.pk)])
    for address in (reverse("admin:chat_schedule_changelist"), page):
        html = root.get(address).content.decode()
        assert "Every weekday at 09:00" in html
        assert "Paused after 5 failed runs in a row." in html
        assert "secret" not in html
    assert root.post(page, {"cron": "0 1 * * *"}).status_code == 403
    assert root.post(reverse("admin:chat_schedule_delete", args=[quote(row.pk)]), {"post": "yes"}).status_code == 403
