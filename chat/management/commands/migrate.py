"""`manage.py migrate`: Django's command, repeated while other transactions use a table that it has to change."""

from __future__ import annotations

from typing import Any

from django.core.management.commands.migrate import Command as DjangoCommand

from chat.management.lock_retries import repeat_while_locked


class Command(DjangoCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        handle = super().handle
        repeat_while_locked(lambda: handle(*args, **options), self.stdout.write)
