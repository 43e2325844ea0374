"""Forks, called through the service."""

from __future__ import annotations

from typing import Any

import pytest

from chat.access import session_for
from chat.commands import Fork
from chat.dispatch import amend
from chat.errors import NoSuchSession, ServiceError
from chat.models import Attachment, ChatMessage, MessageRevision, Session, SessionRun, User
from chat.projections.context import context
from chat.queries.cast import agents_from
from chat.queries.messages import changes_since
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, ERROR, HI, NOTE, START, THOUGHT, TOOL, fill, live, places
from tests.support.protocol import check_context
from tests.support.rest import check_rest
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
SPOKEN = [{**row, "response_id": "r_1"} for row in (THOUGHT, {**ANSWER, "input_tokens": 10, "output_tokens": 2}, TOOL)]
WHOLE = [START, HI, *SPOKEN, {**ANSWER, "response_id": "r_2"}, DONE]


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


def shown(session: Session) -> list[tuple[str, str]]:
    return [(row.type, row.text or row.result) for row in live(session)]


def test_fork_copies_up_to_a_message(session: Session, ana: User, bo: User) -> None:
    """RUN-13: the copied rows have new ids and are grouped as before. The fork names its original, which does not
    change."""
    rows = fill(session, *WHOLE) + fill(session, START, HI, turn_id="t_2")
    before = list(ChatMessage.objects.values())
    made = fork(session=session, author=bo, message_id=rows[5].pk)
    copies = live(made)
    assert shown(made) == shown(session)[:7]
    assert [place for place, _ in places(made)] == list(range(1, 8))
    assert not {row.pk for row in copies} & {row.pk for row in rows}
    assert len({row.turn_id for row in copies}) == 1
    assert copies[0].turn_id != "t_1"
    assert [row.response_id == copies[2].response_id for row in copies] == [False] * 2 + [True] * 3 + [False] * 2
    assert copies[4].tool_call_id == "c1"
    assert (copies[6].type, copies[6].duration_seconds) == ("turn_done", 1.0)
    assert (made.parent_session, made.parent_message_id, made.title) == (session, rows[5].pk, "Plan (fork)")
    assert (made.owner, made.workspace, made.model) == (bo, session.workspace, session.model)
    assert (made.total_tokens, made.context_used) == (12, 10)
    assert list(ChatMessage.objects.filter(session=session).values()) == before
    assert context(copies) == context(rows[:7])
    check_rest(made)


def test_key_is_one_of_its_user_and_message(session: Session, ana: User, bo: User) -> None:
    """MSG-02: a repeated request returns its fork. The same key with another message or user makes another fork."""
    let_in(session, bo, "viewer")
    first, second = (row.pk for row in fill(session, *WHOLE)[4:6])

    def ask(user: User, message_id: str) -> Any:
        command = Fork(type="fork", id=message_id, key="k")
        return amend(user=user, session_id=session.pk, commands=[command])[0]

    made = [ask(ana, first), ask(ana, second), ask(bo, first)]
    assert len({each["session"] for each in made}) == 3
    assert ask(ana, first) == {**made[0], "repeated": True}


def test_fork_is_its_makers_alone(session: Session, ana: User, bo: User) -> None:
    """RUN-13: only the user who forked has access to the fork."""
    let_in(session, bo, "editor")
    made = fork(session=session, author=ana, message_id=fill(session, *WHOLE)[1].pk)
    with pytest.raises(NoSuchSession):
        session_for(bo, made.pk)


def test_fork_is_shown_to_a_viewer_who_opens_it(session: Session, ana: User) -> None:
    """RUN-13, LIVE-02: a fork has its own revisions, so a viewer who opens it gets all of it."""
    made = fork(session=session, author=ana, message_id=fill(session, *WHOLE)[5].pk)
    changes = changes_since(made.pk, 0)
    assert changes is not None
    assert len(changes.messages) == changes.revision == 7
    assert changes.session.agent_status == "idle"


@pytest.mark.parametrize("at", range(7))
def test_fork_at_any_message_rests(session: Session, ana: User, at: int) -> None:
    """RUN-13, CTX-03: the turn is closed in a fork at any message, and the fork can continue."""
    made = fork(session=session, author=ana, message_id=fill(session, *WHOLE)[at].pk)
    check_rest(made)
    assert [row.type for row in live(made)][-1] == "turn_done"


def test_fork_can_replace_the_question(session: Session, ana: User, bo: User) -> None:
    """RUN-13: the fork ends with the new text, written by the user who forked, and the agent answers it."""
    rows = fill(session, *WHOLE)
    made = fork(session=session, author=bo, message_id=rows[5].pk, text="Ho", run=True)
    assert shown(made) == [("turn_start", ""), ("text", "Ho")]
    said = live(made)[1]
    assert (said.sender, said.user, said.edited_at) == ("Bo", bo, None)
    run = SessionRun.objects.get(pk=made.pk)
    assert (run.state, run.turn_id, run.wanted) == ("running", said.turn_id, 1)
    assert ChatMessage.objects.get(pk=rows[1].pk).text == "Hi"


@pytest.mark.parametrize(("at", "runs"), [(1, True), (4, True), (5, False), (6, False)])
def test_fork_runs_where_an_answer_is_missing(session: Session, ana: User, at: int, runs: bool) -> None:
    """RUN-13, RUN-12: a fork is answered after user text and tool results, but not after a finished answer."""
    made = fork(session=session, author=ana, message_id=fill(session, *WHOLE)[at].pk, run=True)
    assert (SessionRun.objects.get(pk=made.pk).state == "running") == runs
    assert ([row.type for row in live(made)][-1] == "turn_done") != runs


@pytest.mark.parametrize(("run", "text"), [(True, None), (True, "Ho"), (False, "Ho")])
def test_fork_at_a_text_for_no_agent_is_answered(session: Session, ana: User, run: bool, text: str | None) -> None:
    """RUN-13, RUN-17: a text that was for no agent has no turn to continue, so a fork that is to be answered opens
    one."""
    fill(session, *WHOLE)
    (talk,) = fill(session, {**HI, "for_agent": False}, turn_id="")
    made = fork(session=session, author=ana, message_id=talk.pk, run=run, text=text)
    state = SessionRun.objects.get(pk=made.pk)
    assert (state.state, state.wanted) == (("running", 1) if run else ("idle", 0))
    assert [row.type for row in live(made)][-2:] == (["text", "turn_start"] if run else ["turn_done", "text"])
    assert agents_from(live(made)[-1]) == ([made.agent] if run else [])
    check_context(live(made))


def test_fork_takes_excluded_and_edited_as_they_are(session: Session, ana: User) -> None:
    """RUN-13, MSG-09: excluded messages stay excluded in the fork. Revisions stay with the original."""
    rows = fill(session, START, HI, {**ANSWER, "include_in_context": False}, ERROR, DONE)
    MessageRevision.objects.create(message=rows[1], kind="edit", before={})
    made = fork(session=session, author=ana, message_id=rows[4].pk)
    assert [row.include_in_context for row in live(made)] == [True, True, False, True, True]
    assert not MessageRevision.objects.filter(message__session=made).exists()
    check_context(live(made))


@pytest.mark.parametrize(("text", "runs"), [(None, False), ("Ho", True), ("Hi", True)])
def test_fork_at_an_excluded_message_runs_only_with_a_new_text(
    session: Session, ana: User, text: str | None, runs: bool
) -> None:
    """RUN-13, MSG-09: a fork at an excluded message is answered only with a new text, because the model would not get
    the message."""
    row = fill(session, START, {**HI, "include_in_context": False}, ANSWER, DONE)[1]
    made = fork(session=session, author=ana, message_id=row.pk, text=text, run=True)
    assert (SessionRun.objects.get(pk=made.pk).state == "running") == runs
    assert live(made)[1].include_in_context == runs
    assert not ChatMessage.objects.get(pk=row.pk).include_in_context


def test_fork_of_a_deleted_session_is_refused(session: Session, ana: User) -> None:
    """RUN-13: forking a session that was deleted in the meantime is refused."""
    row = fill(session, START, HI)[1]
    Session.objects.filter(pk=session.pk).update(status="deleted")
    with pytest.raises(NoSuchSession):
        fork(session=session, author=ana, message_id=row.pk)


def test_fork_has_the_files(session: Session, ana: User) -> None:
    """RUN-13: the fork has its own rows for the same stored bytes."""
    row = fill(session, *WHOLE)[1]
    kept = {"user": ana, "name": "plan.txt", "kind": "text", "media_type": "text/plain", "size": 2, "text": "Hi"}
    Attachment.objects.create(session=session, message=row, file="attachments/s/a", **kept)
    Attachment.objects.create(session=session, file="attachments/s/b", **kept)
    made = fork(session=session, author=ana, message_id=row.pk)
    files = list(Attachment.objects.filter(session=made))
    assert [(file.message_id, file.name, file.file.name) for file in files] == [
        (live(made)[1].pk, "plan.txt", "attachments/s/a")
    ]
    assert Attachment.objects.count() == 3


@pytest.mark.parametrize(
    ("rows", "more", "code"),
    [
        ([], {}, "no_such_message"),
        ([START, NOTE], {"text": "Ho"}, "no_user_message"),
        ([START, HI], {"text": "a\0"}, "not_storable"),
        ([START, HI], {"text": " "}, "empty"),
    ],
)
def test_fork_is_refused(
    session: Session, ana: User, rows: list[dict[str, Any]], more: dict[str, Any], code: str
) -> None:
    """RUN-13, MSG-12: a fork at an unknown message, or with a text that cannot be used, is refused, and no session is
    made."""
    made = fill(session, *rows)
    with pytest.raises(ServiceError) as refused:
        fork(session=session, author=ana, message_id=made[-1].pk if made else "m_none", **more)
    assert refused.value.code == code
    assert Session.objects.count() == 1


def test_fork_of_a_running_turn_waits_for_it(session: Session, ana: User) -> None:
    """RUN-13: a fork at the answer that is being written is refused; at the message before it, in the same turn, it is
    not."""
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    rows = fill(session, START, HI, {**ANSWER, "status": "streaming"})
    with pytest.raises(ServiceError) as refused:
        fork(session=session, author=ana, message_id=rows[2].pk)
    assert refused.value.code == "busy"
    check_rest(fork(session=session, author=ana, message_id=rows[1].pk))


def test_fork_of_a_session_without_a_title_has_none(session: Session, ana: User) -> None:
    """RUN-13: a fork of a session without a title has none, and a long title is cut to the limit."""
    row = fill(session, START, HI)[1]
    for title, expected in (("", ""), ("x" * 200, "x" * 193 + " (fork)")):
        Session.objects.filter(pk=session.pk).update(title=title)
        session.refresh_from_db()
        assert fork(session=session, author=ana, message_id=row.pk).title == expected
