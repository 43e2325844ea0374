"""Workspaces: which ones a user has, the present one, its lists, and unread sessions elsewhere."""

from __future__ import annotations

from datetime import UTC

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from chat.errors import Forbidden, Invalid, NoSuchWorkspace
from chat.models import ChatMessage, Membership, RunState, SecurityEvent, Session, SessionRun, User, Workspace
from chat.queries import session_list
from chat.queries.needing import Needing, needing_elsewhere
from chat.services.messages.sending import send_message
from chat.services.people.workspaces import UserWorkspaces, current_workspace, enter, listed_workspaces, rename
from chat.services.sessions import forking, user_state
from chat.services.sessions.actions import SessionAction, apply_action
from chat.services.sessions.lifecycle import begin_session, create_session
from tests.support.rows import say
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def other(ana: User, bo: User) -> Workspace:
    """A second workspace of Ana and Bo."""
    return joined("第二个团队", ana, bo)


def joined(name: str, *people: User) -> Workspace:
    made = Workspace.objects.create(name=name)
    Membership.objects.bulk_create([Membership(workspace=made, user=user) for user in people])
    return made


def listed(user: User, workspaces: UserWorkspaces, *, archived: bool = False) -> list[str]:
    found = session_list.listing(user, UTC, archived=archived, within=workspaces.within)
    return sorted(row.title for group in found.groups for row in group.rows)


def test_one_workspace_is_no_choice(ana: User, workspace: Workspace) -> None:
    """With one workspace, there is nothing to choose and all sessions are listed."""
    workspaces = listed_workspaces(ana)
    assert (workspaces.several, workspaces.within, workspaces.here and workspaces.here.name) == (False, None, "Team")


def test_user_without_a_workspace_gets_one_with_their_first_session() -> None:
    loner = User.objects.create_user("loner")
    assert listed_workspaces(loner) == UserWorkspaces((), None)
    session = begin_session(owner=loner)
    assert [workspace.id for workspace in listed_workspaces(loner).mine] == [session.workspace_id]


def test_new_sessions_go_where_one_is_and_are_listed_there_alone(
    ana: User, workspace: Workspace, other: Workspace
) -> None:
    """New sessions go into the present workspace.

    Its lists, including the archive, have only its own sessions.
    """
    first = create_session(owner=ana, title="First")
    enter(user=ana, workspace_id=other.pk)
    second = create_session(owner=ana, title="Second")
    gone = create_session(owner=ana, title="Gone")
    apply_action(user=ana, action=SessionAction.ARCHIVE, session_ids=[gone.pk])
    assert [each.workspace for each in (first, second)] == [workspace, other]
    here, there = listed_workspaces(ana, other.pk), listed_workspaces(ana, workspace.pk)
    assert (listed(ana, here), listed(ana, there)) == (["Second"], ["First"])
    assert (listed(ana, here, archived=True), listed(ana, there, archived=True)) == (["Gone"], [])
    assert [row.title for row in session_list.recent(ana, 4, here.within)] == ["Second"]


def test_mentions_in_other_workspaces_are_known(
    ana: User, bo: User, workspace: Workspace, other: Workspace, client: Client
) -> None:
    """LIVE-07: the list has, hidden, the sessions outside of it that mention the user, so that pages notify them."""
    here, there = (create_session(owner=bo, title=each.name, workspace=each) for each in (workspace, other))
    for session in (here, there):
        let_in(session, ana, "viewer")
        send_message(session=session, author=bo, text="@Ana, look")
    shown = listed_workspaces(ana, workspace.pk)
    assert [(each.id, each.waiting) for each in needing_elsewhere(ana, shown.within)] == [(there.pk, False)]
    assert {each.id for each in needing_elsewhere(ana)} == {here.pk, there.pk}
    client.force_login(ana)
    for archived, hidden in (("", 1), ("yes", 2)):
        address = f"{reverse('sessions')}?workspace={workspace.pk}&archived={archived}"
        html = client.get(address).content.decode().split('id="sessions-elsewhere"')[1]
        assert html.count('data-mentioned="yes"') == hidden


def ask(session: Session, run: str) -> None:
    """Let a turn wait for an answer, or ask while it runs."""
    SessionRun.objects.filter(session=session).update(state=run, turn_id="t_1")
    question = {"type": "tool_group", "status": "waiting", "tool_name": "confirmation", "question": "confirmation"}
    values = {"turn_id": "t_1", "tool_call_id": "c", "asked": {}}
    ChatMessage.objects.create(session=session, sequence=1, revision=1, **question, **values)


@pytest.mark.both_databases
def test_sessions_that_need_the_user_elsewhere_are_those_that_the_list_would_show(
    ana: User, bo: User, workspace: Workspace, other: Workspace
) -> None:
    """LIVE-07: they are the mentioning and waiting rows of the list of all workspaces, without those of this one."""
    names = ("mentioned", "read", "waiting", "asking", "running", "viewed", "plain")
    made = {each: create_session(owner=bo, title=each, workspace=other) for each in names}
    for name, session in made.items():
        let_in(session, ana, "viewer" if name == "viewed" else "editor")
    for name in ("mentioned", "read"):
        send_message(session=made[name], author=bo, text="@Ana, look")
    made["read"].refresh_from_db()
    user_state.mark_read(session=made["read"], user=ana, revision=made["read"].revision)
    ask(made["waiting"], RunState.WAITING)
    ask(made["viewed"], RunState.WAITING)
    ask(made["asking"], RunState.RUNNING)
    SessionRun.objects.filter(session=made["running"]).update(state=RunState.RUNNING, turn_id="t_1")
    ask(create_session(owner=ana, title="here", workspace=workspace), RunState.WAITING)

    rows = [row for group in session_list.listing(ana, UTC).groups for row in group.rows]
    needing = [Needing(row.id, row.title, row.mention, row.waiting) for row in rows if row.mentioned or row.waiting]
    assert {row.title for row in needing} == {"mentioned", "waiting", "asking", "here"}
    assert needing_elsewhere(ana) == needing
    elsewhere = [row for row in needing if row.title != "here"]
    assert needing_elsewhere(ana, listed_workspaces(ana, workspace.pk).within) == elsewhere


def test_list_reads_sessions_elsewhere_only_for_users_with_several_workspaces(
    ana: User, workspace: Workspace, client: Client
) -> None:
    """A refreshed list costs a statement more only in the archive and for users with several workspaces."""
    client.force_login(ana)

    def statements(archived: str = "") -> list[str]:
        address = f"{reverse('sessions')}?workspace={workspace.pk}&archived={archived}"
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        return [each["sql"] for each in queries]

    alone, archive = statements(), statements("yes")
    joined("第二个团队", ana)
    several = statements()
    assert (len(alone), len(archive), len(several)) == (4, 5, 6)  # and the unread sessions of other workspaces
    assert [sum(" UNION " in each for each in found) for found in (alone, archive, several)] == [0, 1, 1]


def test_where_one_is_lasts_and_falls_back_to_the_oldest(ana: User, workspace: Workspace, other: Workspace) -> None:
    enter(user=ana, workspace_id=other.pk)
    again = User.objects.get(pk=ana.pk)
    assert (listed_workspaces(again).here, current_workspace(again)) == (listed_workspaces(again, other.pk).here, other)
    assert again.workspace == other
    ana.memberships.filter(workspace=other).delete()
    assert current_workspace(again) == workspace
    assert [workspace.id for workspace in listed_workspaces(again, other.pk).mine] == [workspace.pk]
    other.delete()
    again.refresh_from_db()
    assert again.workspace is None


def test_users_cannot_open_workspaces_of_others(ana: User) -> None:
    """LIVE-06: users who open a workspace of others cannot learn whether it exists."""
    theirs = person("Cy").memberships.get().workspace_id
    for workspace_id in (theirs, 10**9, 10**30, -1, 0, None):
        with pytest.raises(NoSuchWorkspace):
            enter(user=ana, workspace_id=workspace_id)
    assert User.objects.get(pk=ana.pk).workspace is None


def test_unread_sessions_of_other_workspaces_are_marked(
    ana: User, bo: User, workspace: Workspace, other: Workspace
) -> None:
    """The mark shows that another workspace has unread sessions, until they are read or archived."""
    session = create_session(owner=ana, workspace=other, title="Plan")
    let_in(session, bo, "viewer")
    joined("Third", ana, bo)
    assert news(bo) == []
    say(session, ana, "Hello")
    assert (news(bo), news(ana), news(bo, other.pk)) == ([other.pk], [], [])
    session.refresh_from_db()
    user_state.mark_read(session=session, user=bo, revision=session.revision)
    assert news(bo) == []
    say(session, None, "Hi")
    assert (news(ana), news(bo)) == ([other.pk], [other.pk])
    apply_action(user=ana, action=SessionAction.ARCHIVE, session_ids=[session.pk])
    assert news(bo) == []


def news(user: User, shown: int | None = None) -> list[int]:
    workspaces = listed_workspaces(user, shown)
    found = [workspace.id for workspace in workspaces.mine if workspace.unread]
    assert workspaces.unread == bool(found)
    return found


def test_own_session_of_a_workspace_that_one_has_left_is_still_listed(ana: User, bo: User, other: Workspace) -> None:
    """LIVE-06: the user's own session is listed in their oldest workspace.

    Sessions that others shared there are gone.
    """
    mine = create_session(owner=ana, workspace=other, title="Mine")
    theirs = create_session(owner=bo, workspace=other, title="Theirs")
    let_in(theirs, ana, "editor")
    third, fourth = joined("Third", ana), joined("Fourth", ana)
    ana.memberships.filter(workspace=other).delete()
    oldest = listed_workspaces(ana).mine[0].id
    assert (listed(ana, listed_workspaces(ana)), listed(ana, listed_workspaces(ana, third.pk))) == (["Mine"], [])
    say(theirs, bo, "Hello")
    assert news(ana, third.pk) == []
    say(mine, None, "Done")
    assert (news(ana, third.pk), news(ana, fourth.pk), news(ana, oldest)) == ([oldest], [oldest], [])


def test_forks_stay_where_their_original_is(ana: User, workspace: Workspace, other: Workspace) -> None:
    """A fork stays in the workspace of its original (RUN-13)."""
    row = say(create_session(owner=ana, workspace=workspace), ana, "Hello")
    enter(user=ana, workspace_id=other.pk)
    assert forking.fork(session=row.session, author=ana, message_id=row.pk).workspace == workspace


def test_any_number_of_workspaces_needs_two_queries_and_one_needs_one(
    ana: User, bo: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert len(listed_workspaces(ana).mine) == 1
    for count in (1, 12):
        for number in range(count):
            made = joined(f"{number}", ana, bo)
            say(create_session(owner=bo, workspace=made), bo, "Hello")
        with django_assert_num_queries(2):
            assert len(listed_workspaces(ana).mine) > count
    assert Session.objects.count() == 13


def test_owners_rename_a_workspace(ana: User, bo: User, other: Workspace) -> None:
    """UI-20: owners rename a workspace, and invisible characters are removed from its name.

    Members may not rename it.
    """
    Membership.objects.filter(workspace=other, user=ana).update(role=Membership.Role.OWNER)
    renamed = rename(author=ana, workspace_id=other.pk, name="  Ops\x00 \ud800 团队\n")
    other.refresh_from_db()
    assert renamed.name == other.name == "Ops 团队"
    assert SecurityEvent.objects.get(kind="workspace_renamed").object_id == str(other.pk)
    with pytest.raises(Forbidden):
        rename(author=bo, workspace_id=other.pk, name="Mine")


@pytest.mark.parametrize("name", ["", " \u200b\n", "x" * 121])
def test_a_workspace_needs_a_name_that_fits(ana: User, other: Workspace, name: str) -> None:
    Membership.objects.filter(workspace=other, user=ana).update(role=Membership.Role.OWNER)
    with pytest.raises(Invalid):
        rename(author=ana, workspace_id=other.pk, name=name)
    other.refresh_from_db()
    assert other.name == "第二个团队"
