"""What a server asks people while it works on a call: which call it belongs to, and its answer (elicitation)."""

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

# Asks people, and returns their answer as the server gets it.
Ask = Callable[[Elicitation], Awaitable[Json]]
WHICH_CALL = "Several calls are running, and the client cannot tell which of them asks."
OPENED = "Not done yet: a person has opened the page that the server needs. Ask whether it is done, and call again."
NOT_OPENED = "Not done: the server needs a page to be opened, and no one has opened it."


@dataclass(eq=False)
class _Call:
    """A call under way. `ask` is None if no one is there."""

    ask: Ask | None
    tasks: set[asyncio.Task[Json]] = field(default_factory=set)


# The call for which a request is sent. The transport over HTTP hands it on to what comes with the request's answer.
_current: ContextVar[_Call | None] = ContextVar("mcp_call", default=None)


class Questions:
    """The questions of one connection. The protocol does not name the call that a question belongs to.

    Over HTTP it comes with the answer of its call. On the pipe of a program it belongs to the only call that runs; if
    there are several, it is refused.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: set[_Call] = set()

    @contextmanager
    def during_call(self, ask: Ask | None) -> Iterator[None]:
        """Let what the server asks in this block belong to one call. At its end, what is open is withdrawn."""
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
        """Answer a request of the server. Returns when people have."""
        call = _current.get()
        if call is None and len(self._calls) == 1:
            call = next(iter(self._calls))
        if call not in self._calls:  # none, or one that has ended: the people of another are not asked in its place
            return types.ErrorData(code=types.INVALID_REQUEST, message=WHICH_CALL)
        try:
            question = self._question(params)
        except Unusable as error:
            logger.warning("MCP server %s asks what cannot be asked: %s", self._server, error)
            return types.ErrorData(code=types.INVALID_PARAMS, message=str(error))
        return types.ElicitResult.model_validate(await self._asked(call, question))

    async def open_pages(self, error: MCPError, ask: Ask | None) -> str:
        """Ask people to open the pages without which the server refuses a call. Returns what the model reads."""
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

    async def _asked(self, call: _Call, question: Elicitation) -> Json:
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
