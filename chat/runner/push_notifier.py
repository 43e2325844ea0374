"""Send push messages about ended runs and about mentions, in the background."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence

from chat.db import Threads
from chat.runner import push_delivery
from chat.runner.push_delivery import Result
from chat.runner.push_notices import Cause, EndedRun, Mentioned, Push, may_still_be_sent, pushes_about
from chat.runs.lease import Claim
from chat.security import web_push
from chat.services.people import push

logger = logging.getLogger(__name__)

# Seconds between the end of a run, or a mention, and its push message. In this time, an open page reports that the user
# has seen the message, and most runs that continue immediately are claimed again.
DELAY = 3.0
# Seconds. Runs that end within this time are handled together, with two queries for all of them.
TOGETHER = 0.5


class PushNotifier:
    """Collects runs that have ended and messages that mention users, and sends push messages about them.

    The queries run in a separate thread, so that turns do not wait for them. What is still in memory when the process
    ends is not sent.
    """

    def __init__(self) -> None:
        self._threads = Threads(1, "parley-push", durable=False)
        self._causes: deque[tuple[float, Cause]] = deque()
        self._looking: asyncio.Task[None] | None = None
        self._deliveries: set[asyncio.Task[None]] = set()

    def run_ended(self, claim: Claim, starters: Mapping[str, int | None]) -> None:
        """Notify the users concerned that a run has ended, unless the session is claimed again soon.

        `starters` are the users who started its turns.
        """
        self._take(EndedRun(claim.session_id, claim.epoch, starters))

    def people_mentioned(self, session_id: str, message_id: str) -> None:
        """Notify the users whom a message mentions, unless they see it soon."""
        self._take(Mentioned(session_id, message_id))

    def _take(self, cause: Cause) -> None:
        if not web_push.is_configured():
            return
        loop = asyncio.get_running_loop()
        self._causes.append((loop.time() + DELAY, cause))
        if self._looking is None:
            self._looking = loop.create_task(self._send_due())

    async def close(self) -> None:
        tasks = [*self._deliveries, *([self._looking] if self._looking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._threads.close()

    async def _send_due(self) -> None:
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
        except Exception as error:  # usually the database is unavailable: the sessions still show that they wait
            logger.warning("Could not send push notifications: %r", error)
        finally:
            self._looking = None

    async def _deliver(self, pushes: Sequence[Push]) -> None:
        try:
            await self._threads.run(record, pushes, await push_delivery.deliver(pushes, self._may_repeat))
        except Exception as error:  # as above
            logger.warning("Could not record sent push notifications: %r", error)

    async def _may_repeat(self, push: Push) -> bool:
        try:
            return await self._threads.run(may_still_be_sent, push)
        except Exception as error:  # as above
            logger.warning("Could not check whether to repeat a push notification: %r", error)
            return False


def record(pushes: Sequence[Push], results: Sequence[Result]) -> None:
    """Store the outcomes of messages."""
    ids: dict[Result, list[int]] = {result: [] for result in Result}
    for each, result in zip(pushes, results, strict=True):
        ids[result].append(each.subscription_id)
    push.record_delivery(delivered=ids[Result.DELIVERED], failed=ids[Result.FAILED], gone=ids[Result.GONE])
