"""The modules that a server imports at startup, without clients that the installation does not use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

START = """
import sys, django
django.setup()
import config.asgi
from django.core.checks import run_checks
from django.urls import get_resolver
get_resolver().url_patterns
run_checks()
print(*sys.modules)
"""


@pytest.mark.sqlite  # PostgreSQL needs psycopg
def test_unused_libraries_are_not_loaded(tmp_path: Path) -> None:
    """A server on SQLite with the demo agent imports no client of PostgreSQL, Redis, a model vendor or web pages.

    It also imports neither Django's test modules (`chat.overrides.ninja_imports` keeps ninja from importing them), nor
    encryption, which the first secret or push message needs, nor image libraries, which other processes use.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(settings.BASE_DIR),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PARLEY_DATA": str(tmp_path),
    }
    loaded = subprocess.run(
        [sys.executable, "-c", START],
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "chat.api" in loaded
    assert not {"psycopg", "redis", "openai", "anthropic", "aiohttp", "bs4"}.intersection(loaded)
    assert not {"django.test", "django.test.client", "unittest", "jinja2"}.intersection(loaded)
    assert not {"cryptography", "PIL"}.intersection(loaded)
