"""Repeat a migration while other transactions use a table that it has to change (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

from django.db import OperationalError

from chat.db import LOCK_TIMEOUT, sqlstate

# Seconds between two attempts: the first pause, and the longest. In the pauses, other statements use the table.
FIRST_PAUSE = 1.0
MAX_PAUSE = 30.0
WAITING = "Waiting for another transaction, such as a backup, that uses a table which has to change."


def repeat_while_locked(migrate: Callable[[], object], report: Callable[[str], object]) -> None:
    """Call `migrate` until it gets all its locks. If it does not get one, call `report` once.

    Migrations may be repeated: each is one transaction, or continues where it ended.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            migrate()
        except OperationalError as error:
            if sqlstate(error) != LOCK_TIMEOUT:
                raise
        else:
            return
        if pause == FIRST_PAUSE:
            report(WAITING)
        sleep(pause)
        pause = min(MAX_PAUSE, pause * 2)
