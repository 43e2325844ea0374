"""`manage.py serve` with time limits that a test can wait for. Run as `python -m tests.support.strict_server`."""

from __future__ import annotations

import os

import django
from django.core.management import call_command

HEAD_SECONDS = 3.0
CLOSE_SECONDS = 2.0
STALL_SECONDS = 1.0
SWEEP_SECONDS = 1.0


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from chat.servers import limits

    limits.HEAD_SECONDS = HEAD_SECONDS
    limits.CLOSE_SECONDS = limits.LINGER_SECONDS = CLOSE_SECONDS
    limits.STALL_SECONDS = STALL_SECONDS
    limits.SWEEP_SECONDS = SWEEP_SECONDS
    call_command("serve")


if __name__ == "__main__":
    main()
