"""Versions of messages and of the system prompt, and removed messages, over the API."""

from __future__ import annotations

import pytest

from chat.models import Session, User
from chat.queries import history
from chat.services.messages import editing
from chat.services.runs import control
from tests.api.asking import Asker, code
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill

pytestmark = pytest.mark.django_db
TURN = [START, HI, TOOL, ANSWER, DONE]


def path(session: Session, rest: str) -> str:
    return f"/api/sessions/{session.pk}{rest}"


@pytest.mark.both_databases
def test_versions_are_listed_and_restored(
    asker: Asker, reader: Asker, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-11: versions are listed in pages from the newest to the original, and restoring one is an edit."""
    monkeypatch.setattr(history, "PAGE", 2)
    row = fill(session, *TURN)[1]
    address = path(session, f"/messages/{row.pk}")
    for text in ("One", "Two", "Three"):
        asker.patch(address, {"text": text})
    first = reader.get(f"{address}/versions").json()
    second = reader.get(f"{address}/versions?before={first['next']}").json()
    versions = [*first["versions"], *second["versions"]]
    assert [(each["text"], each["kind"], each["by"]) for each in versions] == [
        ("Three", "edit", "Ana"),
        ("Two", "edit", "Ana"),
        ("One", "edit", "Ana"),
        ("Hi", "original", None),
    ]
    assert (versions[0]["version"], second["next"]) == (0, None)
    assert code(reader.post(f"{address}/versions/{versions[-1]['version']}/restore")) == (403, "forbidden")
    restored = asker.post(f"{address}/versions/{versions[-1]['version']}/restore").json()
    assert (restored["text"], restored["edited"]) == ("Hi", True)
    for unknown in (10**6, 10**30):
        assert code(asker.post(f"{address}/versions/{unknown}/restore")) == (404, "no_such_version")
    tool = path(session, f"/messages/{session.chat_messages.get(type='tool_group').pk}")
    assert reader.get(f"{tool}/versions").json()["versions"][0]["result"] == "2"
    assert code(asker.post(f"{tool}/versions/0/restore")) == (422, "not_editable")


def test_changes_that_keep_the_text_have_its_version(asker: Asker, session: Session) -> None:
    """MSG-11: a change without a new text has the version of its text, so entries are identified by `id`, not by
    version."""
    row = fill(session, *TURN)[1]
    address = path(session, f"/messages/{row.pk}")
    for change in ({"text": "One"}, {"include_in_context": False}, {"text": "Two"}, {"include_in_context": True}):
        assert asker.patch(address, change).status_code == 200
    versions = asker.get(f"{address}/versions").json()["versions"]
    assert [(each["kind"], each["text"]) for each in versions] == [
        ("include", "Two"),
        ("edit", "Two"),
        ("exclude", "One"),
        ("edit", "One"),
        ("original", "Hi"),
    ]
    (now, edited, excluded, first, original) = (each["version"] for each in versions)
    assert (now, edited, excluded) == (0, 0, first)
    assert len({0, first, original}) == 3
    assert len({each["id"] for each in versions}) == 5
    assert asker.post(f"{address}/versions/{excluded}/restore").json()["text"] == "One"


def test_versions_of_the_prompt_are_listed(asker: Asker, session: Session) -> None:
    """Earlier versions of the system prompt are listed (MSG-11)."""
    for text in ("Be brief.", "Be long."):
        asker.patch(path(session, ""), {"system_prompt": text})
    versions = asker.get(path(session, "/system_prompt/versions")).json()["versions"]
    assert [each["text"] for each in versions] == ["Be long.", "Be brief.", session.system_prompt]


def test_removed_messages_are_found_and_put_back(asker: Asker, reader: Asker, session: Session, ana: User) -> None:
    """MSG-11: removed messages are listed with the users who removed them.

    Messages that a retry replaced cannot be restored.
    """
    rows = fill(session, *TURN)
    editing.remove(session=session, author=ana, message_id=rows[2].pk)
    control.retry(session=session, author=ana, message_id=rows[3].pk)
    removed = asker.get(path(session, "/removed")).json()["removed"]
    assert [(each["id"], each["by"], each["restorable"]) for each in removed] == [
        (rows[3].pk, "Ana", False),
        (rows[2].pk, "Ana", True),
    ]
    assert code(reader.get(path(session, "/removed"))) == (403, "forbidden")
    assert code(reader.get(path(session, f"/messages/{rows[2].pk}/versions"))) == (404, "no_such_message")
    assert asker.get(path(session, f"/messages/{rows[2].pk}/versions")).status_code == 200
