"""Steps and segments over the API."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import Session
from chat.queries.steps import page_of_steps
from tests.api.asking import Asker, code
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill

pytestmark = pytest.mark.django_db
TURN = [START, HI, TOOL, ANSWER, DONE]


def pages(asker: Asker, session: Session, what: str, limit: int) -> list[Any]:
    """Return the contents of all pages in succession."""
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = asker.get(f"/api/sessions/{session.pk}/{what}?limit={limit}&after={after}").json()
        found += page["steps" if what == "steps" else "turns"]
        after = page["next"]
    return found


@pytest.mark.parametrize("limit", [1, 2, 200])
@pytest.mark.both_databases
def test_pages_hold_every_step_once(asker: Asker, session: Session, limit: int) -> None:
    """CTX-04: pages contain each step once, in order, whatever their size."""
    fill(session, *TURN, *TURN)
    assert pages(asker, session, "steps", limit) == [step.to_json() for step in page_of_steps(session).steps]


@pytest.mark.parametrize("limit", [1, 200])
@pytest.mark.both_databases
def test_segments_are_read_turn_by_turn(asker: Asker, session: Session, limit: int) -> None:
    """CTX-05: a page of segments never splits a turn."""
    fill(session, *TURN, turn_id="t_1")
    fill(session, *TURN, turn_id="t_2")
    tool = {"type": "tool", "tool_call_id": "c1", "tool_name": "double", "arguments": {}, "status": "success"}
    did = [{**tool, "result": "2", "error": None}, {"type": "text", "content": "So"}]
    turns = [{"turn_id": "t_1", "sequence": 1, "segments": did}, {"turn_id": "t_2", "sequence": 6, "segments": did}]
    assert pages(asker, session, "segments", limit) == turns


def test_same_steps_are_not_sent_again(asker: Asker, session: Session) -> None:
    """LIVE-03: the answer is 304 if the client sends the tag of the same steps."""
    fill(session, *TURN)
    path = f"/api/sessions/{session.pk}/steps"
    tag = asker.get(path)["ETag"]
    assert asker.get(path, if_none_match=tag).status_code == 304


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "after=-1", "after=x", f"after={10**30}"])
@pytest.mark.parametrize("what", ["steps", "segments"])
def test_odd_pages_are_refused(asker: Asker, session: Session, what: str, query: str) -> None:
    """MSG-12: invalid pages are refused with a message, without a server error."""
    assert code(asker.get(f"/api/sessions/{session.pk}/{what}?{query}")) == (422, "malformed")


def test_stream_of_another_history_is_refused(asker: Asker, session: Session) -> None:
    """LIVE-03: a client with a later revision than the session has to start again, and the answer has the session's
    revision."""
    fill(session, *TURN)
    answer = asker.get(f"/api/sessions/{session.pk}/steps/stream", last_event_id="6")
    assert code(answer) == (409, "stale")
    assert answer.json()["revision"] == 5
