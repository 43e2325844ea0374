"""Every list of the admin makes the same number of queries for any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chat.models import (
    AgentPreset,
    ApiToken,
    ApprovalRule,
    Erasure,
    Invitation,
    McpServer,
    RunState,
    Schedule,
    SecurityEvent,
    Session,
    SessionRun,
    Share,
    User,
    Worker,
    Workspace,
    WorkspaceInvitation,
)
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import soup_of
from tests.support.agreement import agree
from tests.support.filled import ANSWER, HI, fill
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
SOON = timedelta(hours=1)


def _log_entry(user: User, session: Session) -> None:
    message = '[{"changed": {"fields": ["Title"]}}]'
    LogEntry.objects.log_actions(user.pk, [session], CHANGE, change_message=message, single_object=True)


def _preset(user: User, session: Session) -> None:
    AgentPreset.objects.create(name=f"agent{user.pk}", workspace=session.workspace, user=user, is_shared=True)


def _security_event(user: User, session: Session) -> None:
    SecurityEvent.objects.create(
        kind="shared", actor=user, person=user, object_type="session", object_id=session.pk, face="page"
    )


def _share(user: User, session: Session) -> None:
    guest = User.objects.create_user(f"guest{user.pk}")
    Share.objects.create(session=session, user=guest, role="editor")


def _invitation(user: User, session: Session) -> None:
    digest, end = f"{user.pk:064}", timezone.now() + SOON
    Invitation.objects.create(session=session, role="editor", token_hash=digest, created_by=user, expires_at=end)


def _workspace_invitation(user: User, session: Session) -> None:
    WorkspaceInvitation.objects.create(
        workspace=session.workspace,
        token_hash=f"{user.pk:064}",
        created_by=user,
        max_uses=2,
        expires_at=timezone.now() + SOON,
    )


def _run(user: User, session: Session) -> None:
    worker = Worker.objects.create(label=user.username, lease_until=timezone.now() + SOON)
    SessionRun.objects.filter(session=session).update(
        state=RunState.RUNNING, turn_id=f"t_{user.pk}", turn_started_at=timezone.now(), owner=worker, started_by=user
    )


# Each row is about its own user, session and workspace. A shared one would need only one query for all rows.
ADD: dict[str, Callable[[User, Session], object]] = {
    "admin.LogEntry": _log_entry,
    "auth.Group": lambda user, _: Group.objects.create(name=user.username),
    "chat.AgentPreset": _preset,
    "chat.ApiToken": lambda user, _: ApiToken.objects.create(user=user, name="Laptop", digest=f"{user.pk:064}"),
    "chat.ApprovalRule": lambda user, session: ApprovalRule.objects.create(
        workspace=session.workspace, verdict="ask", rule="bash", user=user
    ),
    "chat.Erasure": lambda user, session: Erasure.objects.create(kind="session", target=session.pk, requested_by=user),
    "chat.Invitation": _invitation,
    "chat.McpServer": lambda user, session: McpServer.objects.create(
        workspace=session.workspace, name="search", url="https://mcp.example", signed_in_by=user
    ),
    "chat.Schedule": lambda user, session: Schedule.objects.create(
        session=session, owner=user, text="Go", cron="0 9 * * *", zone="UTC"
    ),
    "chat.SecurityEvent": _security_event,
    "chat.Session": lambda _, session: fill(session, HI, ANSWER),
    "chat.SessionRun": _run,
    "chat.Share": _share,
    "chat.User": lambda user, _: user,
    "chat.Worker": _run,
    "chat.Workspace": lambda _, session: session.workspace,
    "chat.WorkspaceInvitation": _workspace_invitation,
}


def test_each_list_of_the_admin_is_here() -> None:
    agree(
        ADD,
        [model._meta.label for model in site._registry],
        missing="Add {} to ADD in tests/admin/test_list_costs.py, with a function that makes a row of it.",
        extra="Remove {} from ADD in tests/admin/test_list_costs.py: the admin has no such list.",
    )


@pytest.mark.parametrize("label", ADD)
def test_list_costs_the_same_for_two_rows_and_for_twelve(label: str) -> None:
    """ADM-01: a list makes no query for each row. `list_select_related` names the tables that its columns read."""
    client = signed_in(User.objects.create_superuser("root"))
    address = reverse(f"admin:{apps.get_model(label)._meta.label_lower.replace('.', '_')}_changelist")

    def add(numbers: range) -> None:
        for number in numbers:
            user = User.objects.create_user(f"user{number}", display_name=f"User {number}")
            workspace = Workspace.objects.create(name=f"Team {number}")
            ADD[label](user, create_session(owner=user, workspace=workspace, title=f"Session {number}"))

    add(range(2))
    _look(client, address)  # fills the caches
    rows, queries = _look(client, address)
    add(range(2, 12))
    more_rows, more_queries = _look(client, address)
    assert more_rows - rows == 10
    assert len(more_queries) == len(queries), "\n".join(sorted(set(more_queries) - set(queries)))


def _look(client: Client, address: str) -> tuple[int, list[str]]:
    """Return the number of rows in a list, and its queries."""
    with CaptureQueriesContext(connection) as queries:
        page = client.get(address)
    assert page.status_code == 200
    return len(soup_of(page).select("#result_list tbody tr")), [each["sql"] for each in queries]
