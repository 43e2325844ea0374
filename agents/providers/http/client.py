"""The common part of providers that use a vendor's SDK: from a request to events or to a ProviderError."""

from __future__ import annotations

import abc
import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Generic, Protocol, TypeGuard, TypeVar

import aiohttp
import httpx2

from agents.errors import CallBroken, ProviderError
from agents.events import ProviderEvent
from agents.messages import Json, Message, Part, Thinking, ToolCall
from agents.providers.base import DEFAULT_RETRIES, ListedModel, Request
from agents.providers.dialect import USUAL, Dialect, Refusal, difference
from agents.providers.http.decoding import (
    DocumentDecoder,
    Reader,
    StreamDecoder,
    StreamedFailureError,
    TruncatedError,
    UnreadableError,
)
from agents.providers.http.errors import Endpoint, read_error_body
from agents.providers.http.read_pacing import connection_of, merge_deltas, pause, read_pacer
from agents.providers.http.transport import ReadTimeout, body_of, is_long_wait
from agents.providers.learned import Learned, Store, key_of

logger = logging.getLogger(__name__)

# The number of pieces (up to 16 KB each) of a fast answer that are handled before other tasks may run.
BURST = 4
# The seconds to wait for the usage after an answer's end, and for the end of the body, which frees the connection.
LATE_USAGE = 5.0
LATE_END = 1.0
LISTING = 20.0

# Statuses with which servers refuse a parameter or the form of a request. With 500, some refuse messages that do not
# suit the chat template of the model.
REFUSALS = frozenset({400, 404, 405, 422, 500})
# The most pieces of refused reasoning that are remembered, so that they are not sent again.
MAX_REFUSED = 10_000

WIRE_ERRORS = (StreamedFailureError, UnreadableError, TruncatedError, httpx2.HTTPError, aiohttp.ClientError, OSError)


class SdkClient(Protocol):
    """The common methods of both vendors' clients."""

    async def close(self) -> None: ...


class SdkResponse(Protocol):
    """The common attributes of the responses of both vendors' `with_streaming_response`."""

    @property
    def http_response(self) -> httpx2.Response: ...


Client = TypeVar("Client", bound=SdkClient)
Opening = AbstractAsyncContextManager[SdkResponse]
Decoder = StreamDecoder | DocumentDecoder


class SdkProvider(abc.ABC, Generic[Client]):
    """A Provider that uses an SDK. Its client is made by prepare() or at the first use, and is closed by close().

    `first_timeout` limits the seconds until the answer's first bytes, `timeout` the seconds between two pieces of it.
    `max_retries` is for the SDK's own retries of failures before the answer begins (see ProviderError.sdk_retried).
    `key_hint` is the name of the environment variable with the key, for error messages.
    """

    default_url: str
    sdk_error: type[Exception]
    # The SDK's error for a status other than 2xx, and a pattern for messages in which servers refuse reasoning.
    refusal_error: type[Exception]
    refused_reasoning: re.Pattern[str]
    # The dialect for models of which nothing has been learned.
    dialect: Dialect = USUAL
    form: str
    # The place for learned dialects; None keeps them in memory only.
    store: Store | None = None

    def __init__(
        self,
        name: str,
        api_key: str,
        base_url: str | None = None,
        *,
        key_hint: str = "",
        timeout: float = 120.0,
        first_timeout: float = 120.0,
        connect_timeout: float = 10.0,
        max_retries: int = DEFAULT_RETRIES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.endpoint = Endpoint(name, base_url or self.default_url, api_key, key_hint)
        self.timeout = timeout
        self.first_timeout = first_timeout
        self.connect_timeout = connect_timeout
        self.max_retries = max_retries
        self._client: Client | None = None
        self._making = threading.Lock()
        self._learned: dict[str, Learned] = {}
        self._clock = clock
        self._refused: dict[int, None] = {}

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def client(self) -> Client:
        with self._making:  # prepare() runs in a thread, while turns may have resumed on the event loop
            if self._client is None:
                self._client = self._make_client()
            return self._client

    def prepare(self) -> None:
        """Read the trusted certificates and import the SDK's call. On the event loop, this would block it for 50 ms."""
        # If the address is invalid or the certificates cannot be read, the first request reports it.
        with suppress(ValueError, httpx2.InvalidURL, OSError):
            self._call(self.dialect)

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """Ask the model and yield the events of its answer. Raise ProviderError.

        To close the connection early, cancel the task or close this generator (contextlib.aclosing).
        """
        read_timeout = ReadTimeout(self.endpoint.timed_out)
        try:
            async with self._answer(request, read_timeout) as (decoder, answer):
                async for chunk in answer:
                    has_events = False
                    for event in merge_deltas(decoder.feed(chunk)):
                        yield event
                        has_events = True
                    if has_events:
                        await answer.pause()
                for event in decoder.finish():
                    yield event
                await answer.drain()
        except (self.sdk_error, *WIRE_ERRORS) as error:
            explained = self._explain(error, request.model)
            explained.sdk_retried = self._must_not_retry(error, explained)
            raise explained from error
        finally:
            read_timeout.close()

    async def list_models(self) -> Mapping[str, ListedModel]:
        """Return the models that the endpoint lists, and what it states about them. Raise ProviderError."""
        read_timeout = ReadTimeout(self.endpoint.timed_out)
        try:
            return await read_timeout.wait_for(self._list_models(), LISTING)
        except (self.sdk_error, *WIRE_ERRORS) as error:
            raise self._explain(error, "") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise self.endpoint.broken("its list of models cannot be read") from error
        finally:
            read_timeout.close()

    def dialect_for(self, model: str) -> Dialect:
        """Return the dialect of the model: the learned one if it is not too old, otherwise the usual one."""
        learned = self._learned.get(model)
        is_valid = learned is not None and learned.is_valid(self._clock(), self.dialect)
        return learned.dialect if learned is not None and is_valid else self.dialect

    @property
    def endpoint_key(self) -> str:
        return key_of(self.form, self.endpoint.url)

    def recall(self, kept: Mapping[str, tuple[Json, float]]) -> None:
        """Take over stored dialects of models, unless this process has a newer one."""
        for model, (values, at) in kept.items():
            found, own = Learned.of(values, at, self.dialect), self._learned.get(model)
            if found is not None and (own is None or own.at < at):
                self._learned[model] = found

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        with self._making:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    @abc.abstractmethod
    def _make_client(self) -> Client:
        """Make the SDK's client."""

    @abc.abstractmethod
    def _body(self, request: Request, dialect: Dialect) -> Json:
        """Return the body of the request in the vendor's form."""

    @abc.abstractmethod
    def _call(self, dialect: Dialect) -> Callable[..., Opening]:
        """Return the SDK's method that sends a request to a model."""

    @abc.abstractmethod
    def _open(self, body: Json, dialect: Dialect) -> Opening:
        """Return a context that sends the request when it is entered."""

    @abc.abstractmethod
    def _other_dialects(self, dialect: Dialect, refusal: Refusal, body: Json) -> Iterable[Dialect]:
        """Return the dialects to try after a refusal, the most promising first."""

    @abc.abstractmethod
    def _reader(self, request: Request, dialect: Dialect) -> Reader:
        """Return a reader for the answer."""

    async def _send(self, request: Request) -> tuple[httpx2.Response, Dialect]:
        """Send the request. Return the response after its head has arrived, and the dialect used.

        The caller closes the response. If the server refuses a parameter or the form, other dialects are tried, each
        once. The one that works is stored for this model.
        """
        dialect = self.dialect_for(request.model)
        request = self.without_refused_reasoning(request)
        tried = [dialect]
        while True:
            try:
                body = self._body(request, dialect)
                response = (await self._open(body, dialect).__aenter__()).http_response
            except (ValueError, httpx2.InvalidURL) as error:
                raise self.endpoint.unsendable(error) from error
            except self.refusal_error as error:
                refusal = Refusal.of(getattr(error, "status_code", 0), getattr(error, "body", None), str(error))
                if self._refuses_reasoning(refusal, request):
                    request = self.without_refused_reasoning(request)
                    continue
                others = self._other_dialects(dialect, refusal, body) if refusal.status in REFUSALS else ()
                dialect = next((other for other in others if other not in tried), dialect)
                if dialect in tried:
                    raise
                tried.append(dialect)
            else:
                try:
                    await self._learn(request.model, tried[0], dialect)
                except BaseException:  # the task was cancelled: nothing else would close the response
                    await response.aclose()
                    raise
                return response, dialect

    async def _learn(self, model: str, before: Dialect, after: Dialect) -> None:
        if after == before:
            return
        message = "%s refused a parameter; later requests to %s are sent %s"
        logger.warning(message, self.name, model, difference(before, after))
        self._learned[model] = learned = Learned(after, self._clock())
        if self.store is not None:
            await self.store.keep(self.endpoint_key, model, learned.to_json(self.dialect))

    def _refuses_reasoning(self, refusal: Refusal, request: Request) -> bool:
        """Return whether the server refuses reasoning of the request, so that it can be sent without. Remember which.

        Anthropic refuses reasoning if the conversation before it was changed, OpenAI if another account made it.
        """
        if refusal.status not in REFUSALS or not self.refused_reasoning.search(f"{refusal.message} {refusal.code}"):
            return False
        made = [_key(part) for message in request.messages for part in message.parts if self._is_own(part, request)]
        self._refused.update(dict.fromkeys(made))
        while len(self._refused) > MAX_REFUSED:
            del self._refused[next(iter(self._refused))]
        if made:
            logger.info("%s refuses the reasoning of %s; requests leave it out from now on", self.name, request.model)
        return bool(made)

    def without_refused_reasoning(self, request: Request) -> Request:
        """Return the request without the reasoning that the endpoint has refused."""
        if not self._refused:
            return request
        messages = tuple(
            Message(message.role, tuple(part for one in message.parts for part in self._allowed(one, request)))
            for message in request.messages
        )
        return replace(request, messages=messages)

    def _allowed(self, part: Part, request: Request) -> Iterator[Part]:
        """Yield the part, unless it is refused reasoning. A call stays, without the reasoning that belongs to it."""
        if not (self._is_own(part, request) and _key(part) in self._refused):
            yield part
        elif isinstance(part, ToolCall):
            yield replace(part, data={})

    def _is_own(self, part: Part, request: Request) -> TypeGuard[Thinking | ToolCall]:
        """Return whether a part has reasoning that this endpoint has made with the model of the request."""
        return isinstance(part, Thinking) and bool(part.data) and part.is_of(self.name, request.model)

    @abc.abstractmethod
    async def _list_models(self) -> Mapping[str, ListedModel]:
        """Return the models from the SDK."""

    @asynccontextmanager
    async def _answer(
        self, request: Request, read_timeout: ReadTimeout
    ) -> AsyncGenerator[tuple[Decoder, Answer], None]:
        response, dialect = await read_timeout.wait_for(self._send(request), self.first_timeout)
        reader = self._reader(request, dialect)
        try:
            async with aclosing(body_of(response)) as chunks:
                is_document = "json" in response.headers.get("content-type", "")
                decoder = DocumentDecoder(reader) if is_document else StreamDecoder(reader)
                answer = Answer(chunks, reader, read_timeout, self.first_timeout, self.timeout, connection_of(response))
                with read_pacer.stream():
                    yield decoder, answer
        finally:
            await response.aclose()

    def _explain(self, error: Exception, model: str) -> ProviderError:
        """Return the ProviderError that explains an error of the SDK, the network or the format to users."""
        if isinstance(error, StreamedFailureError):
            return self.endpoint.refused(read_error_body(error.body), model)
        if isinstance(error, UnreadableError):
            return self.endpoint.broken(str(error))
        if not isinstance(error, self.sdk_error):
            return self.endpoint.cut()
        response = getattr(error, "response", None)
        if response is None:
            return self.endpoint.unreachable(error)
        body = read_error_body(getattr(error, "body", None))
        return self.endpoint.refused(body, model, response.status_code, response.headers)

    def _must_not_retry(self, error: Exception, explained: ProviderError) -> bool:
        """Return whether the loop must not repeat the request, because the SDK did or because retries are off.

        The SDK repeats requests that fail before the answer begins, unless it would wait so long that users have to
        see the wait. It does not repeat them after a CallBroken.
        """
        if not isinstance(error, self.sdk_error):
            return False
        is_repeated_by_sdk = not (is_long_wait(explained.retry_after) or isinstance(explained, CallBroken))
        return self.max_retries == 0 or is_repeated_by_sdk


def _key(part: Thinking | ToolCall) -> int:
    return hash((part.text if isinstance(part, Thinking) else part.id, frozenset(part.data.items())))


class Answer:
    """The bytes of one answer, in chunks, until the answer is complete. Raises an error if the server is silent."""

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        reader: Reader,
        read_timeout: ReadTimeout,
        first: float,
        between: float,
        connection: asyncio.ReadTransport | None,
    ) -> None:
        self._chunks = chunks
        self._reader = reader
        self._read_timeout = read_timeout
        self._limit = first
        self._between = between
        self._connection = connection
        self._pieces = 0

    def __aiter__(self) -> Answer:
        return self

    async def __anext__(self) -> bytes:
        reader = self._reader
        if reader.complete:
            raise StopAsyncIteration
        try:
            chunk = await self._read_timeout.wait_for(anext(self._chunks), LATE_USAGE if reader.ended else self._limit)
        except (httpx2.HTTPError, aiohttp.ClientError, OSError, ProviderError):
            if reader.ended:
                raise StopAsyncIteration from None
            raise
        self._limit = self._between
        return chunk

    async def pause(self) -> None:
        """Pause after each piece of the answer except the last. The more streams are open, the longer the pause."""
        self._pieces += 1
        seconds = read_pacer.pause
        if not self._reader.complete and (seconds or self._pieces % BURST == 0):
            await pause(seconds, self._connection)

    async def drain(self) -> None:
        """Read the end of the body, because the connection can only be used again after that."""
        with suppress(httpx2.HTTPError, aiohttp.ClientError, OSError, ProviderError):
            await self._read_timeout.wait_for(anext(self._chunks, None), LATE_END)
