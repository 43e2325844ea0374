"""Accept invitation links, which lead to a session, for guests, or to a workspace, for members."""

from __future__ import annotations

from chat.models import Invitation, Session, User, Workspace, WorkspaceInvitation
from chat.services.people import sharing, workspace_invitations


def invitation_for(token: str) -> Invitation | WorkspaceInvitation:
    """Return a valid invitation. Raise ServiceError if it is unknown, revoked, used up or expired."""
    return workspace_invitations.invitation_for(token) or sharing.invitation_for(token)


def by_used_link(token: str, user: User) -> Session | Workspace | None:
    """Return the session or workspace of a link, even of a used one, if the user has access to it."""
    return sharing.session_by_used_link(token, user) or workspace_invitations.workspace_by_used_link(token, user)


def accept(*, token: str, user: User) -> Session | Workspace:
    """Accept an invitation for a user. Raise ServiceError."""
    if workspace_invitations.invitation_for(token) is not None:
        return workspace_invitations.accept(token=token, user=user)
    return sharing.accept(token=token, user=user)
