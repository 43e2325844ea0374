"""Store request options that model servers have rejected, for other processes and later starts."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from django.db import DatabaseError, connection
from django.utils import timezone

from agents.messages import Json
from agents.providers.base import Provider
from agents.providers.learned import LIFETIME, Learner
from chat.models import LearnedDialect

logger = logging.getLogger(__name__)
# Seconds until the rows are read again, because other processes may have changed them.
FRESH = 60.0

_read_at: WeakKeyDictionary[Provider, float] = WeakKeyDictionary()


class RowStore:
    """A store of what a provider learns about its models."""

    async def keep(self, endpoint: str, model: str, learned: Json) -> None:
        """Store what was learned about a model. Errors are only logged, because this process has it in memory."""
        try:
            await asyncio.to_thread(_keep_in_thread, endpoint, model, learned)
        except (DatabaseError, ValueError) as error:
            logger.warning("Could not store which parameters %s refuses: %s", model, error)


def recall(provider: Provider) -> None:
    """Load what any process has learned about a provider's models, with one query per minute and provider."""
    if not isinstance(provider, Learner):
        return
    now, last = time.monotonic(), _read_at.get(provider)
    if last is not None and now - last < FRESH:
        return
    provider.store = provider.store or RowStore()
    rows = LearnedDialect.objects.filter(endpoint=provider.endpoint_key, learned_at__gt=_oldest())
    found = rows.values_list("model", "learned", "learned_at")
    provider.recall({model: (learned, at.timestamp()) for model, learned, at in found if isinstance(learned, dict)})
    _read_at[provider] = now


def keep(*, endpoint: str, model: str, learned: Json) -> None:
    """Store what was learned about a model, and delete expired rows."""
    LearnedDialect.objects.filter(learned_at__lte=_oldest()).delete()
    LearnedDialect.objects.update_or_create(
        endpoint=endpoint, model=model, defaults={"learned": learned, "learned_at": timezone.now()}
    )


def _keep_in_thread(endpoint: str, model: str, learned: Json) -> None:
    """Write in a new thread, and close its connection."""
    try:
        keep(endpoint=endpoint, model=model, learned=learned)
    finally:
        connection.close()


def _oldest() -> datetime:
    return timezone.now() - timedelta(seconds=LIFETIME)
