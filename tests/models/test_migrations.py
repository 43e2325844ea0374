"""The effects of migrations on existing rows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import migrations as migrations_of_django
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from chat import migrations
from chat.models import ChatMessage, MessageRevision, SessionRun, User
from chat.overrides.sqlite.columns import AddColumn
from chat.services.runs.attempts import switch_attempt
from chat.services.runs.control import retry
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, fill

pytestmark = pytest.mark.django_db
# The migration's number may change when branches are merged.
(found,) = Path(migrations.__file__ or "").parent.glob("*_attempts_and_suggestions.py")
migration = import_module(f"chat.migrations.{found.stem}")
WITH_TRIGGERS = ("session", "chatmessage", "sessionrun")


def test_editors_of_before_are_named(ana: User, bo: User) -> None:
    """MSG-11: a message gets its editor from its last edit, if the editor is not the author."""
    session = create_session(owner=ana)
    rows = fill(session, START, {**HI, "user": ana}, {**HI, "user": ana}, ANSWER, HI, DONE)
    for row, editors in zip(rows[1:5], ([ana, bo], [bo, ana], [ana], []), strict=True):
        for editor in editors:
            MessageRevision.objects.create(message=row, user=editor, kind="edit", before={})
            ChatMessage.objects.filter(pk=row.pk).update(edited_at=timezone.now())
    migration.name_editors(apps, None)
    named = ChatMessage.objects.order_by("sequence").values_list("edited_by_name", "edited_by")
    assert list(named) == [("", None), ("Bo", bo.pk), ("", None), ("Ana", ana.pk), ("", None), ("", None)]


def test_names_of_before_are_cleaned(ana: User, bo: User) -> None:
    """CTX-06: invisible characters are removed, and a user without other characters is shown by the user name."""
    User.objects.filter(pk=ana.pk).update(display_name="\u202eAna\u200b")
    User.objects.filter(pk=bo.pk).update(display_name="\u2800")
    migration.clean_names(apps, None)
    assert [User.objects.get(pk=user.pk).sender for user in (ana, bo)] == ["Ana", "bo"]


def test_attempts_of_before_are_counted(ana: User) -> None:
    """RUN-12: earlier attempts are counted on the row before them, like new ones."""
    (counting,) = Path(migrations.__file__ or "").parent.glob("*_attempt_counts.py")
    session = create_session(owner=ana)
    rows = fill(session, START, HI, ANSWER, DONE)
    for _time in range(2):
        retry(session=session, author=ana, message_id=rows[1].pk)
        SessionRun.objects.update(state="idle", turn_id="")
        fill(session, ANSWER, DONE)
    switch_attempt(session=session, author=ana, message_id=rows[1].pk, number=2)
    of_today = list(ChatMessage.objects.order_by("pk").values_list("attempt_count", "attempt_current"))
    assert (3, 2) in of_today
    ChatMessage.objects.update(attempt_count=0, attempt_current=0)
    import_module(f"chat.migrations.{counting.stem}").count_attempts(apps, None)
    assert list(ChatMessage.objects.order_by("pk").values_list("attempt_count", "attempt_current")) == of_today


def test_existing_permissions_get_their_current_names() -> None:
    """ADM-01: Django names a permission only when it creates it, so an updated installation would keep old names."""
    (naming,) = Path(migrations.__file__ or "").parent.glob("*_readable_names.py")
    current = dict(Permission.objects.values_list("pk", "name"))
    Permission.objects.filter(codename="erase_session").update(name="Can erase sessions for good")
    Permission.objects.filter(codename="view_chatmessage").update(name="Can view chat message")
    Permission.objects.filter(codename="add_group").update(name="Can add team")
    state = MigrationLoader(None, ignore_no_migrations=True).project_state(("chat", naming.stem))
    import_module(f"chat.migrations.{naming.stem}").rename_permissions(state.apps, None)
    renamed = dict(Permission.objects.values_list("pk", "name"))
    other = Permission.objects.get(codename="add_group")
    assert renamed.pop(other.pk) == "Can add team"  # of another app
    del current[other.pk]
    assert renamed == current
    assert "Can erase sessions permanently" in renamed.values()


def added_columns() -> Iterator[tuple[str, migrations_of_django.AddField]]:
    """Yield the columns that migrations since 0024 add to existing tables."""
    for (app, name), each in MigrationLoader(None, ignore_no_migrations=True).disk_migrations.items():
        if app != "chat" or name < "0024":
            continue
        new = {step.name_lower for step in each.operations if isinstance(step, migrations_of_django.CreateModel)}
        for step in each.operations:
            if isinstance(step, migrations_of_django.AddField) and step.model_name_lower not in new:
                yield name, step


def test_servers_of_the_release_before_can_write_beside_new_columns() -> None:
    """OPS-06: an earlier release can insert rows without the columns that it does not know."""
    refusing = [
        f"{name}: {step.model_name}.{step.name} is neither null nor has a db_default."
        for name, step in added_columns()
        if not step.field.null and not step.field.has_db_default()
    ]
    assert not refusing, "\n".join(refusing)


def test_columns_are_added_without_a_copy_of_the_table() -> None:
    """AddColumn adds columns with a default, because Django's AddField would copy the table without its triggers."""
    copying = [
        f"{name}: add {step.model_name}.{step.name} by AddColumn (chat/overrides/sqlite/columns.py), not by AddField."
        for name, step in added_columns()
        if step.model_name_lower in WITH_TRIGGERS and step.field.has_db_default() and not isinstance(step, AddColumn)
    ]
    assert not copying, "\n".join(copying)
