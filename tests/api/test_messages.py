"""Reading and changing messages over the API."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from chat.api.api import api
from chat.models import ChatMessage, MessageRevision, Session, SessionRole, SessionRun, User
from chat.queries.messages import message_snapshot
from chat.services.messages import sending
from tests.api.asking import Asker, code, token_of
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill, live
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
TURN = [START, HI, TOOL, ANSWER, DONE]


def path(session: Session, row: ChatMessage | None = None, rest: str = "") -> str:
    return f"/api/sessions/{session.pk}/messages{f'/{row.pk}' if row else ''}{rest}"


def everything(asker: Asker, session: Session, way: str) -> list[int]:
    """Return the sequence numbers of all pages in one direction, in order."""
    found: list[int] = []
    query = "" if way == "before" else "&after=0"
    while True:
        page = asker.get(f"{path(session)}?limit=2{query}").json()
        numbers = [message["sequence"] for message in page["messages"]]
        found = [*numbers, *found] if way == "before" else [*found, *numbers]
        if not page["more"]:
            return found
        query = f"&before={numbers[0]}" if way == "before" else f"&after={numbers[-1]}"


def test_messages_are_read_both_ways(asker: Asker, session: Session) -> None:
    """LIVE-01: pages in both directions have each message once, in order, in the form of the socket."""
    rows = fill(session, *TURN, *TURN)
    assert everything(asker, session, "before") == everything(asker, session, "after") == list(range(1, 11))
    snapshots = [message_snapshot(row.pk) for row in rows]
    returned = asker.get(path(session)).json()["messages"]
    assert returned == [each.to_json() for each in snapshots if each]
    assert asker.get(path(session, rows[2])).json() == returned[2]


def test_long_messages_make_short_pages(asker: Asker, session: Session) -> None:
    """MSG-12: the size of a page is bounded, unless a single message exceeds it. Arguments and results count less."""
    fill(session, *[{**HI, "text": "x" * 150_000}] * 3)
    fill(session, *[{**TOOL, "result": "x" * 300_000, "arguments": {"text": "x" * 300_000}}] * 3)
    page = asker.get(path(session)).json()
    assert ([each["sequence"] for each in page["messages"]], page["more"]) == ([5, 6], True)
    page = asker.get(f"{path(session)}?before=4").json()
    assert ([each["sequence"] for each in page["messages"]], page["more"]) == ([2, 3], True)


def test_sent_message_begins_a_turn_or_waits(asker: Asker, session: Session) -> None:
    """RUN-01, RUN-06, MSG-02: a sent message begins a turn or is queued, and repeating the request adds nothing."""
    first = asker.post(path(session), {"text": "Hi", "key": "k1"})
    returned = first.json()
    assert (first.status_code, returned["queued"], returned["repeated"]) == (201, False, False)
    assert asker.get(first["Location"]).json()["text"] == "Hi"
    again = asker.post(path(session), {"text": "Hi", "key": "k1"})
    assert (again.status_code, again.json()) == (200, {**returned, "repeated": True})
    queued = asker.post(path(session), {"text": "And then?"}).json()
    assert queued["queued"] is True
    assert [each["id"] for each in asker.get(path(session)).json()["queued"]] == [queued["id"]]
    taken = asker.post(f"{path(session)}/{queued['id']}/withdraw")
    assert taken.json() == {"attachments": []}
    assert asker.get(path(session)).json()["queued"] == []
    assert asker.post(f"/api/sessions/{session.pk}/cancel").json() == {"stopping": True}


def test_changed_message_is_returned_as_it_is_now(asker: Asker, session: Session) -> None:
    """A changed message is returned as it is now (MSG-09, MSG-11)."""
    row = fill(session, *TURN)[1]
    returned = asker.patch(path(session, row), {"text": "Hello", "include_in_context": False}).json()
    assert (returned["text"], returned["edited"], returned["include_in_context"]) == ("Hello", True, False)
    assert [each.kind for each in MessageRevision.objects.order_by("pk")] == ["edit", "exclude"]
    assert asker.patch(path(session, row), {"include_in_context": True}).json()["include_in_context"] is True
    unread = {"include_in_context": False, "revision": row.revision}
    assert code(asker.patch(path(session, row), unread)) == (409, "stale")
    read = asker.patch(path(session, row), {**unread, "revision": returned["revision"]}).json()
    assert read["include_in_context"] is False
    assert asker.patch(path(session, row), {}).status_code == 200


def test_nothing_is_written_over_unseen(asker: Asker, session: Session, bo: User) -> None:
    """MSG-11: the second change is refused with the current state, whether the client sends a tag or a revision."""
    row = fill(session, *TURN)[3]
    let_in(session, bo, SessionRole.EDITOR)
    seen = asker.get(path(session, row))
    Asker(token_of(bo)).patch(path(session, row), {"text": "Bo's"})
    by_tag = asker.patch(path(session, row), {"text": "Mine"}, if_match=seen["ETag"])
    assert (code(by_tag), by_tag.json()["current"]["text"]) == ((412, "stale"), "Bo's")
    by_revision = asker.patch(path(session, row), {"text": "Mine", "revision": seen.json()["revision"]})
    assert (code(by_revision), by_revision.json()["current"]) == ((409, "stale"), "Bo's")
    assert code(asker.delete(path(session, row), if_match=seen["ETag"])) == (412, "stale")
    now = asker.get(path(session, row))["ETag"]
    assert asker.patch(path(session, row), {"text": "Mine"}, if_match=f"W/{now}").json()["text"] == "Mine"


def test_removed_message_comes_back(asker: Asker, session: Session) -> None:
    """A removed message can be restored (MSG-11)."""
    row = fill(session, *TURN)[2]
    assert asker.delete(path(session, row)).status_code == 204
    assert code(asker.get(path(session, row))) == (404, "no_such_message")
    assert asker.post(path(session, row, "/restore")).json()["sequence"] == 3
    assert len(live(session)) == 5


def test_queued_message_is_not_removed_from_the_conversation(asker: Asker, session: Session, ana: User) -> None:
    """MSG-09: it is not part of it, so it has no position. `withdraw` removes it from the queue."""
    row = ChatMessage.objects.create(session=session, role="user", text="Wait", user=ana, status="queued", held=True)
    assert code(asker.delete(path(session, row))) == (409, "queued")
    assert ChatMessage.objects.queued(session.pk).get() == row
    sending.withdraw(session=session, author=ana, message_id=row.pk)
    assert code(asker.post(path(session, row, "/restore"))) == (409, "never_delivered")


def test_retry_and_fork_go_on(asker: Asker, session: Session) -> None:
    """RUN-12, RUN-13: a fork runs unless `run` is false, and requests with the same key make one fork."""
    rows = fill(session, *TURN)
    body = {"key": "k1"}
    first, again = (asker.post(path(session, rows[1], "/fork"), body) for _ in range(2))
    returned = first.json()
    assert (first.status_code, again.status_code, again.json()) == (201, 200, {**returned, "repeated": True})
    forked = asker.get(first["Location"]).json()
    assert (forked["agent_status"], forked["forked_from"]) == ("thinking", session.pk)
    still = asker.post(path(session, rows[1], "/fork"), {"text": "Other", "run": False}).json()["session"]
    assert asker.get(f"/api/sessions/{still}").json()["agent_status"] == "idle"
    assert asker.post(path(session, rows[3], "/retry")).status_code == 200
    assert code(asker.post(path(session, rows[1], "/retry"))) == (409, "busy")


def test_retry_tells_what_it_withdrew_and_is_taken_back(asker: Asker, session: Session) -> None:
    """RUN-12: a retry withdraws no more messages than the client allows.

    The attempt is listed and can be restored; the same holds for running tools again.
    """
    rows = fill(session, *TURN, *TURN)
    refused = asker.post(path(session, rows[1], "/retry?at_most=0"))
    assert (code(refused), refused.json()["messages"], refused.json()["people"]) == ((409, "confirm"), 5, 1)
    returned = {"messages": 5, "people": 1, "others": 1, "last_answer": False, "after": rows[1].pk}
    assert asker.post(path(session, rows[1], "/retry?preview=true")).json() == {**returned, "attempt": ""}
    done = asker.post(path(session, rows[1], "/retry?at_most=5")).json()
    assert done == {**returned, "attempt": done["attempt"]}
    SessionRun.objects.filter(pk=session.pk).update(state="idle", turn_id="")
    address = f"/api/sessions/{session.pk}/attempts"
    (listed,) = asker.get(address).json()["attempts"]
    assert (listed["id"], listed["after"], listed["messages"]) == (done["attempt"], rows[1].pk, 5)
    anchor = asker.get(path(session, rows[1])).json()
    assert (listed["number"], anchor["attempt_count"], anchor["attempt_current"]) == (1, 2, 2)
    assert code(asker.post(path(session, rows[1], "/attempts/3"))) == (404, "no_such_attempt")
    assert asker.post(path(session, rows[1], "/attempts/1?preview=true")).json()["messages"] == 0
    assert asker.post(f"{address}/{done['attempt']}/restore").json()["messages"] == 0
    assert [row["id"] for row in asker.get(path(session)).json()["messages"]] == [row.pk for row in rows]
    assert code(asker.post(f"{address}/{done['attempt']}/restore")) == (404, "no_such_attempt")
    assert asker.post(path(session, rows[7], "/run_tools")).json()["messages"] == 2


def test_others_suggest_edits(asker: Asker, session: Session, ana: User, bo: User) -> None:
    """MSG-11: an editor can only suggest an edit of another user's message, and its author accepts the suggestion."""
    row = fill(session, START, {**HI, "user": ana}, DONE)[1]
    let_in(session, bo, SessionRole.EDITOR)
    editor, about = Asker(token_of(bo)), path(session, row, "/suggestions")
    assert code(editor.patch(path(session, row), {"text": "Yo"})) == (403, "not_yours")
    made = editor.post(about, {"text": "Yo"})
    (listed,) = asker.get(made["Location"]).json()["suggestions"]
    assert (listed["id"], listed["name"], listed["text"]) == (made.json()["suggestion"], "Bo", "Yo")
    assert asker.get(path(session, row)).json()["suggestions"] == 1
    address = f"/api/sessions/{session.pk}/suggestions/{listed['id']}"
    assert code(editor.post(f"{address}/accept", {})) == (403, "not_yours")
    revision = asker.post(f"{address}/accept", {}).json()["revision"]
    returned = asker.get(path(session, row)).json()
    assert (returned["text"], returned["suggested_by"], returned["edited_by"], returned["revision"]) == (
        "Yo",
        "Bo",
        "",
        revision,
    )
    assert code(asker.post(f"{address}/dismiss")) == (404, "no_such_suggestion")


def test_held_messages_are_sent(asker: Asker, session: Session) -> None:
    """RUN-06: a request sends the messages that a stop has held."""
    asker.post(path(session), {"text": "Hi"})
    asker.post(path(session), {"text": "And?"})
    asker.post(f"/api/sessions/{session.pk}/cancel")
    assert [each["held"] for each in asker.get(path(session)).json()["queued"]] == [True]
    assert asker.post(f"/api/sessions/{session.pk}/send_now", {}).json() == {"sent": 1}
    assert [each["held"] for each in asker.get(path(session)).json()["queued"]] == [False]


def test_viewer_changes_nothing_and_may_fork(reader: Asker, session: Session) -> None:
    """A viewer can fork a session but not change it (LIVE-06, RUN-13)."""
    row = fill(session, *TURN)[1]
    refused = [
        reader.post(path(session), {"text": "Hi"}),
        reader.patch(path(session, row), {"text": "Hi"}),
        reader.delete(path(session, row)),
        reader.post(path(session, row, "/retry")),
    ]
    assert [code(each) for each in refused] == [(403, "forbidden")] * 4
    assert reader.post(path(session, row, "/fork"), {"run": False}).status_code == 201


def test_messages_of_other_sessions_are_not_found(asker: Asker, session: Session, ana: User, bo: User) -> None:
    """LIVE-06: a message of another session is not found, and neither is an invalid id."""
    other = Session.objects.create(owner=bo, workspace=session.workspace)
    row = fill(other, HI)[0]
    for message_id in (row.pk, "m_none", "%00", "a%2Fb", "%F0%9F%98%80", "x" * 500):
        address = f"{path(session)}/{message_id}"
        for answer in (asker.get(address), asker.patch(address, {"text": "x"}), asker.delete(address)):
            assert answer.status_code == 404
    assert code(asker.patch(path(session, row), {})) == (404, "no_such_message")


def test_messages_before_a_place_are_excluded_and_included_again(asker: Asker, session: Session) -> None:
    """MSG-09: messages before a place are excluded in one request, and included again by the id in its answer."""
    rows = fill(session, *TURN, *TURN)
    asker.patch(path(session, rows[1]), {"include_in_context": False})
    out = asker.post(path(session, rows[6], "/exclude_before")).json()
    assert out["count"] == 2
    assert asker.post(path(session, rows[6], "/include_before"), {"since": out["since"]}).json()["count"] == 2
    assert asker.get(path(session, rows[1])).json()["include_in_context"] is False
    assert asker.post(path(session, rows[6], "/include_before")).json()["count"] == 1


def test_description_has_every_field_of_the_answers(asker: Asker, session: Session) -> None:
    """MSG-04, RUN-06: the schema has every field of the answers, because generated clients drop other fields."""
    schemas = api.get_openapi_schema()["components"]["schemas"]
    message = asker.get(path(session, fill(session, *TURN)[1])).json()
    assert message.keys() == schemas["Message"]["properties"].keys()
    assert asker.get(f"/api/sessions/{session.pk}").json().keys() == schemas["Session"]["properties"].keys()


def test_messages_of_one_turn_are_read(asker: Asker, session: Session) -> None:
    """MSG-08: the messages of a turn are read by the `turn_id` in the answer to sending."""
    fill(session, *TURN, turn_id="t_1")
    rows = fill(session, *TURN, turn_id="t_2")
    page = asker.get(f"{path(session)}?turn=t_2&limit=3").json()
    assert ([each["id"] for each in page["messages"]], page["more"]) == ([row.pk for row in rows[2:]], True)
    after = asker.get(f"{path(session)}?turn=t_2&after=0").json()
    assert [each["id"] for each in after["messages"]] == [row.pk for row in rows]
    assert asker.get(f"{path(session)}?turn=t_unknown").json()["messages"] == []


def test_sending_answers_with_turn_and_place(asker: Asker, session: Session) -> None:
    """RUN-01: the answer to sending has the turn and the place, by which the client finds the agent's answer."""
    returned = asker.post(path(session), {"text": "Hi"}).json()
    row = asker.get(f"{path(session)}/{returned['id']}").json()
    assert (returned["turn_id"], returned["sequence"]) == (row["turn_id"], row["sequence"]) == (row["turn_id"], 2)
    queued = asker.post(path(session), {"text": "And"}).json()
    assert (queued["turn_id"], queued["sequence"], queued["queued"]) == (None, None, True)


def test_key_of_another_request_is_refused(asker: Asker, session: Session) -> None:
    """MSG-02: a different request with the same key is refused, and the first request can still be repeated."""
    row = fill(session, *TURN)[1]
    for address, body, other in (
        (path(session), {"text": "one"}, {"text": "TWO"}),
        (path(session, row, "/fork"), {"run": False}, {"run": False, "text": "Other"}),
        ("/api/sessions", {"title": "A"}, {"title": "A", "mode": "chat"}),
    ):
        first = asker.post(address, {**body, "key": "k1"})
        assert first.status_code == 201
        assert code(asker.post(address, {**other, "key": "k1"})) == (409, "key_taken")
        assert asker.post(address, {**body, "key": "k1"}).status_code == 200


def test_usage_has_turns_tokens_and_models(asker: Asker, session: Session) -> None:
    """The usage of a session has its turns, tokens and models (MSG-06)."""
    fill(session, *TURN, START, HI, DONE)
    usage = asker.get(f"/api/sessions/{session.pk}/usage").json()
    assert (usage["turns"], usage["input_tokens"], usage["models"]) == (2, 0, [])


@pytest.mark.parametrize("count", [1, 30])
def test_pages_cost_the_same_however_long(
    asker: Asker, session: Session, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """LIVE-01: the number of queries is constant, however many messages there are."""
    fill(session, *TURN * count)
    asker.get("/api/me")
    for address, queries in (
        (path(session), 5),
        (f"/api/sessions/{session.pk}/context", 8),
        (f"/api/sessions/{session.pk}/context/estimate", 8),
    ):
        with django_assert_num_queries(queries):
            assert asker.get(address).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_plain_message_begins_its_turn_as_quickly_as_over_a_socket(
    asker: Asker, session: Session, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """RUN-01: a request that sends a plain message takes the short path, which needs a transaction of its own."""
    asker.get("/api/me")
    with django_assert_max_num_queries(7):
        returned = asker.post(path(session), {"text": "Hi"})
    assert (returned.status_code, returned.json()["queued"]) == (201, False)
