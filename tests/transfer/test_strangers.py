"""Files in Parley's own format that another user has created or changed."""

from __future__ import annotations

import copy
import io
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.approval import Rules
from agents.config import Config
from agents.messages import Json
from agents.registry import Registry
from chat import agents_setup
from chat.agents_setup import registry
from chat.errors import ServiceError
from chat.models import Attachment, ChatMessage, MessageRevision, Session, User
from chat.queries import presets
from chat.queries.model_requests import past_request
from chat.services.people.sharing import share
from chat.services.runs.attempts import attempts_of, restore_attempt
from chat.services.runs.control import retry
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from chat.transfer.importing import files as import_files
from chat.transfer.importing.files import import_file
from chat.transfer.importing.session import ImportedSession
from tests.support.effort import cases
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.rest import check_rest
from tests.transfer.conftest import document

TIME = "2025-01-01T00:00:00+00:00"
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    2**70,
    "",
    "x" * 300,
    "\0",
    "\ud800",
    [],
    [[]],
    {},
    {"a": {"b": 1}},
    "running",
    "queued",
]


def imported(value: object, owner: User, **options: Any) -> ImportedSession:
    [made] = import_file(owner=owner, file=io.BytesIO(json.dumps(value).encode()), **options).imported
    return made


def talk_of(*messages: Json, **session: Any) -> Json:
    return {"format": "parley.session", "version": 1, "session": session, "messages": list(messages)}


def refusal(value: object, owner: User) -> str:
    with pytest.raises(ServiceError) as refused:
        imported(value, owner)
    return refused.value.message


def test_hand_written_document_needs_little(ana: User) -> None:
    """MSG-10: missing values, including ids, have defaults."""
    made = imported(talk_of({"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Ho"}), ana)
    rows = ChatMessage.objects.filter(session=made.session).order_by("sequence")
    assert [(row.sequence, row.text, row.pk[:2], row.revision) for row in rows] == [
        (1, "Hi", "m_", 1),
        (2, "Ho", "m_", 2),
    ]
    assert not made.kept_ids
    check_rest(made.session)


def test_imported_session_is_marked_as_one(ana: User) -> None:
    """An imported session is marked, because its messages are not from users here.

    The mark restricts tools, is not exported, and is kept by forks.
    """
    made = imported(talk_of({"role": "user", "text": "Hi"}, config={"imported": False}), ana)
    session = Session.objects.get(pk=made.session.pk)
    message = ChatMessage.objects.get(session=session)
    copy = fork(session=session, author=ana, message_id=message.pk)
    assert (presets.own(session).is_imported, presets.own(copy).is_imported) == (True, True)
    assert registry().build_agent(presets.own(session)).is_imported
    assert "imported" not in document(session)["session"]["config"]


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ([], ["a.example"]),
        (["b.example"], ["a.example"]),
        (["a.example", "b.example"], ["a.example"]),
        ("x", ["a.example"]),
    ],
)
def test_file_reaches_no_hosts_beyond_those_of_the_agents(ana: User, wanted: object, kept: list[str]) -> None:
    """A file cannot extend the list of hosts that an administrator has set."""
    agents = {"only": {"allowed_hosts": ["a.example"]}}
    agents_setup.install(
        Registry(Config.model_validate({"providers": {"demo": {"type": "demo"}}, "agents": agents}), {})
    )
    config = {"tools": ["web_fetch"], "max_rounds": 5, "allowed_hosts": wanted}
    made = imported(talk_of({"role": "user", "text": "Hi"}, agent="only", config=config), ana)
    assert Session.objects.get(pk=made.session.pk).config["allowed_hosts"] == kept


def test_file_approves_no_tools(ana: User) -> None:
    """UI-12: approval rules of a file are ignored, and those of the agent here apply."""
    agents = {"only": {"approval": {"ask": ["web_fetch"]}}}
    agents_setup.install(
        Registry(Config.model_validate({"providers": {"demo": {"type": "demo"}}, "agents": agents}), {})
    )
    config = {"tools": ["web_fetch"], "max_rounds": 5, "approved": ["web_fetch"], "approval": {"allow": ["*"]}}
    made = imported(talk_of({"role": "user", "text": "Hi"}, agent="only", config=config), ana)
    rules = presets.own(Session.objects.get(pk=made.session.pk)).rules
    assert rules == Rules(ask=("web_fetch",))


def test_rows_are_put_in_order_and_to_rest(ana: User) -> None:
    """CTX-03, MSG-03, MSG-07: gaps are closed, turns are closed and do not overlap, and running items are
    interrupted."""
    made = imported(
        talk_of(
            {"sequence": 900, "type": "tool_group", "status": "running", "run_id": "t_a", "tool_name": "bash"},
            {"sequence": 5, "type": "turn_start", "run_id": "t_a"},
            {"sequence": 5, "role": "user", "text": "Hi", "run_id": "t_b"},
            {"sequence": 7, "role": "assistant", "status": "streaming", "text": "Wel", "run_id": "t_a"},
            {"sequence": 1000, "type": "turn_start", "run_id": "t_a"},
            {"sequence": 3, "type": "turn_done", "run_id": "t_a"},
            {"type": "reasoning", "role": "user", "status": "queued", "text": "Hm"},
        ),
        ana,
    )
    rows = ChatMessage.objects.filter(session=made.session, sequence__isnull=False).order_by("sequence")
    assert [(row.type, row.status) for row in rows] == [
        ("turn_start", "complete"),
        ("text", "complete"),
        ("text", "interrupted"),
        ("tool_group", "interrupted"),
        ("turn_done", "complete"),
        ("turn_start", "complete"),
        ("turn_done", "complete"),
    ]
    check_rest(made.session)


@pytest.mark.parametrize("status", ["complete", "queued"])
@pytest.mark.both_databases
def test_attempts_of_a_file_are_restored(ana: User, status: str) -> None:
    """RUN-12: attempts are restored as far as their messages can exist in a session, unlike queued ones."""
    session = create_session(owner=ana)
    rows = fill(session, START, HI, {**ANSWER, "response_id": "r_1"}, DONE, START, HI, DONE)
    retry(session=session, author=ana, message_id=rows[2].pk)
    written = document(session)
    for message in written["messages"]:
        if message.get("attempt") and message.get("role") == "user":
            message["status"] = status
    made = imported(written, ana, keep_ids=False)
    [attempt] = attempts_of(made.session)
    restore_attempt(session=made.session, author=ana, attempt=attempt.id)
    said = ChatMessage.objects.in_conversation(made.session.pk).filter(type="text").order_by("sequence")
    assert [row.text for row in said] == ["Hi", "So", "Hi"][: 3 if status == "complete" else 2]
    check_rest(made.session)


def test_imported_messages_are_not_attributed_to_other_users(ana: User, bo: User) -> None:
    """MSG-04: names stay texts, and ids of users in the file do not refer to users here."""
    before = {**snapshot(), "user_id": bo.pk}
    made = imported(
        talk_of(
            {
                "role": "user",
                "text": "Hi",
                "sender": "Bo",
                "user_id": bo.pk,
                "user": bo.pk,
                "revisions": [{"kind": "edit", "by": "Bo", "at": TIME, "before": before}],
            }
        ),
        ana,
    )
    row = ChatMessage.objects.get(session=made.session)
    change = MessageRevision.objects.get(message=row)
    assert (row.sender, row.user, change.user, change.before["user_id"]) == ("Bo", None, None, None)
    assert change.before["by"] == "Bo"


def test_session_is_the_importer_s_alone(talk: Session, ana: User, bo: User) -> None:
    """LIVE-06: users who could see the session elsewhere have no access, and a deleted session is restored."""
    share(session=talk, author=ana, user=bo, role="editor")
    made = imported({**document(talk), "session": {"status": "deleted", "owner": ana.pk, "workspace": 1}}, bo)
    assert (made.session.owner, made.session.shares.count(), made.session.status) == (bo, 0, "active")


def test_no_tool_or_model_comes_in_that_is_not_on_offer(ana: User) -> None:
    """RUN-16: a file cannot select tools or models that are not offered."""
    config = {"tools": ["calculator", "launch"], "max_rounds": 900, "prompts": [], "agent_title": "Ours"}
    made = imported(talk_of(agent="secret", provider="demo", model="gpt-9", config=config), ana)
    session = Session.objects.get(pk=made.session.pk)
    assert session.config["tools"] == ["calculator"]
    assert session.config["max_rounds"] <= 25
    odd = imported(talk_of(agent="secret", config={**config, "tools": [{}, "calculator"]}), ana)
    assert Session.objects.get(pk=odd.session.pk).config["tools"] == ["calculator"]
    assert session.model != "gpt-9"
    assert len(made.notes) == 2


RESPONSE = "r_" + "a" * 24


@pytest.mark.parametrize("shared", [0, 5])
def test_imported_request_shows_no_rows_of_other_users(talk: Session, bo: User, shared: int) -> None:
    """LIVE-06: a recorded request in a file may name any row, and other requests that the file lacks; neither shows
    rows of others."""
    foreign = ChatMessage.objects.filter(session=talk, type="text").first()
    assert foreign is not None
    answer = {"role": "assistant", "text": "Ho", "response_id": RESPONSE}
    asked = {"response_id": RESPONSE, "revision": 1, "shared": shared, "created_at": TIME}
    made = imported({**talk_of(answer), "requests": [{**asked, "rows": [[foreign.pk, 2**53 - 1]]}]}, bo)
    past = past_request(made.session, ChatMessage.objects.get(session=made.session).response_id)
    assert past is None if shared else (past is not None and (past.rows, past.lost) == ([], [foreign.pk]))


def test_files_are_what_their_bytes_are(own_files: None, ana: User) -> None:
    """MSG-12: the type of a file depends on its bytes, not on the document. Files that cannot be used are reported."""
    files = [
        {"name": "../../etc/passwd", "kind": "image", "media_type": "text/html", "data": "SGkgdGhlcmU="},
        {"name": "bad", "data": "?"},
        {"name": "none"},
    ]
    made = imported(talk_of({"role": "user", "text": "Hi", "attachments": files}), ana)
    kept = Attachment.objects.get(session=made.session)
    assert (kept.name, kept.kind, kept.media_type, kept.size) == ("passwd", "text", "text/plain", 8)
    assert made.notes == ["2 files could not be used: bad, none."]


@pytest.mark.both_databases
def test_failed_import_leaves_nothing_behind(
    own_files: None, ana: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A failed import leaves no row and no file, because it is one transaction."""
    files = [{"name": "a.txt", "data": "SGkgdGhlcmU="}]
    monkeypatch.setattr("chat.transfer.importing.session.UserSessionState", None)
    with pytest.raises(AttributeError):
        imported(talk_of({"role": "user", "text": "Hi", "attachments": files}), ana)
    assert not Session.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


TWICE = {"words": {"template": "{a}{a}", "values": {"a": "x"}}}
TEMPLATE = {"words": {"template": "{a.__class__}", "values": {"a": "x"}}}


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"text": "a\0b"}, "messages.0.text"),
        ({"sequence": "1"}, "messages.0.sequence"),
        ({"type": "spell"}, "messages.0.type"),
        ({"timestamp": "9999-12-31T23:59:59-23:59"}, "messages.0.timestamp"),
        ({"timestamp": "2025-01-01"}, "messages.0.timestamp"),
        ({"duration_seconds": 1e300}, "messages.0.duration_seconds"),
        ({"arguments": {"a": "\ud800"}}, "messages.0.arguments"),
        ({"type": "error", "provider_data": TEMPLATE}, "messages.0.provider_data"),
        ({"type": "error", "provider_data": TWICE}, "messages.0.provider_data"),
        ({"revisions": [{"kind": "edit", "at": TIME, "before": {"text": 1}}]}, "messages.0.revisions.0.before"),
        ({"revisions": [{"kind": "remove", "at": TIME, "before": {"revision": -1}}]}, "messages.0.revisions.0.before"),
        ({"revisions": [{"kind": "remove", "at": TIME, "before": {"after": "../"}}]}, "messages.0.revisions.0.before"),
        ({"tool_name": "x" * 201}, "messages.0.tool_name"),
        ({"id": "m_" + "0" * 24 + "\n"}, "messages.0.id"),
    ],
)
@pytest.mark.both_databases
def test_what_cannot_be_kept_is_refused_by_its_place(ana: User, message: Json, place: str) -> None:
    """MSG-10, MSG-12: errors in Parley's own format are refused with their position, not repaired."""
    assert f"“Plan” was not imported: {place}" in refusal(talk_of({"role": "user", **message}, title="Plan"), ana)
    assert not Session.objects.exists()


def test_doubled_ids_are_refused(ana: User) -> None:
    """A file with duplicate ids is refused (MSG-02)."""
    twice = {"id": "m_" + "1" * 24, "text": "Hi"}
    assert "the same id" in refusal(talk_of(twice, twice), ana)


def test_deep_values_are_refused(ana: User) -> None:
    """MSG-10: deeply nested values are refused without a server error."""
    deep: Any = 1
    for _level in range(300):
        deep = [deep]
    assert "nested too deeply" in refusal(talk_of({"arguments": {"a": deep}}), ana)


@settings(max_examples=cases(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.both_databases
def test_whatever_is_changed_in_a_file_it_is_taken_or_refused(talk: Session, bo: User, data: st.DataObject) -> None:
    """MSG-10, MSG-12, CTX-03: a file with one or several values replaced is imported or refused."""
    made = copy.deepcopy(document(talk))
    for _change in range(data.draw(st.integers(1, 3))):
        spoil(made, data)
    with suppress(ServiceError):
        come = imported(made, bo)
        check_rest(come.session)
        document(come.session)


def spoil(node: Any, data: st.DataObject) -> None:
    """Replace one value below a node."""
    while True:
        names = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not names:
            return
        name = data.draw(st.sampled_from(names))
        below = node[name]
        if not isinstance(below, dict | list) or not below or data.draw(st.integers(0, 9)) == 0:
            node[name] = copy.deepcopy(data.draw(st.sampled_from(ODD)))  # the next change may be inside of it
            return
        node = below


def snapshot() -> Json:
    """Return a message's state as revisions store it."""
    names = ("id", "session_id", "type", "role", "status", "text", "sender", "model", "provider", "turn_id")
    empty = dict.fromkeys(names, "") | {"response_id": "", "timestamp": TIME, "include_in_context": True}
    nothing = dict.fromkeys(("sequence", "user_id", "duration_ms", "duration_seconds", "usage", "tool"))
    return {**empty, **nothing, "revision": 1, "edited": False}


def test_limit_is_that_of_the_settings(settings: Any) -> None:
    settings.MAX_IMPORT_MB = 3
    assert import_files.limit_bytes() == 3 * 1024 * 1024
