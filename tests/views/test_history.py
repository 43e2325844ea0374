"""Pages about the past: a message's history, full versions, removed messages, and the comparison of two texts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.models import ChatMessage, Session, SessionRole, User
from chat.services.messages.editing import edit, edit_tool_call, remove, set_included
from chat.services.people import sharing
from chat.services.runs.control import retry
from chat.services.sessions import actions
from chat.services.sessions.lifecycle import set_system_prompt
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
PROMPT = "system_prompt"


def asked(client: Client, route: str, session: Session, status: int = 200, **values: str | int) -> str:
    response = client.get(reverse(route, args=[session.pk]), values)
    assert response.status_code == status
    assert status != 200 or "no-store" in response["Cache-Control"]
    return response.content.decode()


@pytest.fixture
def row(session: Session, ana: User) -> ChatMessage:
    """A message that has been edited twice and excluded."""
    row = fill(session, START, {**HI, "text": "Be brief."}, ANSWER, DONE)[1]
    edit(session=session, author=ana, message_id=row.pk, text="Be <b>kind</b>.")
    set_included(session=session, author=ana, message_id=row.pk, included=False)
    edit(session=session, author=ana, message_id=row.pk, text="Be kind & brief.")
    return row


def test_history_shows_what_differs(session: Session, ana: User, signed_in: SignIn, row: ChatMessage) -> None:
    """MSG-11: the history has each change with its user and the difference, and the users' text is escaped."""
    html = asked(signed_in(ana), "session-history", session, id=row.pk)
    assert html.index("Excluded from context") < html.index("Originally sent")
    assert html.count("Edited") == 2
    assert html.count("<bdi>Ana</bdi>") == 4
    assert "<b>" not in html
    assert "<del>brief</del><ins>&lt;b&gt;kind&lt;/b&gt;</ins>" in html
    assert html.count("Restore this version") == 2
    assert html.count("current") == 1


def test_history_is_one_page_of_few_queries(session: Session, ana: User, signed_in: SignIn, row: ChatMessage) -> None:
    """MSG-11: thirty changes take as many queries as three; the page loads the rest on demand."""
    client = signed_in(ana)
    with CaptureQueriesContext(connection) as few:
        asked(client, "session-history", session, id=row.pk)
    for number in range(30):
        edit(session=session, author=ana, message_id=row.pk, text=f"{number}")
    with CaptureQueriesContext(connection) as many:
        html = asked(client, "session-history", session, id=row.pk)
    assert len(many) == len(few)
    before = html.split('data-before="')[1].split('"')[0]
    rest = asked(client, "session-history", session, id=row.pk, before=before)
    assert "<dialog" not in rest
    assert (html + rest).count("Edited") == 32


def test_version_is_given_to_the_letter(session: Session, ana: User, signed_in: SignIn) -> None:
    """MSG-11, MSG-12: a version comes with the current text, and with the revision that a change of it has to send."""
    text = "\r\n a\u202eb 😀\n"
    row = fill(session, START, {**HI, "text": text}, ANSWER, DONE)[1]
    edit(session=session, author=ana, message_id=row.pk, text="New")
    record = row.revisions.get().pk
    answer_json = json.loads(asked(signed_in(ana), "session-version", session, id=row.pk, at=record))
    assert answer_json == {"text": text, "now": "New", "revision": 5, "newest": record}


def test_prompt_has_a_history_too(session: Session, ana: User, bo: User, signed_in: SignIn) -> None:
    """UI-11, MSG-11: the system prompt has a history page."""
    set_system_prompt(session=session, author=bo, system_prompt="Be kind.")
    html = asked(signed_in(ana), "session-history", session, id=PROMPT)
    assert "System prompt history" in html
    assert "<bdi>Bo</bdi>" in html
    assert "Restore this version" in html


def test_tool_call_s_history_has_no_restore(session: Session, ana: User, signed_in: SignIn) -> None:
    """MSG-07, MSG-11: the history shows arguments and result separately."""
    row = fill(session, START, HI, TOOL, ANSWER, DONE)[2]
    edit_tool_call(session=session, author=ana, message_id=row.pk, arguments={}, result="4", is_error=False)
    html = asked(signed_in(ana), "session-history", session, id=row.pk)
    assert "<del>2</del><ins>4</ins>" in html
    assert "Restore" not in html


def test_removed_messages_are_listed_by_what_took_them(session: Session, ana: User, signed_in: SignIn) -> None:
    """MSG-11, RUN-12: removed messages can be restored; messages that a retry replaced cannot, and the list says so."""
    rows = fill(session, START, HI, TOOL, {**ANSWER, "text": "<i>So</i>"}, DONE)
    client = signed_in(ana)
    assert "No removed messages" in asked(client, "session-removed", session)
    remove(session=session, author=ana, message_id=rows[3].pk)
    html = asked(client, "session-removed", session)
    assert "&lt;i&gt;So&lt;/i&gt;" in html
    assert html.count('data-action="restore-removed"') == 1
    retry(session=session, author=ana, message_id=rows[2].pk)
    html = asked(client, "session-removed", session)
    assert "Replaced by a retry" in html
    assert "double" in html
    assert html.count('data-action="restore-removed"') == 1


def test_removed_note_is_by_the_system_in_the_language_of_the_page(
    session: Session, ana: User, signed_in: SignIn
) -> None:
    """UI-13: names that Parley gives are translated, also in place of a sender."""
    note = {**ANSWER, "role": "system", "text": "Be brief."}
    rows = fill(session, START, HI, note, DONE)
    remove(session=session, author=ana, message_id=rows[2].pk)
    address = reverse("session-removed", args=[session.pk])
    html = signed_in(ana).get(address, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "<bdi>系统</bdi>" in html


def test_what_was_removed_is_for_those_who_may_put_it_back(session: Session, ana: User, signed_in: SignIn) -> None:
    """LIVE-06, MSG-11: viewers see the history of visible messages, but neither controls nor removed messages."""
    rows = fill(session, START, HI, ANSWER, DONE)
    edit(session=session, author=ana, message_id=rows[1].pk, text="Hello")
    remove(session=session, author=ana, message_id=rows[2].pk)
    viewer = person("Vi", session.workspace)
    sharing.share(session=session, author=ana, user=viewer, role=SessionRole.VIEWER)
    client = signed_in(viewer)
    assert "Restore" not in asked(client, "session-history", session, id=rows[1].pk)
    for route in ("session-history", "session-version"):
        asked(client, route, session, 404, id=rows[2].pk)
    asked(client, "session-removed", session, 403)
    assert "This message has been removed." in asked(signed_in(ana), "session-history", session, id=rows[2].pk)


def test_archived_session_offers_no_restore(session: Session, ana: User, signed_in: SignIn, row: ChatMessage) -> None:
    """MSG-11: the history of an archived session is read-only."""
    actions.archive(user=ana, session_id=session.pk)
    assert "Restore" not in asked(signed_in(ana), "session-history", session, id=row.pk)


def test_messages_of_other_sessions_are_not_found(session: Session, ana: User, signed_in: SignIn) -> None:
    """LIVE-06, MSG-12: messages of other sessions, invalid ids or numbers, and versions of other messages get a 404."""
    row = fill(session, START, HI, DONE)[1]
    other = fill(Session.objects.create(workspace=session.workspace, owner=person("Eve")), START, HI, DONE)[1]
    client = signed_in(ana)
    edit(session=session, author=ana, message_id=row.pk, text="Hello")
    record = row.revisions.get().pk
    asks: dict[str, str]
    for asks in ({"id": other.pk}, {"id": "\0"}, {}, {"id": row.pk, "before": "x"}):
        asked(client, "session-history", session, 404, **asks)
    for at in (record + 1, "9" * 30, "-1"):
        asked(client, "session-version", session, 404, id=row.pk, at=at)
    asked(client, "session-version", session, 404, id=PROMPT, at=record)


def test_texts_are_compared_with_what_is_there(session: Session, ana: User, bo: User, signed_in: SignIn) -> None:
    """MSG-11: the answer has the current text, its author, and what the user's own text would change."""
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    row = fill(session, START, {**ANSWER, "text": "Hi"}, DONE)[1]
    edit(session=session, author=bo, message_id=row.pk, text="Hi <all>")
    client, address = signed_in(ana), reverse("session-compare", args=[session.pk])
    answer_json = client.post(address, {"id": row.pk, "mine": "Hi you"}).json()
    assert (answer_json["current"], answer_json["revision"]) == ("Hi <all>", 4)
    assert "Bo edited this while you were typing." in answer_json["html"]
    assert "<del>&lt;all&gt;</del><ins>you</ins>" in answer_json["html"]
    assert client.post(address, {"id": PROMPT, "mine": "x" * 1_000_000}).json()["revision"] is None
    assert client.post(address, {"id": "m_none", "mine": "\0"}).status_code == 404
    assert "You changed this elsewhere" in signed_in(bo).post(address, {"id": row.pk, "mine": "\0"}).json()["html"]
