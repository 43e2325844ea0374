"""RUN-17: the number of people who can write decides which messages the agent answers, until a user chooses."""

from __future__ import annotations

import pytest

from chat.models import ChatMessage, Session, SessionRole, Share, User
from chat.services.messages.sending import send_message
from chat.services.people import sharing
from chat.services.sessions.actions import leave
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import begin_session, configure
from tests.support.filled import ANSWER, DONE, HI, START, fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return begin_session(owner=ana, replies="auto")


def replies(session: Session) -> tuple[str, bool]:
    found = Session.objects.get(pk=session.pk)
    return found.replies, found.replies_auto


def test_people_who_can_write_decide(session: Session, ana: User, bo: User) -> None:
    """RUN-17: viewers do not count. When the last other editor leaves, the agent answers all messages again."""
    assert (replies(session), session.revision) == (("all", True), 0)
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.VIEWER)
    assert replies(session) == ("all", True)
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    assert replies(session) == ("mentions", True)
    leave(user=bo, session_id=session.pk)
    assert replies(session) == ("all", True)
    sharing.accept(token=sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1], user=bo)
    assert replies(session) == ("mentions", True)
    sharing.unshare(session=session, author=ana, user=bo)
    assert replies(session) == ("all", True)


def test_choice_of_a_user_stays(session: Session, ana: User, bo: User) -> None:
    """RUN-17: a user's choice stays when users come and go. The choice "auto" returns to the number of users."""
    configure(session=session, author=ana, replies="all")
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    assert replies(session) == ("all", False)
    configure(session=session, author=ana, replies="auto")
    assert replies(session) == ("mentions", True)


def test_access_that_ends_otherwise_counts_with_the_next_message(session: Session, ana: User, bo: User) -> None:
    """RUN-17: a deactivated user can no longer write, so the next message is for the agent."""
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    User.objects.filter(pk=bo.pk).update(is_active=False)
    send_message(session=session, author=ana, text="Hello")
    assert replies(session) == ("all", True)
    assert ChatMessage.objects.get(role="user").for_agent


def test_sessions_of_before_and_forks(ana: User, bo: User) -> None:
    """RUN-17: a session from an earlier version has "all" as a choice.
    The agent of a fork answers all messages, because the fork has only one user.
    """
    made = begin_session(owner=ana)
    Share.objects.create(session=made, user=bo, role=SessionRole.EDITOR)
    assert replies(made) == ("all", False)
    configure(session=made, author=ana, replies="auto")
    rows = fill(made, START, HI, ANSWER, DONE)
    assert replies(made) == ("mentions", True)
    made.refresh_from_db()
    assert replies(fork(session=made, author=bo, message_id=rows[2].pk)) == ("all", True)
