"""Questions that a server asks users during a call (elicitation), and the calls to which they belong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import mcp_types as types
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agents.elicitation import Elicitation, Unusable, form_of, link_of
from agents.messages import Json

logger = logging.getLogger(__name__)

# Asks users, and returns their answer in the form for the server.
Ask = Callable[[Elicitation], Awaitable[Json]]
WHICH_CALL = "Several calls are running, and the client cannot tell which of them asked."
OPENED = "Not done yet: a person has opened the page that the server needs. Ask whether it is done, and call again."
NOT_OPENED = "Not done: the server needs a page to be opened, and no one has opened it."


@dataclass(eq=False)
class _Call:
    """A running call. `ask` is None if no user is present."""

    ask: Ask | None
    tasks: set[asyncio.Task[Json]] = field(default_factory=set)


# The call to which a request belongs. The HTTP transport handles messages in the answer in the same context, so a
# question finds its call here.
_current: ContextVar[_Call | None] = ContextVar("mcp_call", default=None)


class Questions:
    """The questions of one connection. The protocol does not name the call to which a question belongs.

    Over HTTP, a question arrives in the answer to its call. From a program's pipe, it must belong to the only running
    call; if several calls are running, the question is refused.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: set[_Call] = set()

    @contextmanager
    def during_call(self, ask: Ask | None) -> Iterator[None]:
        """Assign the questions that arrive in this block to one call. At its end, cancel those still open."""
        call = _Call(ask)
        self._calls.add(call)
        token = _current.set(call)
        try:
            yield
        finally:
            _current.reset(token)
            self._calls.discard(call)
            for task in call.tasks:
                task.cancel()

    async def answer(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask users a question of the server, and return their answer or an error for the server."""
        call = _current.get()
        if call is None and len(self._calls) == 1:
            call = next(iter(self._calls))
        if call not in self._calls:  # unknown, or ended already: do not ask the users of another call
            return types.ErrorData(code=types.INVALID_REQUEST, message=WHICH_CALL)
        try:
            question = self._question(params)
        except Unusable as error:
            logger.warning("The MCP server %s sent a question that cannot be shown: %s", self._server, error)
            return types.ErrorData(code=types.INVALID_PARAMS, message=str(error))
        return types.ElicitResult.model_validate(await self._ask(call, question))

    async def open_pages(self, error: MCPError, ask: Ask | None) -> str:
        """Ask users to open the pages that the server requires before a call. Return the text for the model."""
        try:
            wanted = types.ElicitationRequiredErrorData.model_validate(error.data).elicitations
            questions = [self._question(each) for each in wanted]
        except (ValidationError, Unusable):
            return NOT_OPENED
        for question in questions:
            answer = await ask(question) if ask is not None else {}
            if answer.get("action") != "accept":
                return NOT_OPENED
        return OPENED

    def _question(self, params: types.ElicitRequestParams) -> Elicitation:
        if isinstance(params, types.ElicitRequestURLParams):
            return link_of(self._server, params.message, params.url)
        return form_of(self._server, params.message, params.requested_schema)

    async def _ask(self, call: _Call, question: Elicitation) -> Json:
        if call.ask is None:
            return {"action": "cancel"}
        task = asyncio.ensure_future(call.ask(question))
        call.tasks.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) is not None and current.cancelling():
                raise
            return {"action": "cancel"}  # the call has ended
        finally:
            call.tasks.discard(task)
