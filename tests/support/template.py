"""A process that has imported Parley, from which servers are forked. `tests.support.forked` preloads this module in it.

Imports take most of a server's start. A fork reads the settings from its own environment (`take_settings`). Modules
that store settings when they are imported, such as the middleware, are imported only in the fork.
"""

from __future__ import annotations

import gc
import importlib
import os
import threading
from pathlib import Path
from typing import Any

from asgiref.local import Local

from agents.providers.http import transport

os.environ |= {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "PARLEY_DATA": "/dev/null/nowhere",  # a fork that uses the template's data folder fails
    "SECRET_KEY": "only for the imports: each fork has its own",
    "VAPID_PRIVATE_KEY": "likewise",
}
for name in ("DATABASE_URL", "REDIS_URL", "PARLEY_CONFIG"):
    os.environ.pop(name, None)

import django  # noqa: E402  # it reads the environment
from django.conf import Settings, settings  # noqa: E402  # likewise
from django.core.signals import setting_changed  # noqa: E402  # likewise
from django.db import connections  # noqa: E402  # likewise
from django.template.loader import get_template  # noqa: E402  # likewise
from django.urls import get_resolver  # noqa: E402  # likewise

MODULES = (
    "agents.providers.openai.provider",
    "aiohttp",
    "allauth.mfa.stages",
    "chat.api.middleware",
    "chat.asgi.bodies",
    "chat.asgi.health",
    "chat.middleware",
    "chat.rendering.markdown.highlight",
    "chat.routing",
    "chat.runner.runtime",
    "chat.servers.limits",
    "chat.servers.responses",
    "chat.asgi.socket_credentials",
    "chat.assets.static_files",
    "chat.asgi.unavailable",
    "config.urls",
    "django.core.handlers.asgi",
    "django.core.management.commands.migrate",
    "django.db.migrations.executor",
    "django.test.signals",
    "openai.resources.chat.completions",
    "openai.resources.responses",
    "pygments.lexers",
    "uvicorn.main",
    "websockets",
)


def take_settings() -> None:
    """Load the settings of this process's environment and clear what Django derived from the old ones."""
    holder: Any = settings
    databases: Any = connections  # the attributes of both are internals of Django
    before = holder._wrapped
    importlib.reload(importlib.import_module("config.settings"))
    after = Settings("config.settings")
    names = [name for name in dir(after) if name.isupper()]
    changed = {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}
    holder._wrapped = after
    for name in changed:
        holder.__dict__.pop(name, None)
    if "DATABASES" in changed:
        databases._settings = changed.pop("DATABASES")  # Django's signal warns against changing it in tests
        databases.__dict__.pop("settings", None)
        databases._connections = Local(databases.thread_critical)
    for name, value in changed.items():
        setting_changed.send(sender=Settings, setting=name, value=value, enter=True)


def warm_up() -> None:
    """Do in advance what each server does for its first pages and turn, as far as no setting influences it."""
    for module in MODULES:
        importlib.import_module(module)
    get_resolver()._populate()
    templates = Path(settings.BASE_DIR) / "templates"
    for file in templates.rglob("*.*"):
        get_template(str(file.relative_to(templates)))
    transport._certificates()
    from chat.security.password_hashing import BoundedHasher

    BoundedHasher.iterations = 1_000  # otherwise a password hash takes a third of a second


django.setup()
warm_up()
if threading.active_count() > 1:
    raise RuntimeError("a process with threads cannot be forked")
gc.freeze()  # prevents collections from copying the memory that forks share
