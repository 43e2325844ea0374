"""Acts on people's data that an operator must be able to find again, without any of the data itself."""

from __future__ import annotations

import json
import logging

from django.db import transaction

from chat.models import User

logger = logging.getLogger("chat.security")


def log_act(kind: str, *, actor: User | None, target: str, **details: int | str) -> None:
    """Log an act when the caller's transaction commits. `actor` is None for commands and jobs.

    `target` is the kind of an object with its id. Nothing that people wrote or are called goes into `details`.
    """
    line = {"kind": kind, "actor": actor.pk if actor else None, "object": target, **details}
    transaction.on_commit(lambda: logger.info("%s", json.dumps(line)))
