"""The admin: what staff look after, one module per noun."""

from chat.admin import entrances, people, presets, security, sessions, tokens, workspaces

__all__ = ["entrances", "people", "presets", "security", "sessions", "tokens", "workspaces"]
