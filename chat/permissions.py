"""What the roles of a workspace permit. `chat.access` checks it."""

from __future__ import annotations

from enum import StrEnum

from chat.models import Membership


class Permission(StrEnum):
    """The permissions of roles in a workspace, besides work in sessions. docs/users.md has the table.

    All roles but guest may also begin sessions, which `chat.access.may_begin_sessions` checks.
    """

    INVITE = "invite"
    SEE_MEMBERS = "see_members"
    MAKE_AGENTS = "make_agents"
    ADD_KNOWLEDGE = "add_knowledge"
    SEE_USAGE = "see_usage"
    MANAGE_RULES = "manage_rules"
    MANAGE_NOTES = "manage_notes"
    MANAGE_KNOWLEDGE = "manage_knowledge"
    MANAGE_AGENTS = "manage_agents"
    MANAGE_TOOLS = "manage_tools"
    MANAGE_WEBHOOKS = "manage_webhooks"
    RENAME_WORKSPACE = "rename_workspace"
    MANAGE_MEMBERS = "manage_members"


_OF_MEMBERS = frozenset(
    {
        Permission.INVITE,
        Permission.SEE_MEMBERS,
        Permission.MAKE_AGENTS,
        Permission.ADD_KNOWLEDGE,
    }
)
PERMISSIONS: dict[str, frozenset[Permission]] = {
    Membership.Role.OWNER: frozenset(Permission),
    Membership.Role.ADMIN: frozenset(Permission),
    Membership.Role.MEMBER: _OF_MEMBERS,
    Membership.Role.GUEST: frozenset(),
}


def roles_with(permission: Permission) -> list[str]:
    """Return the roles that have a permission."""
    return [role for role, permissions in PERMISSIONS.items() if permission in permissions]
