"""The schemas of queries and responses about requests to models, their estimated tokens, and token usage."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ninja import Schema
from pydantic import Field

from agents.messages import Json
from agents.providers.forms import Form
from chat.api.message_schemas import MoneyOut

FORM = (
    "The request format: `openai` for OpenAI's Chat Completions, `responses` for OpenAI's Responses, or `anthropic` "
    "for Anthropic's Messages. If null, it is the format of the session's provider."
)
MAX_REQUESTS = 100


class AgentQuery(Schema):
    agent: str = Field(
        "",
        max_length=200,
        description="The `name` of one of the session's agents. If it is empty, it is the session's own agent.",
    )


class ContextQuery(AgentQuery):
    form: Form | None = Field(None, description=FORM)
    file_data: bool = Field(
        False,
        description="Include the content of files, which can be several megabytes. Otherwise, `attachment:<id>` "
        "replaces it.",
    )


class ContextFile(Schema):
    """A file of a message, and how it is sent to the model."""

    id: str = Field(description="The id of the file.")
    name: str = Field(description="The name of the file.")
    message_id: str = Field(description="The id of the message to which the file is attached.")
    sent_as: Literal["image", "pdf", "text", "name"] = Field(
        description="How the file is sent: the file itself (`image`, `pdf`), its `text`, or only its `name`."
    )
    label: str = Field(
        description="The line that the model gets about the file. If only the name is sent, it contains the reason."
    )


class ContextOut(Schema):
    """The parts of a request body: `model`, `messages`, `tools`, `parameters`, and `system` if it is not null.

    In the format `responses`, `messages` is the field `input` of the body, and `system` is `instructions`.
    """

    form: Form = Field(description="The request format.")
    provider: str = Field(description="The name of the provider.")
    model: str = Field(description="The name of the model.")
    system: str | None = Field(
        description="The system prompt. Null if it is empty, or if the format has it among the messages."
    )
    messages: list[Json] = Field(description="The messages in the request format.")
    tools: list[Json] = Field(description="The tools in the request format.")
    parameters: Json = Field(description="The other fields of the request body, such as the output limit.")
    files: list[ContextFile] = Field(description="The files of the messages.")
    problem: str | None = Field(
        description="The reason why no request can be sent now, such as a model that is not configured. Null if there "
        "is none."
    )


class ContextPart(Schema):
    """A part of a request that comes from one message of the session."""

    message_id: str = Field(description="The id of the message of the session.")
    tokens: int = Field(description="The estimated number of tokens.")
    is_result: bool = Field(
        description="Whether the part is the result of a tool call. The call itself is another part."
    )
    reason: Literal["left_out", "error", "led_nowhere", "not_given_back", "empty", "prompt", "at_work"] | None = Field(
        description="The reason why the model does not get the message. `left_out`: a user excluded it. `error`: it "
        "is an error. `led_nowhere`: it is reasoning without a text or a call. `not_given_back`: it is reasoning that "
        "is not sent, such as another model's. `empty`: it is empty. `prompt`: it is the system prompt. `at_work`: it "
        "is unfinished. Null if the model gets it."
    )


class EstimatedMessage(Schema):
    """A message of the request, or a message of the session that is not in the request."""

    role: Literal["user", "assistant", "system"] | None = Field(
        description="The role in the request. Null if the message is not in the request."
    )
    tokens: int = Field(description="The estimated number of tokens.")
    parts: list[ContextPart] = Field(description="The parts of the message, each from one message of the session.")


class ContextEstimate(Schema):
    """The estimated tokens of the next request."""

    tokens: int = Field(description="The estimated number of tokens of the whole request.")
    context_window: int | None = Field(
        description="The maximum number of tokens of a request to the model. Null if unknown."
    )
    percent: float | None = Field(
        description="`tokens` as a percentage of `context_window`, with one decimal place. Null if unknown."
    )
    calibrated: bool = Field(
        description="Whether the estimate was corrected by the number of tokens that the provider reported for an "
        "earlier request."
    )
    system_tokens: int = Field(description="The estimated number of tokens of the system prompt.")
    tools_tokens: int = Field(description="The estimated number of tokens of the tool definitions.")
    messages: list[EstimatedMessage] = Field(description="The messages of the session in order.")
    problem: str | None = Field(description="The reason why no request can be sent now. Null if there is none.")


class RequestsQuery(Schema):
    before: str | None = Field(
        None,
        max_length=32,
        pattern=r"^[A-Za-z0-9_]+$",
        description="The `next` of the previous page. Leave it out for the first page.",
    )
    limit: int = Field(50, ge=1, le=MAX_REQUESTS, description="The maximum number of requests on a page.")


class RequestSummary(Schema):
    """A request that was sent to a model."""

    response_id: str = Field(description="The id of the model's response to the request.")
    created_at: datetime = Field(description="The time of the request.")
    revision: int = Field(description="The revision of the session at the time of the request.")
    agent: str = Field(description="The `name` of the agent.")
    provider: str = Field(description="The name of the provider.")
    model: str = Field(description="The name of the model.")
    tools: list[str] = Field(description="The names of the tools that were offered to the model.")


class RequestPage(Schema):
    """A page of requests."""

    requests: list[RequestSummary] = Field(description="The requests, newest first.")
    next: str | None = Field(description="The `before` of the next page. Null on the last page.")


class SentRequest(RequestSummary):
    """A request that was sent to a model, rebuilt from the history of the session."""

    form: Form = Field(description="The request format.")
    system: str | None = Field(
        description="The system prompt. Null if it is empty, or if the format has it among the messages."
    )
    messages: list[Json] = Field(description="The messages in the request format.")
    tool_definitions: list[Json] = Field(description="The tools in the request format.")
    files: list[ContextFile] = Field(description="The files of the messages.")
    hidden: int = Field(
        description="The number of messages that are left out because they were removed since. Only editors can read "
        "such messages."
    )
    lost: int = Field(description="The number of messages of the request that no longer exist.")


class ModelUsage(Schema):
    """The tokens that one model has used."""

    provider: str = Field(description="The name of the provider.")
    model: str = Field(description="The name of the model.")
    input_tokens: int = Field(description="The number of input tokens, including cached tokens.")
    output_tokens: int = Field(description="The number of output tokens.")
    cache_read_tokens: int = Field(description="The number of input tokens that the provider read from its cache.")
    cache_write_tokens: int = Field(description="The number of input tokens that the provider wrote to its cache.")
    cost: MoneyOut | None = Field(
        description="The cost by the configured price of the model. Null if no price is configured."
    )


class UsageOut(Schema):
    """The token usage of a session. It includes the tokens of removed messages."""

    models: list[ModelUsage] = Field(description="The usage by model.")
    costs: list[MoneyOut] = Field(
        description="The costs, with one amount for each currency. Empty if the price of one of the models is not "
        "configured."
    )
    input_tokens: int = Field(description="The number of input tokens, including cached tokens.")
    output_tokens: int = Field(description="The number of output tokens.")
    turns: int = Field(description="The number of turns that have ended.")
    longest_seconds: float | None = Field(description="The duration of the longest turn in seconds. Null if unknown.")
    first_token_ms: int | None = Field(
        description="The average time from a request to the first token, in milliseconds. Null if unknown."
    )
