"""The admin site for staff: one module per kind of page.

Messages have no list of their own: `session_page` shows them in their session, and `message_page` edits one.
"""

from chat.admin import (
    approvals,
    deleting,
    erasures,
    mcp_servers,
    people,
    presets,
    runs,
    schedules,
    security,
    sessions,
    shares,
    tokens,
    workspaces,
)

__all__ = [
    "approvals",
    "deleting",
    "erasures",
    "mcp_servers",
    "people",
    "presets",
    "runs",
    "schedules",
    "security",
    "sessions",
    "shares",
    "tokens",
    "workspaces",
]
