"""The admin: what staff look after, one module per noun."""

from chat.admin import entrances, erasing, people, presets, security, sessions, tokens, workspaces

__all__ = ["entrances", "erasing", "people", "presets", "security", "sessions", "tokens", "workspaces"]
