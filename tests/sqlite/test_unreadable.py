"""SQLite: a text that another program has stored, and that is not UTF-8."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection

from chat.db import is_unavailable
from chat.models import Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def test_text_that_is_not_utf_8_is_no_outage() -> None:
    """Work that reads such a text fails, and is not repeated as if the database were away."""
    workspace = Workspace.objects.create(name="Inn")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chat_workspace SET name = CAST(x'e46b' AS TEXT) WHERE id = %s", [workspace.pk])
    with pytest.raises(OperationalError) as failed:
        Workspace.objects.get(pk=workspace.pk)
    assert not is_unavailable(failed.value)
    assert is_unavailable(OperationalError("database is locked"))
