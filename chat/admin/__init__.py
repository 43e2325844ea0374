"""The admin: what staff look after, one module per noun."""

from chat.admin import entrances, people, presets, sessions, tokens, workspaces

__all__ = ["entrances", "people", "presets", "sessions", "tokens", "workspaces"]
