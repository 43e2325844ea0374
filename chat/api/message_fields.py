"""Fields that schemas of messages, steps and tool calls share, each with its type and description."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

# Null if the value is unknown.
InputTokens = Annotated[int | None, Field(description="The number of tokens of the request, including cached tokens.")]
OutputTokens = Annotated[
    int | None, Field(description="The number of tokens that the model has generated, including reasoning.")
]
TotalTokens = Annotated[int | None, Field(description="The sum of `input_tokens` and `output_tokens`.")]
CacheReadTokens = Annotated[
    int | None, Field(description="The number of input tokens that the provider read from its cache.")
]
CacheWriteTokens = Annotated[
    int | None, Field(description="The number of input tokens that the provider wrote to its cache.")
]
FirstTokenLatency = Annotated[
    int | None, Field(description="The time from the request to the first token, in milliseconds.")
]

CallId = Annotated[str, Field(description="The id that the model gave to the call.")]
ToolName = Annotated[str, Field(description="The name of the tool.")]
CallArguments = Annotated[Any, Field(description="The arguments of the call, usually an object.")]

AnsweredBy = Annotated[str, Field(description="The name of the user who answered. Empty if there is no answer.")]
AnsweredById = Annotated[
    int | None,
    Field(description="The id of the user who answered. Null if there is no answer, or if the account was deleted."),
]
AnsweredAt = Annotated[datetime | None, Field(description="The time of the answer. Null if there is no answer.")]

Sequence = Annotated[
    int | None, Field(description="The place of the message in the session, from 1. Null while it is queued.")
]
BeganAt = Annotated[datetime, Field(description="The time at which the message began.")]
ScheduleId = Annotated[str, Field(description="The id of the schedule that sent the message. Empty if there is none.")]
MentionStart = Annotated[int, Field(description="The index of the `@` in the text, in Unicode code points.")]
MentionLength = Annotated[int, Field(description="The number of Unicode code points, including the `@`.")]
