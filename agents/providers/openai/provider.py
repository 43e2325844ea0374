"""OpenAI's models, and those of compatible servers with one of its two APIs, through OpenAI's SDK."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeGuard, cast

from openai import APIStatusError, AsyncOpenAI, DefaultAioHttpClient, OpenAIError
from openai.types import Model

from agents.messages import Json, Part, Thinking, ToolCall
from agents.providers.base import ListedModel, Request
from agents.providers.conversation import names_by_safe_name
from agents.providers.dialect import NOT_TAKEN, REFUSED_THINKING, Dialect, Refusal, omit_refused_parameter
from agents.providers.http.client import Opening, SdkProvider
from agents.providers.http.decoding import Reader
from agents.providers.http.transport import client_options
from agents.providers.openai import request as openai_request
from agents.providers.openai import responses_request
from agents.providers.openai.calls import maker_of
from agents.providers.openai.responses_stream import ResponsesReader
from agents.providers.openai.responses_stream import StreamState as ResponsesState
from agents.providers.openai.stream import OpenAIReader
from agents.providers.openai.stream import StreamState as ChatState

OFFICIAL = re.compile(r"https://([^/]+\.)?openai(\.azure)?\.com(:\d+)?(/|$)")
MAX_NAME_LENGTH = 64
# The fields in which lists of models state the context window: those of vLLM and SGLang, and of OpenRouter.
WINDOW_FIELDS = ("max_model_len", "context_length")
LIMIT_FIELDS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# Parameters that are never left out of a request.
NEEDED = frozenset(
    {"model", "messages", "input", "instructions", "stream", "tools", "tool_choice"}
    | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
)
TOOLS_OR_REASONING = re.compile(r"(?i)\btools?\b.{0,80}\breasoning|\breasoning.{0,80}\btools?\b")
LONG_CALL_ID = re.compile(r"(tool_calls\[\d+\]\.id|tool_call_id)\W{0,3}string too long")
FOREIGN_CALL_ID = re.compile(r"(?is)tool call id.{0,400}length of 9\b")
REFUSED_ORDER = re.compile(
    r"(?i)unexpected role '\w+' after role|system message must be at the beginning|roles must alternate"
)
# Some templates without system messages report only that the order of the roles is wrong.
REFUSED_SYSTEM = re.compile(r"(?i)system role not supported|not support the system role|roles must alternate")
MISSING_REASONING = re.compile(r"(?is)reasoning_content.{0,60}(must be passed back|is missing)")
# OpenRouter quotes Anthropic and Gemini, whose models have signed the reasoning.
REFUSED_REASONING = re.compile(
    rf"{REFUSED_THINKING}|required 'reasoning' item|of type 'reasoning' was provided"
    r"|encrypted content.{0,400}could not be|invalid_encrypted_content|item with id 'rs_"
    r"|(corrupted|invalid) thought.signature|thought.signature is not valid"
)


class OpenAIProvider(SdkProvider[AsyncOpenAI]):
    """A provider for OpenAI's Responses API or for Chat Completions, which other servers offer, too.

    It learns which parameters the server refuses. If `api` is None, it uses Chat Completions for a server with a base
    URL, otherwise Responses.
    """

    default_url = "https://api.openai.com/v1"
    form = "openai"
    sdk_error = OpenAIError
    refusal_error = APIStatusError
    refused_reasoning = REFUSED_REASONING

    def __init__(
        self,
        name: str,
        api_key: str,
        base_url: str | None = None,
        *,
        api: Literal["responses", "chat"] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, api_key, base_url, **options)
        responses = (api or ("chat" if base_url else "responses")) == "responses"
        self.dialect = Dialect(responses=responses)
        if OFFICIAL.match(self.endpoint.url):
            self.dialect = replace(self.dialect, limit_field="max_completion_tokens", call_ids="short")

    def _make_client(self) -> AsyncOpenAI:
        options = client_options(self.connect_timeout)
        return AsyncOpenAI(
            api_key=self.endpoint.key or "none",
            base_url=self.endpoint.url,
            max_retries=self.max_retries,
            timeout=options["timeout"],
            http_client=DefaultAioHttpClient(**options),
        )

    def _body(self, request: Request, dialect: Dialect) -> Json:
        to_request = responses_request.to_request if dialect.responses else openai_request.to_request
        return to_request(request, self.name, dialect)

    def _call(self, dialect: Dialect) -> Callable[..., Opening]:
        calls = self.client.responses if dialect.responses else self.client.chat.completions
        return cast(Callable[..., Opening], calls.with_streaming_response.create)

    def _open(self, body: Json, dialect: Dialect) -> Opening:
        # The SDK sends extra_body unchanged and without checks, which would take 1 ms per 30 messages.
        rest = {name: value for name, value in body.items() if name != "model"}
        needed: Json = {} if dialect.responses else {"messages": []}
        return self._call(dialect)(model=body["model"], **needed, stream=True, extra_body=rest)

    def _other_dialects(self, dialect: Dialect, refusal: Refusal, body: Json) -> Iterator[Dialect]:
        return other_dialects(dialect, refusal, body)

    def _reader(self, request: Request, dialect: Dialect) -> Reader:
        names = names_by_safe_name((tool.name for tool in request.tools), MAX_NAME_LENGTH)
        if dialect.responses:
            return ResponsesReader(ResponsesState(self.name, names))
        return OpenAIReader(ChatState(self.name, request.model, names))

    def _is_own(self, part: Part, request: Request) -> TypeGuard[Thinking | ToolCall]:
        is_call = isinstance(part, ToolCall) and part.data.get("maker") == maker_of(self.name, request.model)
        return is_call or super()._is_own(part, request)

    async def _list_models(self) -> dict[str, ListedModel]:
        return {model.id: ListedModel(_stated_window(model)) async for model in self.client.models.list()}


def _stated_window(model: Model) -> int | None:
    stated = (getattr(model, name, None) for name in WINDOW_FIELDS)
    return next((window for window in stated if type(window) is int and window > 0), None)


def other_dialects(dialect: Dialect, refusal: Refusal, body: Json) -> Iterator[Dialect]:
    """Yield the dialects to try after a refusal, the most promising first."""
    message = refusal.message
    if not dialect.responses and REFUSED_ORDER.search(message):
        yield replace(dialect, strict_order=True)
    if not dialect.responses and REFUSED_SYSTEM.search(message):
        yield replace(dialect, strict_order=True, system_role=False)
    if refusal.status == 500:
        return
    if refusal.status in {404, 405}:
        if dialect.responses and "model" not in f"{message} {refusal.code}".lower():
            yield replace(dialect, responses=False)
        return
    if dialect.responses:
        if "Encrypted content is not supported" in message:
            yield replace(dialect, omitted=dialect.omitted | {"include"})
    elif MISSING_REASONING.search(message):
        yield replace(dialect, all_reasoning=True)
    elif "tools" in body and TOOLS_OR_REASONING.search(message):
        if "/responses" in message:
            yield replace(dialect, responses=True)
        yield replace(dialect, reasoning_with_tools=False)
    elif dialect.limit_field in body and "max_completion_tokens" in message and NOT_TAKEN.search(message):
        yield replace(dialect, limit_field=LIMIT_FIELDS[dialect.limit_field])
    elif LONG_CALL_ID.search(message):
        yield replace(dialect, call_ids="short")
    elif FOREIGN_CALL_ID.search(message):
        yield replace(dialect, call_ids="nine")
    elif "thought_signature" in message:
        yield replace(dialect, signed_calls=True)
    if "include_usage" in message:
        yield replace(dialect, omitted=dialect.omitted | {"stream_options"})
    if "reasoning_effort" in body and "not support thinking" in message:
        yield replace(dialect, omitted=dialect.omitted | {"reasoning_effort"})
    yield omit_refused_parameter(dialect, refusal, body, NEEDED)
