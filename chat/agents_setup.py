"""The agents of this process: read once from the configuration file and the environment."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from django.conf import settings

from agents.registry import Registry, load

_loading = threading.Lock()
_registry: Registry | None = None


def registry() -> Registry:
    """Return the providers, models and agents that are configured. Raises agents.errors.ConfigError."""
    global _registry
    with _loading:
        if _registry is None:
            _registry = load(Path(settings.PARLEY_CONFIG) if settings.PARLEY_CONFIG else None, os.environ)
        return _registry


def install(configured: Registry) -> None:
    """Use these from now on."""
    global _registry
    _registry = configured


def reset() -> None:
    """Forget them: the next caller reads the configuration again."""
    global _registry
    _registry = None
