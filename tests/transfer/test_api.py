"""Exporting and importing sessions over the API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from chat.models import Session, User
from chat.services.people.sharing import share
from chat.transfer.public import UnreadableError, require_readable
from tests.api.asking import Asker, code, token_of
from tests.transfer import samples

pytestmark = pytest.mark.django_db


def upload(user: User, value: object, **form: Any) -> Any:
    file = SimpleUploadedFile("conversations.json", json.dumps(value).encode(), "application/json")
    client = Client(headers={"Authorization": f"Bearer {token_of(user)}"})
    return client.post("/api/sessions/import", {"file": file, **form})


def test_export_is_imported_again(talk: Session, ana: User, bo: User) -> None:
    """MSG-02: a session's export gives a copy beside it, with new ids, which belongs to the importer."""
    export_session = Asker(token_of(ana)).get(f"/api/sessions/{talk.pk}/export")
    assert export_session["Content-Type"] == "application/json; charset=utf-8"
    answer = upload(bo, json.loads(export_session.getvalue()))
    [made] = answer.json()["sessions"]
    assert (answer.status_code, made["title"], made["kept_ids"], answer.json()["problems"]) == (
        201,
        talk.title,
        False,
        [],
    )
    assert Session.objects.get(pk=made["id"]).owner == bo


def test_viewers_export_what_they_see(talk: Session, ana: User, bo: User) -> None:
    """A viewer's export contains no removed messages (MSG-11, LIVE-06)."""
    share(session=talk, author=ana, user=bo, role="viewer")
    reader = Asker(token_of(bo))
    assert "The provider is busy." not in reader.get(f"/api/sessions/{talk.pk}/export").getvalue().decode()
    text = reader.get(f"/api/sessions/{talk.pk}/export?format=markdown")
    assert text["Content-Type"] == "text/markdown; charset=utf-8"
    assert text.getvalue().decode().startswith("# 会议: plan/v2 “A”\n")


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("chat_chatmessage", "text", "CAST(x'e46b' AS TEXT)"),
        ("chat_chatmessage", "text", "x'e46b'"),
        ("chat_messagerevision", "before", "CAST(x'22e422' AS TEXT)"),
        ("chat_session", "title", "CAST(x'e46b' AS TEXT)"),
    ],
)
def test_export_of_a_value_that_cannot_be_read_is_refused(
    talk: Session, ana: User, table: str, column: str, value: str
) -> None:
    """A value that another program has written is not exported as something else, and no file ends halfway."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {value}")  # noqa: S608  # values of the test
    with pytest.raises(UnreadableError):
        require_readable(talk.pk)
    if table != "chat_session":  # otherwise the access gate cannot read the session
        for form in ("json", "markdown"):
            answer = Asker(token_of(ana)).get(f"/api/sessions/{talk.pk}/export?format={form}")
            assert code(answer) == (422, "unreadable")


def test_some_conversations_are_chosen(ana: User) -> None:
    """Conversations are chosen by their indexes in the file."""
    answer = upload(ana, [samples.chatgpt("One"), samples.chatgpt("Two")], conversations=[1], ids="new")
    assert [each["title"] for each in answer.json()["sessions"]] == ["Two"]


def test_unknown_fields_of_a_form_are_refused(ana: User) -> None:
    """MSG-12: a misspelled field does not import all conversations of a file."""
    two = [samples.chatgpt("One"), samples.chatgpt("Two")]
    for form in ({"conversation": 1}, {"id": "new"}, {"attachments": SimpleUploadedFile("b.json", b"{}")}):
        answer = upload(ana, two, **form)
        assert (*code(answer), next(iter(form)) in answer.json()["detail"]) == (422, "malformed", True)
    assert not Session.objects.exists()


def test_refusals_are_problems(talk: Session, ana: User, settings: Any) -> None:
    """Refused imports and exports are problem documents (MSG-12)."""
    asker = Asker(token_of(ana))
    assert code(upload(ana, {"a": 1})) == (422, "nothing_known")
    assert code(upload(ana, {"format": "parley.session"})) == (422, "nothing_imported")
    assert code(asker.get(f"/api/sessions/{talk.pk}/export?format=docx")) == (422, "malformed")
    assert code(upload(ana, samples.chatgpt(), conversations=["a"]))[0] == 422
    settings.MAX_IMPORT_MB = 0
    assert code(upload(ana, samples.chatgpt())) == (413, "too_large")
