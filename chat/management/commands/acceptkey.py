"""`manage.py acceptkey`: let processes start with a new SECRET_KEY after the old one was lost."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from chat.management.data_command import DataCommand
from chat.services.maintenance.key_mark import accept_key


class Command(DataCommand):
    help = (
        "Accept the current SECRET_KEY if the earlier one is lost. All users must then sign in again, and two-step "
        "verification must be reset for each account that has it. Stop all processes first: processes with another "
        "key can no longer start."
    )

    def handle(self, *args: Any, **options: Any) -> str:
        if not accept_key():
            raise CommandError("No server has started on this database yet. Its first start takes its SECRET_KEY.")
        return "SECRET_KEY accepted. Only processes with this key can start now."
