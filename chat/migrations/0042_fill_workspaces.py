"""Fill in the workspace of the rows of before, in batches with a transaction each.

If it is cut short, the next `migrate` goes on: rows that are filled are left alone. Rows that a running server has
locked are tried again, so that neither waits for the other.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import OuterRef, Subquery

BATCH = 2000
PAUSE = 0.05


def fill(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor | None) -> None:
    sessions: Any = apps.get_model("chat", "Session")
    of_session = Subquery(sessions.objects.filter(pk=OuterRef("session_id")).values("workspace_id")[:1])
    for name in ("SessionRun", "Attachment", "ChatMessage"):
        rows = apps.get_model("chat", name)._default_manager.order_by("pk")
        last = ""
        while keys := list(rows.filter(pk__gt=last).values_list("pk", flat=True)[:BATCH]):
            while not _filled(rows.filter(pk__in=keys, workspace_id=None), of_session):
                time.sleep(PAUSE)
            last = keys[-1]


def _filled(empty: Any, of_session: Subquery) -> bool:
    """Fill these rows. Return whether that were all: those that are locked are left out."""
    with transaction.atomic():
        count: int = empty.count()
        free = list(empty.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)) if count else []
        empty.filter(pk__in=free).order_by().update(workspace_id=of_session)
    return len(free) >= count


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("chat", "0041_workspace_of_rows")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
