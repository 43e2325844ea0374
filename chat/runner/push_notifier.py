"""Send push messages about runs that have ended and people who are mentioned, in the background."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from chat.db import Threads
from chat.runner import push_delivery
from chat.runner.push_delivery import Result
from chat.runner.push_notices import Cause, EndedRun, Mentioned, Push, pushes_about
from chat.runs.lease import Claim
from chat.security import web_push
from chat.services.people import push

logger = logging.getLogger(__name__)

# Seconds between the end of a run, or a mention, and its push message. An open page has reported by then that the user
# has seen the message, and most runs that go on at once have been claimed again.
DELAY = 3.0
# Runs that end within so many seconds are looked at together: two queries, however many they are.
TOGETHER = 0.5


class PushNotifier:
    """Collects runs that have ended and messages that mention people, and sends push messages about them.

    It has a thread of its own, so that turns do not wait for it. What is in memory when the process ends is not sent.
    """

    def __init__(self) -> None:
        self._threads = Threads(1, "parley-push", durable=False)
        self._causes: deque[tuple[float, Cause]] = deque()
        self._looking: asyncio.Task[None] | None = None
        self._deliveries: set[asyncio.Task[None]] = set()

    def run_ended(self, claim: Claim, turn_id: str) -> None:
        """Notify the people concerned that a run has ended, unless the session is claimed again soon."""
        self._take(EndedRun(claim.session_id, claim.epoch, turn_id))

    def people_mentioned(self, session_id: str, message_id: str) -> None:
        """Notify the people whom a message mentions, unless they see it soon."""
        self._take(Mentioned(session_id, message_id))

    def _take(self, cause: Cause) -> None:
        if not web_push.is_configured():
            return
        loop = asyncio.get_running_loop()
        self._causes.append((loop.time() + DELAY, cause))
        if self._looking is None:
            self._looking = loop.create_task(self._look())

    async def close(self) -> None:
        tasks = [*self._deliveries, *([self._looking] if self._looking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._threads.close()

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._causes:
                await asyncio.sleep(self._causes[0][0] - loop.time() + TOGETHER)
                due = []
                while self._causes and self._causes[0][0] <= loop.time():
                    due.append(self._causes.popleft()[1])
                if pushes := await self._threads.run(pushes_about, due):
                    delivery = loop.create_task(self._deliver(pushes))
                    self._deliveries.add(delivery)
                    delivery.add_done_callback(self._deliveries.discard)
        except Exception as error:  # whatever it is, most likely the database: the sessions still show that they wait
            logger.warning("Push messages were not sent: %r", error)
        finally:
            self._looking = None

    async def _deliver(self, pushes: Sequence[Push]) -> None:
        try:
            await self._threads.run(record, pushes, await push_delivery.deliver(pushes))
        except Exception as error:  # as above
            logger.warning("Push messages were not recorded: %r", error)


def record(pushes: Sequence[Push], results: Sequence[Result]) -> None:
    """Record what came of messages."""
    ids: dict[Result, list[int]] = {result: [] for result in Result}
    for each, result in zip(pushes, results, strict=True):
        ids[result].append(each.subscription_id)
    push.record_delivery(delivered=ids[Result.DELIVERED], failed=ids[Result.FAILED], gone=ids[Result.GONE])
