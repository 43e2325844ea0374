"""The lock with which several servers prepare one database one after another."""

from __future__ import annotations

import pytest
from django.db import connection

from chat.management.migration_lock import LOCK, one_at_a_time

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.mark.parametrize("is_lost", [False, True])
def test_lock_that_cannot_be_released_is_logged(caplog: pytest.LogCaptureFixture, is_lost: bool) -> None:
    """With a pooler in transaction mode, the statement may run on another connection than that of the lock."""
    with one_at_a_time(lambda: None), connection.cursor() as cursor:
        if is_lost:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    assert ("a pooler in transaction mode" in caplog.text) is is_lost
