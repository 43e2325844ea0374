"""The admin site for staff: one module per kind of page."""

from chat.admin import erasures, people, presets, security, sessions, shares, tokens, workspaces

__all__ = ["erasures", "people", "presets", "security", "sessions", "shares", "tokens", "workspaces"]
