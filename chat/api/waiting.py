"""Send a message and wait for the end of its turn in one request."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator

from django.db import DatabaseError, InterfaceError
from django.http import StreamingHttpResponse

from agents.messages import Json
from chat.api.auth import ApiRequest
from chat.api.streams import credential_of, stream_response
from chat.errors import NoSuchSession
from chat.live.feed import Feed
from chat.live.turn_wait import TurnWait
from chat.models import SessionRole, User
from chat.queries.turn_outcomes import Outcome, TurnOutcome, messages_of_turn, outcome_of
from chat.runner import runtime

logger = logging.getLogger(__name__)
MAX_WAIT = 600
# Seconds between the spaces that are sent before the JSON, so that proxies do not close the connection.
KEEP_ALIVE = 15.0
# The maximum size of the turn's messages in a response, in characters.
MAX_CHARS = 200_000


def wait_for_turn(
    request: ApiRequest, session_id: str, sent: Json, seconds: int, location: str, *, name: str
) -> StreamingHttpResponse:
    """Return the outcome and the messages of the turn of the message `sent`, after `seconds` seconds at the latest.

    The status and headers are sent immediately. The body is sent when the turn is at rest or the time is up. `name` is
    the user's name in the session.
    """
    subscriber = TurnWait(request.user, SessionRole.EDITOR, credential_of(request), name=name)
    wait = Wait(request.user, session_id, sent, seconds, subscriber)
    status = 200 if sent["repeated"] else 201
    response = stream_response(
        session_id, subscriber, wait.chunks, content_type="application/json", status=status, when_full=wait.at_once
    )
    response.headers["Location"] = location
    return response


class Wait:
    """A wait for the turn of the message `sent`, for at most `seconds` seconds."""

    def __init__(self, user: User, session_id: str, sent: Json, seconds: int, subscriber: TurnWait) -> None:
        self._user = user
        self._session_id = session_id
        self._sent = sent
        self._seconds = seconds
        self._subscriber = subscriber

    async def chunks(self, feed: Feed) -> AsyncIterator[str]:
        """Yield spaces while the turn runs, then the JSON."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._seconds
        await feed.wait_until_subscribed()
        try:
            turn = await self._outcome()
            while not turn.outcome.is_at_rest and not self._subscriber.closed and (remaining := deadline - clock()) > 0:
                if not await self._subscriber.changed(min(remaining, KEEP_ALIVE)):
                    yield " "
                turn = await self._outcome()  # without a notice, too, because notices can be lost
            # The subscriber is closed if the token has expired, the user has lost access, or the server is stopping.
            result = self._unknown() if self._subscriber.closed else await self._result(turn)
        except (NoSuchSession, DatabaseError, InterfaceError) as error:
            logger.info("A request stopped waiting for session %s: %s", self._session_id, error)
            result = self._unknown()
        yield json.dumps(result)

    async def at_once(self) -> AsyncIterator[str]:
        """Yield the JSON immediately, as if the time were up."""
        try:
            result = await self._result(await self._outcome())
        except (NoSuchSession, DatabaseError, InterfaceError) as error:
            logger.info("Could not read the turn of session %s for a waiting request: %s", self._session_id, error)
            result = self._unknown()
        yield json.dumps(result)

    def _unknown(self) -> Json:
        return {**self._sent, "outcome": "unknown", "messages": [], "more": False}

    async def _outcome(self) -> TurnOutcome:
        return await runtime.hub().threads.run(outcome_of, self._user, self._session_id, self._sent["id"])

    async def _result(self, turn: TurnOutcome) -> Json:
        is_queued = turn.outcome in (Outcome.QUEUED, Outcome.HELD)
        now = {"turn_id": turn.turn_id or None, "sequence": turn.sequence, "queued": is_queued}
        result = {**self._sent, **now, "outcome": turn.outcome.value, "messages": [], "more": False}
        if turn.turn_id:
            read = runtime.hub().threads.run
            page = await read(messages_of_turn, self._user, self._session_id, turn.turn_id, MAX_CHARS)
            result |= {"messages": [each.to_json() for each in page.messages], "more": page.has_newer}
        return result
