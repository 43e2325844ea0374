"""SQLite: a text that another program has stored, and that is not UTF-8."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection

from chat.db import is_unavailable
from chat.models import User, Workspace
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import Asker, code, token_of
from tests.support.rows import say
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode

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


@pytest.mark.parametrize("place", ["chat_session.title", "chat_chatmessage.text"])
def test_requests_for_it_are_refused_and_show_the_way(ana: User, place: str, caplog: pytest.LogCaptureFixture) -> None:
    """MSG-12: a request that reads such a text names the command that finds it, and logs no content."""
    session = create_session(owner=ana, title="Plan")
    say(session, ana, "Hello")
    spoil(place)
    asker = Asker(token_of(ana))
    answer = asker.get(f"/api/sessions/{session.pk}/messages")
    assert code(answer) == (422, "unreadable")
    assert "manage.py verify" in answer.json()["detail"]
    if place == "chat_session.title":
        assert code(asker.get("/api/sessions")) == (422, "unreadable")
        assert code(asker.post(f"/api/sessions/{session.pk}/messages", {"text": "Hi", "key": "k"})) == (
            422,
            "unreadable",
        )
    assert "secret" not in caplog.text


async def test_commands_that_read_it_are_refused(node: TestNode, ana: User, caplog: pytest.LogCaptureFixture) -> None:
    """MSG-12: likewise on sockets, where clients would repeat a command that is refused as `unavailable`."""
    session = await node.session(ana)
    await node.send(session, ana, "echo hello")
    await node.idle(session)
    socket = Socket(path_of(session, "events"), ana)
    await socket.open()
    message = next(row for row in await node.rows(session) if row.role == "user")
    await node.do(spoil, "chat_chatmessage.text")
    refused = await socket.ask(type="edit", id=message.pk, text="Bye", revision=message.revision)
    assert (refused["type"], refused["code"]) == ("refused", "unreadable")
    assert "secret" not in caplog.text
    await socket.leave()


def spoil(place: str) -> None:
    """Write a text that is not UTF-8 into all rows of a table's column."""
    table, _, column = place.partition(".")
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = CAST(x'736563726574ff' AS TEXT)")  # noqa: S608  # of the test
