"""Sending a message and waiting for the end of its turn, in one request."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator

from django.db import DatabaseError, InterfaceError
from django.http import StreamingHttpResponse

from agents.messages import Json
from chat.api.auth import ApiRequest
from chat.api.streams import entry_of, streamed
from chat.errors import NoSuchSession
from chat.live.feed import Feed
from chat.live.turn_wait import TurnWait
from chat.models import SessionRole, User
from chat.queries.turn_outcomes import Outcome, TurnOutcome, messages_of_turn, outcome_of
from chat.runner import runtime

logger = logging.getLogger(__name__)
LONGEST_WAIT = 600
# A space before the JSON keeps proxies from taking the connection for dead.
KEEP_ALIVE = 15.0
# The messages of a turn fill an answer up to so many characters.
CHARS = 200_000


def wait_for_turn(
    request: ApiRequest, session_id: str, sent: Json, seconds: int, location: str
) -> StreamingHttpResponse:
    """Answer with the outcome and the messages of a sent message's turn, once it is at rest or the time is up.

    The status is known at once; the body follows when it is.
    """
    listener = TurnWait(request.user, SessionRole.EDITOR, entry_of(request))
    wait = _Wait(request.user, session_id, sent, seconds, listener)
    status = 200 if sent["repeated"] else 201
    response = streamed(
        session_id, listener, wait.pieces, content_type="application/json", status=status, without_room=wait.at_once
    )
    response.headers["Location"] = location
    return response


class _Wait:
    def __init__(self, user: User, session_id: str, sent: Json, seconds: int, listener: TurnWait) -> None:
        self._user = user
        self._session_id = session_id
        self._sent = sent
        self._seconds = seconds
        self._listener = listener

    async def pieces(self, feed: Feed) -> AsyncIterator[str]:
        """Yield spaces while the turn runs, then the answer."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._seconds
        await feed.arrived()
        try:
            found = await self._outcome()
            while not found.outcome.is_at_rest and not self._listener.closed and (left := deadline - clock()) > 0:
                if await self._listener.changed(min(left, KEEP_ALIVE)):
                    found = await self._outcome()
                else:
                    yield " "
            # Closed: the token or the access has ended, or the server stops.
            answer = self._unknown() if self._listener.closed else await self._answer(found)
        except (NoSuchSession, DatabaseError, InterfaceError) as error:
            logger.info("A request cannot wait any longer for session %s: %s", self._session_id, error)
            answer = self._unknown()
        yield json.dumps(answer)

    async def at_once(self) -> AsyncIterator[str]:
        """Yield the answer as if the time were up."""
        try:
            answer = await self._answer(await self._outcome())
        except (NoSuchSession, DatabaseError, InterfaceError) as error:
            logger.info("A request cannot read the turn in session %s: %s", self._session_id, error)
            answer = self._unknown()
        yield json.dumps(answer)

    def _unknown(self) -> Json:
        return {**self._sent, "outcome": "unknown", "messages": [], "more": False}

    async def _outcome(self) -> TurnOutcome:
        return await runtime.hub().threads.run(outcome_of, self._user, self._session_id, self._sent["id"])

    async def _answer(self, found: TurnOutcome) -> Json:
        is_queued = found.outcome in (Outcome.QUEUED, Outcome.HELD)
        now = {"turn_id": found.turn_id or None, "sequence": found.sequence, "queued": is_queued}
        answer = {**self._sent, **now, "outcome": found.outcome.value, "messages": [], "more": False}
        if found.turn_id:
            read = runtime.hub().threads.run
            page = await read(messages_of_turn, self._user, self._session_id, found.turn_id, CHARS)
            answer |= {"messages": [each.to_json() for each in page.messages], "more": page.has_newer}
        return answer
