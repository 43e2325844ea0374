"""OpenAI's models, and those of any server that speaks Chat Completions, through OpenAI's SDK."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import httpx2
from openai import APIStatusError, AsyncOpenAI, DefaultAioHttpClient, OpenAIError

from agents.providers.base import Request
from agents.providers.conversation import names_by_safe_name
from agents.providers.openai_request import LONGEST_NAME, Dialect, to_request
from agents.providers.openai_stream import OpenAIReader, StreamState
from agents.providers.sdk import Opening, SdkProvider
from agents.providers.transport import client_options

OFFICIAL = re.compile(r"https://([^/]+\.)?openai(\.azure)?\.com(:\d+)?(/|$)")
NOT_TAKEN = re.compile(r"(?i)unsupported|not supported|unrecognized|unknown|unexpected|extra|not permitted|not allowed")


class OpenAIProvider(SdkProvider[AsyncOpenAI]):
    """The Chat Completions API of OpenAI, or of a server that speaks it; learns what the server does not take."""

    default_url = "https://api.openai.com/v1"
    form = "openai"
    sdk_error = OpenAIError

    def __init__(self, name: str, api_key: str, base_url: str | None = None, **options: Any) -> None:
        super().__init__(name, api_key, base_url, **options)
        official = OFFICIAL.match(self.endpoint.url)
        self.dialect = Dialect(limit_field="max_completion_tokens" if official else "max_tokens")

    def _make_client(self) -> AsyncOpenAI:
        options = client_options(self.connect_timeout)
        return AsyncOpenAI(
            api_key=self.endpoint.key or "none",
            base_url=self.endpoint.url,
            max_retries=self.max_retries,
            timeout=options["timeout"],
            http_client=DefaultAioHttpClient(**options),
        )

    async def _send(self, request: Request) -> httpx2.Response:
        tried: set[Dialect] = set()
        while True:
            tried.add(dialect := self.dialect)
            try:
                return await super()._send(request)
            except APIStatusError as error:
                other = other_dialect(dialect, str(error)) if error.status_code in {400, 422} else dialect
                if other in tried:
                    raise
                self.dialect = other

    def _open(self, request: Request) -> Opening:
        body = to_request(request, self.name, self.dialect)
        # As extra_body nothing is walked and checked that the SDK would send as it is (1 ms per 30 messages).
        opening = self.client.chat.completions.with_streaming_response.create(
            model=body.pop("model"), messages=[], stream=True, extra_body=body
        )
        return cast(Opening, opening)

    def _reader(self, request: Request) -> OpenAIReader:
        names = names_by_safe_name((tool.name for tool in request.tools), LONGEST_NAME)
        return OpenAIReader(StreamState(self.name, names))

    async def _list_models(self) -> list[str]:
        return [model.id async for model in self.client.models.list()]


def other_dialect(dialect: Dialect, complaint: str) -> Dialect:
    """Guess from a refusal what to say differently; the same dialect where it is about something else."""
    if dialect.stream_usage and ("stream_options" in complaint or "include_usage" in complaint):
        return replace(dialect, stream_usage=False)
    if "max_completion_tokens" in complaint and NOT_TAKEN.search(complaint):
        other = "max_tokens" if dialect.limit_field == "max_completion_tokens" else "max_completion_tokens"
        return replace(dialect, limit_field=other)
    return dialect
