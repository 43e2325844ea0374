"""`manage.py acceptkey`: let processes start with a SECRET_KEY whose predecessor is lost."""

from __future__ import annotations

from typing import Any

from chat.management.data_command import DataCommand
from chat.services.maintenance.key_mark import accept_key


class Command(DataCommand):
    help = (
        "Make the present SECRET_KEY that of the installation, where the earlier one is lost. All users must sign in "
        "again, and two-step verification must be reset for each account that has it. Stop all processes first: those "
        "with another key do not start any more."
    )

    def handle(self, *args: Any, **options: Any) -> str:
        accept_key()
        return "Processes with this SECRET_KEY can start now, and no others."
