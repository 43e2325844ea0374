"""The agents of this process, read once from the configuration file and the environment, and their sandboxes."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from agents.added_tools import load_added_tools
from agents.registry import Registry, load
from agents.sandbox.command import Sandbox
from agents.sandbox.copies import ATTACHMENTS

_loading = threading.Lock()
_registry: Registry | None = None


def registry() -> Registry:
    """Return the providers, models and agents that are configured. Raise agents.errors.ConfigError."""
    global _registry
    with _loading:
        if _registry is None:
            _registry = load(
                Path(settings.PARLEY_CONFIG) if settings.PARLEY_CONFIG else None,
                os.environ,
                server_sandbox,
                load_added_tools(Path(settings.TOOLS_FOLDER).absolute() if settings.TOOLS_FOLDER else None),
            )
        return _registry


def sandbox(session_id: str) -> Sandbox:
    """Return the sandbox for the commands of a session's agent. Its folder exists once a command has run."""
    return replace(_sandbox(session_id, network=settings.SANDBOX_NETWORK), copies=ATTACHMENTS)


def server_sandbox(name: str, network: bool) -> Sandbox:
    """Return the sandbox for an MCP server's program. Its folder is kept, because the program can store data there."""
    return _sandbox(f"mcp-{name}", network=network)


def _sandbox(folder: str, *, network: bool) -> Sandbox:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", folder):
        raise ValueError(f"{folder!r} cannot name a folder")
    parley = {str(settings.DATA_DIR), str(settings.BASE_DIR), str(settings.WORKSPACES)}
    if settings.DATABASES["default"]["ENGINE"] == "chat.overrides.sqlite":
        parley.add(str(Path(settings.DATABASES["default"]["NAME"]).parent))
    return Sandbox(
        _resolved(str(settings.WORKSPACES)) / folder,
        network=network,
        hidden=tuple(sorted(_resolved(folder) for folder in parley)),
    )


@lru_cache(maxsize=16)
def _resolved(folder: str) -> Path:
    """Return a folder of Parley's without links. The result is cached, because each request needs it."""
    return Path(folder).resolve()


def install(configured: Registry) -> None:
    """Replace the registry of this process."""
    global _registry
    _registry = configured


def reset() -> None:
    """Discard the registry, so that the next caller reads the configuration again."""
    global _registry
    _registry = None
