"""Each message, run and attachment has the workspace of its session, whatever writes it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.files.base import File
from django.db import connection
from django.db.models import Model
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from agents.messages import ToolCall
from agents.providers.scripted import Reply, ScriptedProvider
from chat import agents_setup, migrations
from chat.bus import publisher
from chat.models import Attachment, ChatMessage, Membership, Session, SessionRun, User, Workspace
from chat.queries.verifying import Verification, problems_of_workspaces
from chat.services import batches
from chat.services.messages import attachments
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from chat.transfer.importing.files import import_file
from tests.services.history import History
from tests.services.history_checks import RecordingPublisher
from tests.support.database import address
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.testing_node import CONFIG, ScriptedRegistry, TestNode
from tests.transfer.conftest import document

TABLES = (ChatMessage, SessionRun, Attachment)


def by_name(name: str) -> Any:
    """Return the migration with this name; its number may change when branches are merged."""
    (found,) = Path(migrations.__file__ or "").parent.glob(f"*_{name}.py")
    return import_module(f"chat.migrations.{found.stem}")


@pytest.fixture
def no_empty_rows(transactional_db: None) -> Iterator[None]:
    """A database that refuses rows without a workspace instead of filling them in."""
    columns = by_name("workspace_of_rows")
    is_sqlite = connection.vendor == "sqlite"
    with connection.schema_editor() as editor:
        columns.drop(apps, editor)
        for table in columns.TRIGGERS.values():
            editor.execute(
                f"CREATE TRIGGER no_empty_{table} BEFORE INSERT ON {table} WHEN NEW.workspace_id IS NULL"
                f" BEGIN SELECT RAISE(ABORT, 'a row of {table} has no workspace'); END"
                if is_sqlite
                else f"ALTER TABLE {table} ALTER COLUMN workspace_id SET NOT NULL"
            )
    yield
    with connection.schema_editor() as editor:
        for table in columns.TRIGGERS.values():
            editor.execute(
                f"DROP TRIGGER no_empty_{table}"
                if is_sqlite
                else f"ALTER TABLE {table} ALTER COLUMN workspace_id DROP NOT NULL"
            )
        columns.create(apps, editor)


@pytest.fixture
def talk(ana: User) -> Session:
    session = create_session(owner=ana, title="Plan")
    fill(session, START, HI, ANSWER, DONE)
    return session


def attach(session: Session, ana: User) -> Attachment:
    data = b"Notes"
    return attachments.upload(session=session, author=ana, name="a.txt", size=len(data), file=File(io.BytesIO(data)))


def test_no_history_leaves_a_row_without_its_workspace(
    no_empty_rows: None, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-04: the rows are right after any actions of users, agents and crashes."""
    published = RecordingPublisher()
    monkeypatch.setattr(publisher, "publisher", published)
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    machine = type("AnyHistory", (History,), {"published": published, "people": [ana, bo]})
    run_state_machine_as_test(machine, settings=settings(max_examples=3, stateful_step_count=30, deadline=None))
    assert ChatMessage.objects.exists()
    assert list(problems_of_workspaces()) == []


async def test_no_run_leaves_a_row_without_its_workspace(no_empty_rows: None, node: TestNode, ana: User) -> None:
    """OPS-04, RUN-18: the rows of a plain turn are right, and so are those of a subsession."""
    helper = {"title": "Helper", "model": "scripted/one"}
    agent = {"model": "scripted/one", "tools": ["agent__helper"]}
    replies: list[Reply] = [[ToolCall("c1", "agent__helper", {"task": "Find it"})], ["Found."], ["It is red."]]
    node.script(replies, {**CONFIG, "agents": {"agent": agent, "helper": helper}})
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.until(ChatMessage.objects.filter(session=session, text="It is red.", status="complete").exists)
    await node.idle(session)
    assert await node.do(Session.objects.filter(caller_session=session).count) == 1
    assert await node.do(lambda: list(problems_of_workspaces())) == []


@pytest.mark.parametrize("most", [2, batches.MAX_ROWS])
def test_no_copy_leaves_a_row_without_its_workspace(
    no_empty_rows: None, own_files: None, ana: User, talk: Session, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-04, RUN-13: the rows of uploads, of forks in one or several transactions, and of imports with files are
    right."""
    monkeypatch.setattr(batches, "MAX_ROWS", most)
    second = ChatMessage.objects.get(session=talk, sequence=2)
    Attachment.objects.filter(pk=attach(talk, ana).pk).update(message=second)
    last = ChatMessage.objects.get(session=talk, sequence=4)
    fork(session=talk, author=ana, message_id=last.pk)
    exported = json.dumps(document(talk)).encode()
    place = Workspace.objects.create(name="Elsewhere")
    Membership.objects.create(workspace=place, user=ana)
    User.objects.filter(pk=ana.pk).update(workspace=place)
    [imported] = import_file(owner=User.objects.get(pk=ana.pk), file=io.BytesIO(exported), keep_ids=False).imported
    assert imported.session.workspace_id == place.pk
    assert [model.objects.count() for model in TABLES] == [12, 3, 3]
    assert list(problems_of_workspaces()) == []


@pytest.mark.django_db
@pytest.mark.parametrize("model", TABLES)
@pytest.mark.parametrize("is_empty", [True, False])
def test_row_of_another_workspace_is_found(
    own_files: None, ana: User, talk: Session, model: type[Model], is_empty: bool
) -> None:
    """OPS-04: a row without a workspace is found, and so is a row with another workspace than its session's."""
    attach(talk, ana)
    assert list(problems_of_workspaces()) == []
    row = model._default_manager.order_by("pk").first()
    assert row
    other = None if is_empty else Workspace.objects.create(name="Elsewhere").pk
    model._default_manager.filter(pk=row.pk).update(workspace_id=other)
    [line] = Verification().problems()
    assert line.startswith(f"{talk.pk}: ")
    assert line.endswith("has no workspace" if is_empty else f"has workspace {other}, which is not its session’s")


@pytest.mark.django_db
def test_rows_of_before_are_filled(own_files: None, ana: User, talk: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-04: rows are filled in batches by their own session, and again after an interruption."""
    migration = by_name("fill_workspaces")
    monkeypatch.setattr(migration, "BATCH", 3)
    attach(talk, ana)
    other = create_session(owner=ana, workspace=Workspace.objects.create(name="Elsewhere"))
    fill(other, START, HI, DONE, turn_id="t_2")
    for model in TABLES:
        model.objects.update(workspace_id=None)
    assert len(list(problems_of_workspaces())) == 7 + 2 + 1
    migration.fill(apps, None)
    migration.fill(apps, None)
    assert list(problems_of_workspaces()) == []


@pytest.mark.postgres
@pytest.mark.django_db
def test_rows_of_an_older_release_are_filled(own_files: None, ana: User, talk: Session) -> None:
    """OPS-04: rows of an older release, which runs beside this one during an update, are filled."""
    attach(talk, ana)
    copied = create_session(owner=ana)
    SessionRun.objects.filter(pk=copied.pk).delete()
    for model in TABLES:
        names = [str(field.column) for field in model._meta.concrete_fields if field.attname != "workspace_id"]
        own = {"session_id": "%(session)s", "id": "'x_1'"}
        values = [own.get(name, name) for name in names]
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {model._meta.db_table} ({', '.join(map(quoted, names))}) SELECT"  # noqa: S608  # names of the model
                f" {', '.join(value if value in own.values() else quoted(value) for value in values)}"
                f" FROM {model._meta.db_table} WHERE session_id = %(talk)s ORDER BY 1 LIMIT 1",
                {"session": copied.pk, "talk": talk.pk},
            )
    assert [model._default_manager.filter(session=copied).count() for model in TABLES] == [1, 1, 1]
    assert list(problems_of_workspaces()) == []


def quoted(name: str) -> str:
    return connection.ops.quote_name(name)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_rows_that_are_locked_are_filled_later(ana: User, talk: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-04: the migration does not wait for locked rows while it holds locks itself."""
    migration = by_name("fill_workspaces")
    ChatMessage.objects.update(workspace_id=None)
    left = []
    with psycopg.connect(address()) as server:
        server.execute("SELECT 1 FROM chat_chatmessage WHERE sequence = 2 FOR UPDATE")

        def pause(seconds: float) -> None:
            left.append(ChatMessage.objects.filter(workspace_id=None).count())
            server.rollback()

        monkeypatch.setattr(migration.time, "sleep", pause)
        migration.fill(apps, None)
    assert left == [1]
    assert list(problems_of_workspaces()) == []
