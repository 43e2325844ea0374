"""Sharing sessions: who may give access to whom, and how access ends."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import DjangoCaptureOnCommitCallbacks

from chat.access import role_in
from chat.errors import NoSuchWorkspace, ServiceError
from chat.models import Membership, Session, SessionRole, Share, User
from chat.services.people import following, sharing
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def test_session_is_shared_with_members_only(session: Session, ana: User, bo: User) -> None:
    """A session is private until it is shared with members of its workspace, whose role may change."""
    assert role_in(bo, session) is None
    for role in (SessionRole.VIEWER, SessionRole.EDITOR):
        sharing.share(session=session, author=ana, user=bo, role=role)
        assert role_in(bo, session) == role
    with pytest.raises(ServiceError, match="members"):
        sharing.share(session=session, author=ana, user=person("Cy"), role=SessionRole.VIEWER)
    with pytest.raises(ServiceError, match="owner"):
        sharing.share(session=session, author=ana, user=ana, role=SessionRole.VIEWER)
    with pytest.raises(ServiceError, match="viewer or editor"):
        sharing.share(session=session, author=ana, user=bo, role="owner")


def test_invitation_lets_a_stranger_into_workspace_and_session(session: Session, ana: User) -> None:
    """An invitation gives its role, never lowers one, and leaves the owner alone."""
    guest = person("Cy")
    editors = sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]
    viewers = sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)[1]
    for token in (editors, viewers):
        sharing.accept(token=token, user=guest)
        assert role_in(guest, session) == SessionRole.EDITOR
    assert Membership.objects.filter(workspace=session.workspace, user=guest).count() == 1
    sharing.accept(token=viewers, user=ana)
    assert role_in(ana, session) == SessionRole.OWNER


def test_removed_person_cannot_come_back_by_their_link(session: Session, ana: User) -> None:
    """LIVE-06: a removal revokes the links of the session, because the removed user may know one."""
    guest = person("Cy")
    token = sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]
    sharing.accept(token=token, user=guest)
    sharing.unshare(session=session, author=ana, user=guest)
    with pytest.raises(ServiceError, match="has expired"):
        sharing.accept(token=token, user=guest)
    assert role_in(guest, session) is None


def test_former_member_cannot_share(session: Session, ana: User, bo: User) -> None:
    """LIVE-06: a former member cannot share their session or see the users of the workspace, but can end the access of
    others."""
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    new = person("Di", session.workspace)
    assert list(sharing.candidates(session)) == [new]
    ana.memberships.filter(workspace=session.workspace).delete()
    assert list(sharing.candidates(session)) == []
    for let_in in (
        lambda: sharing.invite(session=session, author=ana, role=SessionRole.VIEWER),
        lambda: sharing.share(session=session, author=ana, user=new, role=SessionRole.VIEWER),
    ):
        with pytest.raises(NoSuchWorkspace):
            let_in()
    sharing.unshare(session=session, author=ana, user=bo)
    assert role_in(bo, session) is None


def test_link_ends_with_its_maker_s_rights(session: Session, ana: User) -> None:
    """LIVE-06: a link does not work while its maker is not a member of the workspace, or has an inactive account."""
    token = sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]
    ana.memberships.filter(workspace=session.workspace).delete()
    with pytest.raises(ServiceError, match="has expired"):
        sharing.accept(token=token, user=person("Cy"))
    assert sharing.invitations(session) == []
    Membership.objects.create(workspace=session.workspace, user=ana)
    assert sharing.invitation_for(token).session == session
    User.objects.filter(pk=ana.pk).update(is_active=False)
    with pytest.raises(ServiceError, match="has expired"):
        sharing.invitation_for(token)


def with_below(session: Session, people: int, below: int) -> list[Session]:
    """Share a session with `people` users and add `below` subsessions to it."""
    for number in range(people):
        user = person(f"p{session.pk}{number}", session.workspace)
        Share.objects.create(session=session, user=user, role=SessionRole.VIEWER)
    columns = {"owner": session.owner, "workspace": session.workspace, "caller_session": session}
    return [Session.objects.create(**columns) for _ in range(below)]


def roles_in(session: Session) -> dict[int, str]:
    return dict(Share.objects.filter(session=session).values_list("user", "role"))


def test_sessions_of_agents_follow_in_few_queries(
    session: Session, ana: User, bo: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """RUN-18: the number of queries does not depend on the users and sessions.

    Unchanged roles cause no notification.
    """
    small, large = with_below(session, 1, 1), create_session(owner=ana)
    children = with_below(large, 6, 5)
    following.copy_people_below(session.pk)
    with CaptureQueriesContext(connection) as few:
        sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    following.copy_people_below(large.pk)
    with CaptureQueriesContext(connection) as many:
        sharing.share(session=large, author=ana, user=bo, role=SessionRole.EDITOR)
    assert len(many) == len(few)
    for caller, below in ((session, small), (large, children)):
        assert all(roles_in(child) == roles_in(caller) for child in below)
    with django_capture_on_commit_callbacks() as notices:
        following.copy_people_below(large.pk)
    assert notices == []
    Share.objects.filter(session=children[0], user=bo).update(role=SessionRole.VIEWER)
    with django_capture_on_commit_callbacks() as notices:
        following.copy_people_below(large.pk)
    assert roles_in(children[0])[bo.pk] == SessionRole.EDITOR
    assert len(notices) == 2  # to the viewers of that session, and to lists
    sharing.unshare(session=large, author=ana, user=bo)
    assert all(roles_in(child) == roles_in(large) for child in children)
