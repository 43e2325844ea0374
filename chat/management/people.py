"""Find the users and workspaces that operators name in commands."""

from __future__ import annotations

from django.core.management.base import CommandError

from chat.models import User, Workspace


def named_user(username: str) -> User:
    """Return an active user. Raise CommandError."""
    try:
        return User.objects.get(username=username, is_active=True)
    except User.DoesNotExist:
        raise CommandError(f"There is no active user {username!r}.") from None


def named_workspace(workspace_id: int) -> Workspace:
    """Return a workspace. Raise CommandError."""
    try:
        return Workspace.objects.get(pk=workspace_id)
    except Workspace.DoesNotExist:
        raise CommandError(f"There is no workspace {workspace_id}.") from None
