"""Workspaces over the API: listed by /me, named by sessions, and chosen for lists and new sessions."""

from __future__ import annotations

import pytest

from chat.models import Membership, Session, User, Workspace
from chat.services.people.workspaces import enter
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import Asker, code
from tests.support.rows import say
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
SESSIONS = "/api/sessions"


@pytest.fixture
def other(ana: User) -> Workspace:
    made = Workspace.objects.create(name="Ops")
    Membership.objects.create(workspace=made, user=ana)
    return made


def test_who_asks_learns_where_they_are(asker: Asker, ana: User, workspace: Workspace, other: Workspace) -> None:
    enter(user=ana, workspace_id=other.pk)
    me = asker.get("/api/me").json()
    named = [
        {"id": workspace.pk, "name": "Team", "role": "member"},
        {"id": other.pk, "name": "Ops", "role": "member"},
    ]
    assert (me["workspaces"], me["workspace"]) == (named, other.pk)


def test_session_begins_in_the_named_or_the_current_workspace(
    asker: Asker, ana: User, workspace: Workspace, other: Workspace
) -> None:
    """A session begins in the named workspace, by default in the current one.

    A repeated request returns its session, even if the user has left that workspace.
    """
    made = [asker.post(SESSIONS, body).json() for body in ({}, {"workspace": other.pk, "key": "k"})]
    assert [each["workspace"] for each in made] == [workspace.pk, other.pk]
    ana.memberships.filter(workspace=other).delete()
    again = asker.post(SESSIONS, {"workspace": other.pk, "key": "k"})
    assert (again.status_code, again.json()["id"], again.json()["workspace"]) == (200, made[1]["id"], other.pk)
    assert code(asker.post(SESSIONS, {"workspace": workspace.pk, "key": "k"})) == (409, "key_taken")


def test_members_see_each_other_and_switch(
    asker: Asker, ana: User, bo: User, workspace: Workspace, other: Workspace
) -> None:
    """LIVE-06: members are listed with their roles, and other workspaces are not found."""
    Membership.objects.filter(user=bo).update(role="admin")
    members = asker.get(f"/api/workspaces/{workspace.pk}/members").json()["members"]
    assert [(each["username"], each["name"], each["role"]) for each in members] == [
        ("ana", "Ana", "member"),
        ("bo", "Bo", "admin"),
    ]
    assert asker.post(f"/api/workspaces/{other.pk}/enter").status_code == 204
    assert asker.get("/api/me").json()["workspace"] == other.pk
    theirs = person("Cy").memberships.get().workspace_id
    for answer in (asker.get(f"/api/workspaces/{theirs}/members"), asker.post(f"/api/workspaces/{theirs}/enter")):
        assert code(answer) == (404, "no_such_workspace")


def test_lists_are_of_one_or_of_all(asker: Asker, ana: User, workspace: Workspace, other: Workspace) -> None:
    here, there = (
        say(create_session(owner=ana, workspace=each, title="Zanzibar"), ana, "Hi").session
        for each in (workspace, other)
    )
    lists = [asker.get(SESSIONS + query).json()["sessions"] for query in (f"?workspace={other.pk}", "")]
    assert [[(row["id"], row["workspace"]) for row in rows] for rows in lists] == [
        [(there.pk, other.pk)],
        [(there.pk, other.pk), (here.pk, workspace.pk)],
    ]
    found = asker.get("/api/search?q=zanzibar").json()["sessions"]
    assert sorted((hit["workspace"], hit["workspace_name"]) for hit in found) == [
        (workspace.pk, "Team"),
        (other.pk, "Ops"),
    ]


def test_those_of_others_are_not_there(asker: Asker, ana: User) -> None:
    """LIVE-06: a workspace of others gets the same answer as an unknown one."""
    theirs = person("Cy").memberships.get().workspace_id
    for workspace_id in (theirs, 10**6, 10**30, -1, 0):
        answers = [
            asker.get(f"{SESSIONS}?workspace={workspace_id}"),
            asker.post(SESSIONS, {"workspace": workspace_id}),
        ]
        assert [(each.status_code, each.json()["code"]) for each in answers] == [(404, "no_such_workspace")] * 2
    assert not Session.objects.exists()


@pytest.mark.parametrize("who", ["0", "-1", "9" * 16, "9" * 20, "9" * 400])
@pytest.mark.parametrize(("place", "refused"), [("members", (404, "no_such_member")), ("guests", (409, "not_a_guest"))])
def test_ids_that_no_one_has_are_refused(
    asker: Asker, ana: User, workspace: Workspace, place: str, refused: tuple[int, str], who: str
) -> None:
    """LIVE-06: unknown ids are refused, also one that the database cannot store."""
    Membership.objects.filter(user=ana).update(role="owner")
    address = f"/api/workspaces/{workspace.pk}/{place}/{who}"
    answers = [asker.delete(address), asker.patch(address, {"role": "member"})]
    assert {code(each) for each in answers} == {refused}
