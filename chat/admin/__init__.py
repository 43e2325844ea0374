"""The admin: what staff look after, one module per noun."""

from chat.admin import erasing, people, presets, security, sessions, shares, tokens, workspaces

__all__ = ["erasing", "people", "presets", "security", "sessions", "shares", "tokens", "workspaces"]
