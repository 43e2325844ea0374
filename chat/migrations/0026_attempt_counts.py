"""The row before an answer with several attempts counts them. Those of before are counted once."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from chat.overrides.sqlite.columns import AddColumn

UNCOUNTED = ("turn_start", "turn_done", "error")


def count_attempts(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor | None) -> None:
    messages, revisions = apps.get_model("chat", "ChatMessage"), apps.get_model("chat", "MessageRevision")
    rows = messages.objects.filter(removed_at__isnull=False).exclude(attempt="")
    names = set(rows.exclude(type__in=UNCOUNTED).values_list("attempt", flat=True))
    records = revisions.objects.filter(message__in=rows.filter(attempt_place=0), kind="retry").order_by("pk")
    places = records.values_list("message__attempt", "before__anchor", "message__created_at").iterator()
    latest = {name: (anchor, began) for name, anchor, began in places if name in names and anchor}
    began_after: dict[str, list[datetime]] = defaultdict(list)
    for anchor, began in latest.values():
        began_after[anchor].append(began)
    for anchor, others in began_after.items():
        row = messages.objects.filter(pk=anchor, sequence__isnull=False).first()
        if row is None:
            continue
        following = messages.objects.filter(session=row.session_id, sequence=row.sequence + 1)
        began = following.values_list("created_at", flat=True).first()
        current = 1 + sum(began is None or other < began for other in others)
        messages.objects.filter(pk=anchor).update(attempt_count=len(others) + 1, attempt_current=current)


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0025_mcp_servers'),
    ]

    operations = [
        AddColumn('chatmessage', 'attempt_count', models.PositiveIntegerField(db_default=0, default=0)),
        AddColumn('chatmessage', 'attempt_current', models.PositiveIntegerField(db_default=0, default=0)),
        migrations.RunPython(count_attempts, migrations.RunPython.noop),
    ]
