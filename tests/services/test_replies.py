"""RUN-17: the number of people who can write decides which messages the agent answers, until a user chooses."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from chat.models import ChatMessage, Membership, Session, SessionRole, Share, User, Workspace
from chat.services.deletion import users
from chat.services.messages.sending import send_message
from chat.services.people import members, sharing, workspace_invitations
from chat.services.sessions.actions import leave
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import begin_session, configure
from chat.services.sessions.replies import follow_people_in_workspace_later
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.testing_node import person

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


def test_people_of_the_workspace_who_come_or_go_decide(
    ana: User, bo: User, workspace: Workspace, django_capture_on_commit_callbacks: Any
) -> None:
    """RUN-17: an open session and a shared one follow at once when the only other member leaves and returns."""
    ana.memberships.update(role=Membership.Role.OWNER)
    opened, shared, unshared = (begin_session(owner=ana, replies="auto") for _ in range(3))
    sharing.open_to_workspace(session=opened, author=ana, role=SessionRole.EDITOR)
    sharing.share(session=shared, author=ana, user=bo, role=SessionRole.EDITOR)

    def all_replies() -> list[str]:
        return [replies(each)[0] for each in (opened, shared, unshared)]

    assert all_replies() == ["mentions", "mentions", "all"]
    with django_capture_on_commit_callbacks(execute=True):
        removed = members.remove(author=ana, workspace_id=workspace.pk, user_id=bo.pk)
    assert all_replies() == ["all", "all", "all"]
    with django_capture_on_commit_callbacks(execute=True):
        members.bring_back(author=ana, workspace_id=workspace.pk, undo=removed.undo)
    assert all_replies() == ["mentions", "mentions", "all"]
    with django_capture_on_commit_callbacks(execute=True):
        users.close_account(bo, author=None)
    assert all_replies() == ["all", "all", "all"]


def test_people_who_join_the_workspace_decide(
    ana: User, workspace: Workspace, django_capture_on_commit_callbacks: Any
) -> None:
    """RUN-17: a guest who becomes a member, and a user who joins by a link, can write in an open session."""
    ana.memberships.update(role=Membership.Role.OWNER)
    opened, other = begin_session(owner=ana, replies="auto"), begin_session(owner=ana)
    sharing.open_to_workspace(session=opened, author=ana, role=SessionRole.EDITOR)
    zoe, gus = (User.objects.create_user(name, can_own_workspace=False) for name in ("zoe", "gus"))
    sharing.accept(token=sharing.invite(session=other, author=ana, role=SessionRole.EDITOR)[1], user=gus)
    assert replies(opened)[0] == "all"
    link = workspace_invitations.invite(author=ana, workspace_id=workspace.pk, uses=1)[1]
    with django_capture_on_commit_callbacks(execute=True):
        workspace_invitations.accept(token=link, user=zoe)
    assert replies(opened)[0] == "mentions"
    with django_capture_on_commit_callbacks(execute=True):
        members.remove(author=ana, workspace_id=workspace.pk, user_id=zoe.pk)
    assert replies(opened)[0] == "all"
    with django_capture_on_commit_callbacks(execute=True):
        members.change_role(author=ana, workspace_id=workspace.pk, user_id=gus.pk, role=Membership.Role.MEMBER)
    assert replies(opened)[0] == "mentions"


def test_owner_whose_account_is_closed_does_not_count(
    session: Session, ana: User, bo: User, django_capture_on_commit_callbacks: Any
) -> None:
    """RUN-17: the agent answers the only editor of the session, also if its owner has left the workspace before."""
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    ana.memberships.all().delete()
    assert replies(session) == ("mentions", True)
    with django_capture_on_commit_callbacks(execute=True):
        users.close_account(ana, author=None)
    assert replies(session) == ("all", True)


def test_many_open_sessions_are_checked_by_few_statements(ana: User, bo: User, workspace: Workspace) -> None:
    """RUN-17: a change of a user's membership needs as many statements for thirty open sessions as for one."""
    ana.memberships.update(role=Membership.Role.OWNER)
    person("Cy", workspace)

    def statements() -> int:
        with (
            CaptureQueriesContext(connection) as queries,
            TestCase.captureOnCommitCallbacks(execute=True),
        ):
            follow_people_in_workspace_later(workspace.pk, bo.pk)
        return len(queries)

    opened = [begin_session(owner=ana, replies="auto") for _ in range(30)]
    sharing.open_to_workspace(session=opened[0], author=ana, role=SessionRole.EDITOR)
    one = statements()
    for each in opened[1:]:
        sharing.open_to_workspace(session=each, author=ana, role=SessionRole.EDITOR)
    assert (one, statements()) == (4, 4)
    assert {replies(each) for each in opened} == {("mentions", True)}


def test_new_owner_of_a_closed_account_s_session_is_alone(session: Session, ana: User, bo: User) -> None:
    """RUN-17: the agent answers all messages of the one who gets the session of an erased user."""
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    assert replies(session) == ("mentions", True)
    users.erase_user(ana.pk)
    assert replies(session) == ("all", True)


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
