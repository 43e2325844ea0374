"""Which users a message mentions, and the mark of the session in their list (LIVE-07)."""

from __future__ import annotations

from datetime import UTC

import pytest

from chat.models import ChatMessage, Session, SessionRun, User, UserSessionState
from chat.queries.session_list import listing
from chat.services.messages.editing import edit
from chat.services.messages.sending import send_message
from chat.services.people import members_agents, sharing
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions import user_state
from chat.services.sessions.agents import add_agent
from chat.services.sessions.lifecycle import configure, create_session
from chat.snapshots import MentionSnapshot, MessageSnapshot
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User, bo: User) -> Session:
    """A session of two users whose agent answers only messages that mention it."""
    session = create_session(owner=ana, title="Plan")
    let_in(session, bo, "viewer")
    configure(session=session, author=ana, replies="mentions")
    return session


def say(session: Session, author: User, text: str) -> str:
    return send_message(session=session, author=author, text=text).id


def is_marked(user: User) -> bool:
    (row,) = [row for group in listing(user, UTC).groups for row in group.rows]
    return row.mentioned


def mentions(message_id: str) -> object:
    return ChatMessage.objects.get(pk=message_id).mentions


def read(session: Session, user: User) -> None:
    now = Session.objects.get(pk=session.pk)
    user_state.mark_read(session=now, user=user, revision=now.revision)


def test_mention_marks_the_session_until_it_is_read(session: Session, ana: User, bo: User) -> None:
    """LIVE-07: only the mentioned user gets the mark. A later message of others does not set it again."""
    message_id = say(session, ana, "@Bo, have a look")
    assert mentions(message_id) == [[bo.pk, 0, 3]]
    assert (is_marked(bo), is_marked(ana)) == (True, False)
    read(session, bo)
    assert not is_marked(bo)
    say(session, ana, "Thank you")
    assert not is_marked(bo)
    user_state.mark_all_read(session_id=session.pk, revisions={bo.pk: 10**6})
    say(session, ana, "One more, @bo")
    assert is_marked(bo)


def test_mark_of_a_waiting_message_stays_when_the_agent_writes_a_summary(session: Session, ana: User, bo: User) -> None:
    """LIVE-07, LIVE-05: a summary does not make the session unread, and the mark of an unread mention stays."""
    read(session, bo)
    message_id = say(session, ana, "@Bo, look")
    ChatMessage.objects.filter(pk=message_id).update(status="queued", sequence=None)
    revision = Session.objects.get(pk=session.pk).revision + 1
    user_state.keep_read(session.pk, revision)
    assert is_marked(bo)
    read(session, bo)
    user_state.keep_read(session.pk, revision)
    assert UserSessionState.objects.get(session=session, user=bo).read_revision == revision


def test_only_people_of_the_session_are_mentioned(session: Session, ana: User, bo: User, workspace: object) -> None:
    """LIVE-07: users without access, former users and the author are not mentioned."""
    person("Cem", ana.memberships.get().workspace)
    assert mentions(say(session, ana, "@Cem @Ana hello")) is None
    sharing.unshare(session=session, author=ana, user=bo)
    assert mentions(say(session, ana, "@Bo hello")) is None


def test_edit_mentions_those_who_were_not_mentioned_before(session: Session, ana: User, bo: User) -> None:
    """LIVE-07: an edit mentions only new users, and the row has the places in the new text."""
    message_id = say(session, ana, "Who knows?")
    read(session, bo)
    edit(session=session, author=ana, message_id=message_id, text="Who knows? @Bo?")
    assert (mentions(message_id), is_marked(bo)) == ([[bo.pk, 11, 3]], True)
    read(session, bo)
    edit(session=session, author=ana, message_id=message_id, text="@Bo knows.")
    assert (mentions(message_id), is_marked(bo)) == ([[bo.pk, 0, 3]], False)
    edit(session=session, author=ana, message_id=message_id, text="Never mind.")
    assert mentions(message_id) is None


def test_reading_tells_open_pages_that_the_mark_is_gone(
    session: Session, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-07: reading clears the mark on open pages, even if the mention came with an edit and nothing else is
    unread."""
    notified: list[object] = []
    monkeypatch.setattr(user_state, "notify_session_lists", lambda **values: notified.append(list(values["users"])))
    UserSessionState.objects.update_or_create(
        session=session, user=bo, defaults={"mentioned_revision": session.revision + 1}
    )
    ChatMessage.objects.filter(session=session).delete()
    Session.objects.filter(pk=session.pk).update(revision=session.revision + 5)
    user_state.mark_all_read(session_id=session.pk, revisions={bo.pk: session.revision + 2, ana.pk: 1})
    assert notified == [[bo.pk]]


def test_clients_get_the_places_of_mentions(session: Session, ana: User, bo: User) -> None:
    """LIVE-07: clients get the places of mentions in code points, also over the channel layer."""
    row = ChatMessage.objects.get(pk=say(session, ana, "😀 @Bo"))
    snapshot = MessageSnapshot.from_row(row)
    assert snapshot.mentions == (MentionSnapshot(bo.pk, 2, 3),)
    assert MessageSnapshot.from_json(snapshot.to_json()) == snapshot


def test_mentions_of_agents_are_kept_with_the_message(session: Session, ana: User) -> None:
    """RUN-17: agents are mentioned by name, title or @agent.

    The places are stored for pages and clients and updated by edits.
    """
    row = members_agents.make(author=ana, workspace_id=session.workspace_id, given=AgentSettings("Code Reviewer"))
    add_agent(session=session, author=ana, agent=row.name)
    message_id = say(session, ana, f"@Code Reviewer and @{row.name}, not @no one, `@agent` or a@agent: @AGENT")

    def places() -> list[tuple[str, str]]:
        found = ChatMessage.objects.get(pk=message_id)
        snapshot = MessageSnapshot.from_row(found)
        assert MessageSnapshot.from_json(snapshot.to_json()) == snapshot
        return [(each.agent, found.text[each.start :][: each.length]) for each in snapshot.agent_mentions]

    own = session.agent
    SessionRun.objects.filter(pk=session.pk).update(
        state="idle", turn_id="", turn_started_at=None
    )  # no agent answers it here
    assert places() == [(row.name, "@Code Reviewer"), (row.name, f"@{row.name}"), (own, "@AGENT")]
    edit(session=session, author=ana, message_id=message_id, text="Just @agent")
    assert places() == [(own, "@agent")]
    edit(session=session, author=ana, message_id=message_id, text="No one")
    assert (places(), ChatMessage.objects.get(pk=message_id).arguments) == ([], None)
