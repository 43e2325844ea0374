"""How a run ends, and why its turn can stop before its own end."""

from __future__ import annotations

from enum import Enum


class RunEnd(Enum):
    """Why a bridge ended: no message is queued, or its session waits for the next worker."""

    DONE = "done"
    HANDED_OVER = "handed over"


class HandedOver(Exception):  # not an error: another worker continues the turn
    """The turn is between two responses, and this process stops."""


class NotWritten(Exception):  # its cause is the error
    """Changes of the turn could not be written; the cause says why."""
