"""Links between pages of the admin: staff see no link to a page that refuses them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from chat.models import (
    ApiToken,
    ApprovalRule,
    Erasure,
    Invitation,
    McpServer,
    Membership,
    SecurityEvent,
    Session,
    Share,
    User,
    Workspace,
    WorkspaceInvitation,
)
from chat.services.people import api_tokens, sharing, workspace_invitations
from chat.services.people.security_log import Kind, record
from chat.services.people.workspaces import current_workspace
from tests.admin.pages import soup_of
from tests.support.signed_in import signed_in
from tests.support.testing_node import let_in

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def rows(ana: User, bo: User, session: Session) -> dict[type[Model], Model]:
    """A row of each model whose page shows related rows."""
    workspace = current_workspace(ana)
    Membership.objects.filter(workspace=workspace, user=ana).update(role=Membership.Role.OWNER)
    let_in(session, bo, "viewer")
    sharing.invite(session=session, author=ana, role="viewer")
    workspace_invitations.invite(author=ana, workspace_id=workspace.pk, uses=1)
    api_tokens.create(user=ana, name="CI", scope="read", days=30)
    record(Kind.SHARED, actor=ana, person=bo, target=session, role="viewer")
    kind = ContentType.objects.get_for_model(Session)
    created: list[Model] = [
        ApprovalRule.objects.create(workspace=workspace, rule="bash", verdict="ask", user=ana),
        McpServer.objects.create(workspace=workspace, name="tickets", url="https://example.com/mcp", signed_in_by=ana),
        Erasure.objects.create(kind="session", target=session.pk, requested_by=ana),
        LogEntry.objects.create(
            user=ana, content_type=kind, object_id=session.pk, object_repr="Plan", action_flag=CHANGE
        ),
        SecurityEvent.objects.filter(kind=Kind.SHARED.value, object_id=session.pk).latest("pk"),
        *(model._default_manager.latest("pk") for model in (Share, Invitation, WorkspaceInvitation, ApiToken)),
        workspace,
        ana,
    ]
    return {type(row): row for row in created}


MODELS = (
    *(ApprovalRule, McpServer, Erasure, LogEntry, SecurityEvent, Share, Invitation, WorkspaceInvitation, ApiToken),
    *(Workspace, User),
)


def links_of(response: Any) -> set[str]:
    """Return the addresses in the admin that the content of a page links to."""
    assert response.status_code == 200
    content = soup_of(response).select_one("#content")
    assert content is not None
    return {str(link["href"]) for link in content.select("a[href^='/admin/']")}


@pytest.mark.parametrize("may_change", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_staff_see_no_link_that_refuses_them(
    rows: dict[type[Model], Model], client: Client, model: type[Model], may_change: bool
) -> None:
    """Staff with the permission for one model see its related rows as texts. Superusers can open them."""
    options = model._meta
    staff = User.objects.create_user("mia", is_staff=True)
    names = [f"{act}_{options.model_name}" for act in ("view", *(["change"] if may_change else []))]
    staff.user_permissions.set(Permission.objects.filter(codename__in=names))
    mia = signed_in(staff)
    prefix = f"admin:{options.app_label}_{options.model_name}"
    for page in (reverse(f"{prefix}_changelist"), reverse(f"{prefix}_change", args=[rows[model].pk])):
        for link in links_of(mia.get(page)):
            assert mia.get(link).status_code == 200, (page, link)
