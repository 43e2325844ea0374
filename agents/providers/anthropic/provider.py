"""Anthropic's models, through its SDK."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

from anthropic import AnthropicError, APIStatusError, AsyncAnthropic, DefaultAioHttpClient

from agents.messages import Json
from agents.providers.anthropic.listing import listed_model
from agents.providers.anthropic.request import MAX_NAME_LENGTH, to_request
from agents.providers.anthropic.stream import AnthropicReader, StreamState
from agents.providers.base import ListedModel, Request
from agents.providers.conversation import names_by_safe_name
from agents.providers.dialect import REFUSED_THINKING, Dialect, Refusal, omit_refused_parameter
from agents.providers.http.client import Opening, SdkProvider
from agents.providers.http.transport import client_options

MAX_LISTED = 1_000
# Parameters that are never left out, because the request would have another meaning without them.
NEEDED = frozenset({"model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking.type"})
NO_BUDGETS = re.compile(r"thinking\.type\.enabled.{0,5} is not supported|budget_tokens.{0,40}not supported")
NO_ADAPTIVE = re.compile(r"(?i)adaptive.{0,40}not supported|not support adaptive")


class AnthropicProvider(SdkProvider[AsyncAnthropic]):
    """The Messages API of Anthropic, or of a compatible server."""

    default_url = "https://api.anthropic.com"
    form = "anthropic"
    sdk_error = AnthropicError
    refusal_error = APIStatusError
    refused_reasoning = re.compile(REFUSED_THINKING)

    def _make_client(self) -> AsyncAnthropic:
        options = client_options(self.connect_timeout)
        return AsyncAnthropic(
            api_key=self.endpoint.key or "none",
            base_url=self.endpoint.url,
            max_retries=self.max_retries,
            timeout=options["timeout"],
            http_client=DefaultAioHttpClient(**options),
        )

    def _body(self, request: Request, dialect: Dialect) -> Json:
        return to_request(request, self.name, dialect)

    def _call(self, dialect: Dialect) -> Callable[..., Opening]:
        return cast(Callable[..., Opening], self.client.messages.with_streaming_response.create)

    def _open(self, body: Json, dialect: Dialect) -> Opening:
        # The SDK sends extra_body unchanged. This saves the time of its checks, and allows parameters that servers
        # accept although the SDK no longer has them (temperature).
        rest = {name: value for name, value in body.items() if name not in {"model", "max_tokens"}}
        return self._call(dialect)(
            model=body["model"], max_tokens=body["max_tokens"], messages=[], stream=True, extra_body=rest
        )

    def _other_dialects(self, dialect: Dialect, refusal: Refusal, body: Json) -> Iterator[Dialect]:
        return other_dialects(dialect, refusal, body)

    def _reader(self, request: Request, dialect: Dialect) -> AnthropicReader:
        names = names_by_safe_name((tool.name for tool in request.tools), MAX_NAME_LENGTH)
        return AnthropicReader(StreamState(self.name, names))

    async def _list_models(self) -> dict[str, ListedModel]:
        return {model.id: listed_model(model) async for model in self.client.models.list(limit=MAX_LISTED)}


def other_dialects(dialect: Dialect, refusal: Refusal, body: Json) -> Iterator[Dialect]:
    """Yield the dialects to try after a refusal, the most promising first."""
    if refusal.status == 500:
        return
    if "thinking" in body and refusal.status != 404:
        if NO_BUDGETS.search(refusal.message):
            yield replace(dialect, budgets=False)
        if NO_ADAPTIVE.search(refusal.message):
            yield replace(dialect, omitted=dialect.omitted | {"thinking"})
    yield omit_refused_parameter(dialect, refusal, body, NEEDED)
