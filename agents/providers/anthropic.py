"""Anthropic's models, through its SDK."""

from __future__ import annotations

from typing import cast

from anthropic import AnthropicError, AsyncAnthropic, DefaultAioHttpClient

from agents.providers.anthropic_request import LONGEST_NAME, to_request
from agents.providers.anthropic_stream import AnthropicReader, StreamState
from agents.providers.base import Request
from agents.providers.conversation import names_by_safe_name
from agents.providers.sdk import Opening, SdkProvider
from agents.providers.transport import client_options

MOST_LISTED = 1_000


class AnthropicProvider(SdkProvider[AsyncAnthropic]):
    """The Messages API of Anthropic, or of a server that speaks it."""

    default_url = "https://api.anthropic.com"
    form = "anthropic"
    sdk_error = AnthropicError

    def _make_client(self) -> AsyncAnthropic:
        options = client_options(self.connect_timeout)
        return AsyncAnthropic(
            api_key=self.endpoint.key or "none",
            base_url=self.endpoint.url,
            max_retries=self.max_retries,
            timeout=options["timeout"],
            http_client=DefaultAioHttpClient(**options),
        )

    def _open(self, request: Request) -> Opening:
        body = to_request(request, self.name)
        # As extra_body nothing is walked and checked that the SDK would send as it is, and nothing is missing that
        # its parameters no longer know but servers do (temperature).
        opening = self.client.messages.with_streaming_response.create(
            model=body.pop("model"), max_tokens=body.pop("max_tokens"), messages=[], stream=True, extra_body=body
        )
        return cast(Opening, opening)

    def _reader(self, request: Request) -> AnthropicReader:
        names = names_by_safe_name((tool.name for tool in request.tools), LONGEST_NAME)
        return AnthropicReader(StreamState(self.name, names))

    async def _list_models(self) -> list[str]:
        return [model.id async for model in self.client.models.list(limit=MOST_LISTED)]
