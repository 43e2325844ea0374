"""Sharing sessions over the API."""

from __future__ import annotations

import pytest

from chat.models import Invitation, Session, User
from tests.api.asking import Asker, code, token_of
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db


def path(session: Session, rest: str) -> str:
    return f"/api/sessions/{session.pk}{rest}"


def roles(asker: Asker, session: Session) -> list[tuple[str, str]]:
    members = asker.get(path(session, "/members")).json()["members"]
    return [(each["name"], each["role"]) for each in members]


def test_owner_shares_changes_and_withdraws(asker: Asker, session: Session, bo: User) -> None:
    """LIVE-06: only the owner shares a session, and only with members of the workspace."""
    his = Asker(token_of(bo))
    for role in ("viewer", "editor"):
        assert asker.put(path(session, f"/members/{bo.pk}"), {"role": role}).status_code == 204
        assert roles(his, session) == [("Ana", "owner"), ("Bo", role)]
    assert code(his.put(path(session, f"/members/{bo.pk}"), {"role": "viewer"})) == (403, "forbidden")
    outside = person("Cy")
    for user_id in (outside.pk, 10**9, 10**30, -1):
        assert code(asker.put(path(session, f"/members/{user_id}"), {"role": "viewer"})) in (
            (422, "not_a_member"),
            (404, "not_found"),
        )
    assert code(asker.put(path(session, f"/members/{session.owner_id}"), {"role": "viewer"})) == (422, "is_owner")
    assert code(asker.put(path(session, f"/members/{bo.pk}"), {"role": "owner"})) == (422, "malformed")
    assert asker.delete(path(session, f"/members/{bo.pk}")).status_code == 204
    assert code(his.get(path(session, ""))) == (404, "no_such_session")


def test_invitation_lets_others_in_until_it_ends(asker: Asker, session: Session) -> None:
    """LIVE-06: an invitation's token is shown once, and ending one invitation leaves the others valid."""
    made = [asker.post(path(session, "/invitations"), {"role": role}) for role in ("viewer", "editor")]
    assert [each.status_code for each in made] == [201, 201]
    viewer, editor = (each.json() for each in made)
    assert viewer["url"].endswith(f"/join/{viewer['token']}")
    listed = asker.get(path(session, "/invitations")).json()["invitations"]
    assert [each["role"] for each in listed] == ["editor", "viewer"]
    assert [(each["id"], each["expires_at"]) for each in (editor, viewer)] == [
        (each["id"], each["expires_at"]) for each in listed
    ]
    assert viewer["token"] not in str(listed)
    cy = Asker(token_of(person("Cy")))
    assert cy.post("/api/invitations/accept", {"token": viewer["token"]}).json() == {"session": session.pk}
    assert roles(cy, session) == [("Ana", "owner"), ("Cy", "viewer")]
    assert asker.delete(path(session, f"/invitations/{listed[1]['id']}")).status_code == 204
    assert code(cy.post("/api/invitations/accept", {"token": viewer["token"]})) == (404, "no_such_invitation")
    assert cy.post("/api/invitations/accept", {"token": editor["token"]}).status_code == 200
    assert asker.delete(path(session, "/invitations")).status_code == 204
    assert not Invitation.objects.exists()


def test_owner_opens_a_session_to_the_workspace(asker: Asker, session: Session, bo: User) -> None:
    """UI-23: the list of members has the role of the workspace. Only the owner can set it, to a valid role."""
    his = Asker(token_of(bo))
    address = path(session, "/workspace-access")
    assert code(his.put(address, {"role": "viewer"})) == (404, "no_such_session")
    assert asker.put(address, {"role": "viewer"}).status_code == 204
    assert his.get(path(session, "")).json()["role"] == "viewer"
    assert his.get(path(session, "/members")).json()["workspace_role"] == "viewer"
    assert code(his.put(address, {"role": "editor"})) == (403, "forbidden")
    assert code(asker.put(address, {"role": "owner"})) == (422, "malformed")
    assert asker.put(address, {"role": ""}).status_code == 204
    assert code(his.get(path(session, ""))) == (404, "no_such_session")
