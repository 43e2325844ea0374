"""Invitation links to a workspace, over the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from chat.models import Membership, User, Workspace, WorkspaceInvitation
from chat.services.people import joining
from tests.api.asking import Asker, code, token_of
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def where(ana: User, workspace: Workspace) -> str:
    """The address of the links of Ana's workspace, in which she is an admin."""
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Role.ADMIN)
    return f"/api/workspaces/{workspace.pk}/invitations"


def test_a_program_makes_lists_and_ends_links(asker: Asker, where: str, ana: User, workspace: Workspace) -> None:
    """UI-20: the token is shown once, and the link makes users members until it ends."""
    made = [asker.post(where, body) for body in ({}, {"max_uses": 2})]
    assert [each.status_code for each in made] == [201, 201]
    single, double = (each.json() for each in made)
    joining.accept(token=double["token"], user=person("Cy"))
    listed = asker.get(where).json()["invitations"]
    assert single == {
        "id": listed[1]["id"],
        "url": f"http://testserver/join/{single['token']}",
        "token": single["token"],
        "role": "member",
        "max_uses": 1,
        "expires_at": listed[1]["expires_at"],
    }
    shown = [(each["role"], each["created_by"], each["uses"], each["max_uses"]) for each in listed]
    assert shown == [("member", "Ana", 1, 2), ("member", "Ana", 0, 1)]
    assert double["token"] not in str(listed)
    assert asker.delete(f"{where}/{listed[0]['id']}").status_code == 204
    assert [each["id"] for each in asker.get(where).json()["invitations"]] == [listed[1]["id"]]
    assert asker.delete(f"{where}/{listed[0]['id']}").status_code == 204
    assert asker.delete(where).status_code == 204
    assert not WorkspaceInvitation.objects.exists()
    assert Client().get(f"/join/{single['token']}").status_code == 410


def test_links_have_the_shape_of_those_to_sessions(asker: Asker, where: str, ana: User, workspace: Workspace) -> None:
    """UI-20: these links have the same fields as links to sessions."""
    session = asker.post("/api/sessions", {"workspace": workspace.pk}).json()["id"]
    to_session = f"/api/sessions/{session}/invitations"
    made = [asker.post(to_session, {"role": "viewer"}), asker.post(where, {})]
    listed = [asker.get(address).json()["invitations"][0] for address in (to_session, where)]
    assert made[0].json().keys() == made[1].json().keys()
    assert listed[0].keys() == listed[1].keys()


@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST, None])
def test_only_owners_and_admins_manage_links(where: str, bo: User, workspace: Workspace, role: str | None) -> None:
    """UI-20: members are refused, and for guests and other users the workspace is not found."""
    rows = Membership.objects.filter(user=bo, workspace=workspace)
    rows.update(role=role) if role else rows.delete()
    his = Asker(token_of(bo))
    requests: list[Callable[[], Any]] = [
        lambda: his.get(where),
        lambda: his.post(where, {}),
        lambda: his.delete(where),
        lambda: his.delete(f"{where}/1"),
    ]
    refusal = (403, "forbidden") if role == Role.MEMBER else (404, "no_such_workspace")
    assert [code(request()) for request in requests] == [refusal] * 4


def test_links_of_other_workspaces_are_left_alone(asker: Asker, where: str, ana: User) -> None:
    """UI-20: links of other workspaces cannot be revoked, one by one or all together."""
    other = Workspace.objects.create(name="Ops")
    Membership.objects.create(workspace=other, user=ana, role=Role.OWNER)
    asker.post(f"/api/workspaces/{other.pk}/invitations", {})
    row = WorkspaceInvitation.objects.get()
    assert asker.delete(f"{where}/{row.pk}").status_code == 204
    assert asker.delete(where).status_code == 204
    assert WorkspaceInvitation.objects.get() == row


@pytest.mark.parametrize(
    "body", [{"max_uses": 0}, {"max_uses": 101}, {"max_uses": 10**30}, {"max_uses": "2"}, {"role": "owner"}, []]
)
def test_bad_values_are_clear_errors(asker: Asker, where: str, body: Any) -> None:
    """MSG-12: bad values get clear errors, never a 500, and nothing is stored."""
    assert code(asker.post(where, body)) == (422, "malformed")
    assert not WorkspaceInvitation.objects.exists()


@pytest.mark.parametrize("odd", ["0", "-1", "9" * 30, "x", "%00"])
def test_odd_ids_end_nothing(asker: Asker, where: str, odd: str) -> None:
    """MSG-12: malformed ids revoke nothing."""
    asker.post(where, {})
    assert asker.delete(f"{where}/{odd}").status_code in (204, 404, 422)
    assert asker.delete(where.replace(where.split("/")[3], odd)).status_code in (404, 422)
    assert WorkspaceInvitation.objects.exists()


def test_links_count_for_the_limit_of_invitations(
    asker: Asker, where: str, workspace: Workspace, settings: Settings
) -> None:
    """UI-20: links to sessions and to workspaces count towards the same limit."""
    settings.LIMITS = "invitations=2/minute"
    session = asker.post("/api/sessions", {"workspace": workspace.pk}).json()["id"]
    assert asker.post(f"/api/sessions/{session}/invitations", {"role": "viewer"}).status_code == 201
    assert asker.post(where, {}).status_code == 201
    refused = asker.post(where, {})
    assert code(refused) == (429, "rate_limited")
    assert refused["Retry-After"]
