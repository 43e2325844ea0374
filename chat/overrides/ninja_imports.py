"""Import ninja without `django.test`. The package loads Django's test client, unittest, wsgiref and Jinja.

ninja only needs one signal of it. Overridden: the import of the package `django.test` while `ninja.conf` is imported.
`ninja.conf` gets `django.test.signals` without the package. Gain: see docs/performance.md. Off: `SKIP_TEST_CLIENT`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import django

SKIP_TEST_CLIENT = True
PACKAGE = "django.test"
SIGNALS = f"{PACKAGE}.signals"


def import_ninja() -> None:
    """Import the module that reads ninja's settings. Call this before anything else imports ninja."""
    if not SKIP_TEST_CLIENT or PACKAGE in sys.modules or "ninja.conf" in sys.modules:
        return
    package = ModuleType(PACKAGE)
    package.__path__ = [str(Path(django.__file__).with_name("test"))]
    sys.modules[PACKAGE] = package
    try:
        importlib.import_module(SIGNALS)
        importlib.import_module("ninja.conf")
    finally:  # a later import, as in tests, runs the package
        for name in (SIGNALS, PACKAGE):
            sys.modules.pop(name, None)
