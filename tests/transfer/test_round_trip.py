"""A session that is exported and imported again is the same, after any history."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.bus import publisher
from chat.models import ChatMessage, ModelRequest, Session, SessionRun, User
from chat.queries.history import history_of
from chat.services.sessions import lifecycle
from chat.transfer.importing.files import import_file
from chat.transfer.importing.session import ImportedSession
from tests.services.history import History
from tests.services.history_checks import RecordingPublisher
from tests.support.effort import cases
from tests.support.rest import check_rest
from tests.support.testing_node import ScriptedRegistry
from tests.transfer.conftest import document

ID = re.compile(r"\b[smtrav]_[0-9a-f]{24}\b")


def imported(text: dict[str, Any], owner: User, *, keep_ids: bool = True) -> ImportedSession:
    [made] = import_file(owner=owner, file=io.BytesIO(json.dumps(text).encode()), keep_ids=keep_ids).imported
    return made


def alike(made: dict[str, Any]) -> str:
    """Return the document with its ids numbered by their first occurrence."""
    numbers: dict[str, str] = {}
    return ID.sub(lambda found: numbers.setdefault(found[0], f"id{len(numbers)}"), json.dumps(made, indent=1))


def forget(session: Session) -> None:
    """Delete a session, except its stored files."""
    SessionRun.objects.filter(pk=session.pk).delete()
    ModelRequest.objects.filter(session=session).delete()
    Session.objects.filter(pk=session.pk).delete()


def settled(talk: Session) -> dict[str, Any]:
    ChatMessage.objects.filter(session=talk, status="queued").delete()
    return document(talk)


@pytest.mark.both_databases
def test_session_comes_back_with_its_own_ids(talk: Session, ana: User) -> None:
    """MSG-02, MSG-11: everything is the same, including the ids.

    The origin of a fork is kept only if it still exists.
    """
    before = settled(talk)
    forget(talk)
    made = imported(before, ana)
    assert (made.kept_ids, made.notes) == (True, [])
    assert document(made.session) == before
    check_rest(made.session)


def test_fork_in_an_archive_keeps_its_origin(talk: Session, ana: User) -> None:
    """MSG-11: an archive is imported in its order, in which a session comes before its forks, not by the names."""
    fork = lifecycle.create_session(owner=ana, title="Fork")
    Session.objects.filter(pk=fork.pk).update(parent_session=talk)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("b.json", json.dumps(document(talk)))
        archive.writestr("a.json", json.dumps(document(fork)))
    forget(fork)
    forget(talk)

    first, second = import_file(owner=ana, file=packed).imported

    assert (first.session.pk, second.session.pk) == (talk.pk, fork.pk)
    assert second.session.parent_session_id == talk.pk


@pytest.mark.both_databases
def test_copy_has_new_ids_throughout(talk: Session, bo: User) -> None:
    """MSG-02: a copy beside the session has other ids and the same contents, also for another user."""
    before = settled(talk)
    made = imported(before, bo)
    after = document(made.session)
    assert not made.kept_ids
    assert set(ID.findall(json.dumps(before))) & set(ID.findall(json.dumps(after))) == set()
    assert alike(after) == alike(before)
    assert made.session.owner == bo


@pytest.mark.both_databases
def test_queued_message_is_removed_by_the_import_and_reported(talk: Session, ana: User) -> None:
    """CTX-03, MSG-07, RUN-06: queued messages are withdrawn, and the import reports it."""
    made = imported(document(talk), ana)
    assert made.notes == ["1 message was still queued. It was removed."]
    check_rest(made.session)
    taken_back = ChatMessage.objects.get(session=made.session, status="queued")
    assert (taken_back.text, taken_back.removed_at is not None) == ("And 8?", True)


@pytest.mark.both_databases
def test_questions_of_servers_come_with_names_and_can_no_longer_be_answered(talk: Session, ana: User, bo: User) -> None:
    """UI-12: answers have names without accounts, an open question is closed, and an invalid one is left out."""
    row = ChatMessage.objects.get(session=talk, type="tool_group")
    assert row.asked is not None
    answered, open_one = {**row.asked[0], "answered_by_id": bo.pk}, {"question": row.asked[1]["question"]}
    ChatMessage.objects.filter(pk=row.pk).update(asked=[answered, {"question": {"what": "?"}}, open_one])
    before = document(talk)
    before["messages"][3]["status"] = "waiting"
    assert "answered_by_id" not in json.dumps(before)
    made = ChatMessage.objects.get(session=imported(before, ana).session, type="tool_group")
    assert made.asked == [row.asked[0], {**open_one, "withdrawn": "leaving"}]
    assert made.status == "interrupted"


@pytest.mark.both_databases
def test_history_names_those_who_are_not_here(talk: Session, bo: User) -> None:
    """MSG-11: the history has the names of users without accounts here, also for added messages."""
    before = document(talk)
    before["messages"][1]["revisions"].insert(
        0, {"kind": "add", "by": "Cy", "at": talk.created_at.isoformat(), "before": {}}
    )
    made = imported(before, bo)
    row = ChatMessage.objects.get(session=made.session, sequence=2)
    found = [(change.kind, change.user and change.user.sender, change.before) for change in history_of(row).changes]
    was = {"text": "What is 6 × 7? 你好 🙂"}
    assert found == [("edit", "Ana", was), ("add", "Cy", was)]


def test_changes_of_the_mode_and_of_replies_come_back(talk: Session, ana: User) -> None:
    """MSG-11: the history of an imported session has the mode and the setting of replies before each change."""
    lifecycle.configure(session=talk, author=ana, mode="chat", replies="mentions")
    before = settled(talk)
    changes = imported(before, ana).session.revisions.filter(kind="agent").values_list("before", flat=True)
    assert {"mode": "agent", "replies": "all"}.items() <= changes[0].items()


def test_any_history_survives(own_files: None, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-03, MSG-11: after any history, also during a turn, the imported session is at rest, and its export equals
    that of its own import. If the session was at rest, it equals the session's export too."""
    published = RecordingPublisher()
    monkeypatch.setattr(publisher, "publisher", published)
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))

    def teardown(self: History) -> None:
        first = document(self.session)
        copy = imported(first, bo)
        check_rest(copy.session)
        second = document(copy.session)
        if not copy.notes and self.is_idle:
            assert alike(second) == alike(first)
        forget(copy.session)
        again = imported(second, ana)
        assert again.kept_ids
        marked = {**second["session"], "title": again.session.title}  # the original is another session of Ana
        assert document(again.session) == {**second, "session": marked}

    machine = type("Exported", (History,), {"published": published, "people": [ana, bo], "teardown": teardown})
    run_state_machine_as_test(machine, settings=settings(max_examples=cases(4), stateful_step_count=25, deadline=None))
