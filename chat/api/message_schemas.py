"""The schemas of messages. They only describe responses: responses are not validated against them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from agents.approval import Approvers
from agents.messages import Json
from agents.questions import Kind
from chat.api import message_fields

EXAMPLE_SESSION_ID = "s_0123456789abcdef01234567"
EXAMPLE_MESSAGE_ID = "m_0123456789abcdef01234567"
EXAMPLE_TURN_ID = "t_0123456789abcdef01234567"

Mode = Literal["chat", "agent", "run"]
MessageType = Literal["text", "reasoning", "tool_group", "error", "turn_start", "turn_done"]
MessageRole = Literal["user", "assistant", "system", ""]
MessageStatus = Literal["queued", "streaming", "pending", "running", "waiting", "complete", "interrupted", "failed"]
MODE = (
    "The mode of the session. `chat`: the agent has no tools. `agent`: the agent has its tools. `run`: a program "
    "started the session and no user is there to answer, so questions and calls that need an approval are refused."
)


class PersonDecisionOut(Schema):
    """One user's decision about a tool call."""

    user_id: int | None = Field(description="The id of the user. Null if the account was deleted.")
    name: str = Field(description="The name of the user.")
    at: datetime = Field(description="The time of the decision.")
    approved: bool = Field(description="Whether the user approved the call. A single refusal ends it.")
    edited: bool = Field(
        description="Whether the user changed the arguments of the call. Earlier approvals then no longer count."
    )
    lapsed: bool = Field(
        False,
        description="Whether the approval no longer counts, because the user was no longer allowed to give it when "
        "the next user decided.",
    )


class ApprovalOut(Schema):
    """The approvals that a tool call needs, and the decisions made so far."""

    needed: int = Field(description="The number of different users who must approve the call.")
    approvers: Approvers = Field(
        description="The lowest role in the workspace whose approvals count. Empty: all users who can answer count."
    )
    decisions: list[PersonDecisionOut] = Field(description="The decisions so far, oldest first.")
    agreed: list[int] = Field([], description="The ids of the users who have approved the current arguments.")


class MoneyOut(Schema):
    """An amount of money."""

    amount: str = Field(examples=["0.0042"], description="The amount as a decimal number.")
    currency: str = Field(examples=["USD"], description="The ISO 4217 code of the currency.")


class SubsessionOut(Schema):
    """The session in which another agent works on the task of a tool call."""

    id: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the other agent's session.")
    agent: str = Field(description="The `name` of the other agent.")
    title: str = Field(description="The display name of the other agent.")
    tokens: int | None = Field(
        description="The number of tokens that the session and the sessions below it have used. Null while the agent "
        "works."
    )
    costs: list[MoneyOut] = Field(
        description="The costs, with one amount for each currency. Empty while the agent works, or if the price of a "
        "model is not configured."
    )
    waits: Literal["", "approval", "answer"] = Field(
        "",
        description="What the other agent waits for from users: an `approval` or an `answer`. Empty if it does not "
        "wait.",
    )
    agreed: list[int] = Field(
        [],
        description="The ids of the users who have approved all waiting calls of the other agent, so that it waits for "
        "other users.",
    )


class ToolFileOut(Schema):
    """A file that a tool has returned."""

    path: str = Field(
        description="The path of the file in the session's folder. Read the file with `getWorkspaceFile`."
    )
    media_type: str = Field(description="The media type of the file, as the tool reported it.")
    size: int = Field(description="The size in bytes.")


class AskedOut(Schema):
    """A question of an MCP server to the users of the session, and its answer."""

    question: dict[str, Any] = Field(
        description="The question: the `server`, its `message`, and either the `fields` of a form or the `url` of a "
        "page to open."
    )
    asked_at: datetime | None = Field(None, description="The time of the question.")
    answer: dict[str, Any] | None = Field(
        None, description="The answer: its `action`, and the `content` of a form. Null if there is no answer."
    )
    answered_by: message_fields.AnsweredBy = ""
    answered_by_id: message_fields.AnsweredById = None
    answered_at: message_fields.AnsweredAt = None
    withdrawn: str = Field(
        "",
        description="Why no user can answer any more: `expired`, `withdrawn`, `leaving` or `skipped`. Empty if the "
        "question is open or answered.",
    )


class MessageTool(Schema):
    """A tool call and its result."""

    call_id: message_fields.CallId
    name: message_fields.ToolName
    arguments: message_fields.CallArguments
    result: str = Field(
        description="The result as text. While the tool is running, it can contain the last part of its output so far."
    )
    is_error: bool = Field(description="Whether the call has failed.")
    ended_at: datetime | None = Field(description="The time at which the call ended. Null if it has not ended.")
    question: Literal["", Kind] = Field(
        "",
        description="The kind of question that the call asks users. Users can answer while the `status` of the "
        "message is `waiting`. Empty if the call asks no question.",
    )
    answer: Any = Field(
        None,
        description="The answer of the user, in the form that `answerMessage` describes. Null if there is no answer.",
    )
    answered_by: message_fields.AnsweredBy = ""
    answered_by_id: message_fields.AnsweredById = None
    answered_at: message_fields.AnsweredAt = None
    approval: ApprovalOut | None = Field(
        None,
        description="The required approvals and the decisions so far. Null unless one user alone cannot approve the "
        "call.",
    )
    origin: str = Field(
        "",
        description="The source of foreign text in `result`, such as the name of a host, or the reason why a waiting "
        "call needs an approval. Empty if there is none.",
    )
    subsession: SubsessionOut | None = Field(
        None,
        description="The session in which another agent works on the call. Null unless the call gives a task to "
        "another agent.",
    )
    files: list[ToolFileOut] = Field(
        [], description="The files that the tool has returned. They are in the session's folder."
    )
    asked: list[AskedOut] = Field(
        [],
        description="The questions that an MCP server has asked users during the call. While `question` is "
        "`elicitation`, the last one waits for an answer.",
    )


class TokenUsage(Schema):
    """The tokens and the latency of one response of the model. Only the last message of a response has them. A field is
    null if its value is unknown.
    """

    input_tokens: message_fields.InputTokens
    output_tokens: message_fields.OutputTokens
    total_tokens: message_fields.TotalTokens
    cache_read_tokens: message_fields.CacheReadTokens
    cache_write_tokens: message_fields.CacheWriteTokens
    first_token_latency_ms: message_fields.FirstTokenLatency
    reasoning_tokens: int | None = Field(description="The number of `output_tokens` that the model used for reasoning.")


class TurnError(Schema):
    """The reason why a turn failed, and what can help."""

    code: str = Field(
        description="A stable code for programs, which docs/protocol.md explains. Empty for errors from older versions."
    )
    remedy: Literal["retry", "model", "setting"] = Field(
        description="What can help. `retry`: the same request may succeed later. `model`: choose another model. "
        "`setting`: an administrator must change a setting."
    )


class AttachmentOut(Schema):
    """A file that is attached to a message. Parley determines `kind` and `media_type` from the content, not from the
    name.
    """

    id: str = Field(examples=["a_0123456789abcdef01234567"], description="The id of the file.")
    name: str = Field(description="The name of the file.")
    kind: Literal["image", "text", "pdf"] = Field(
        description="The kind of the file, which determines how it is sent to models."
    )
    media_type: str = Field(description="The media type of the content.")
    size: int = Field(description="The size in bytes.")
    width: int | None = Field(description="The width of an image in pixels. Null for other files.")
    height: int | None = Field(description="The height of an image in pixels. Null for other files.")
    pages: int | None = Field(description="The number of pages of a PDF file. Null for other files.")


class CitedSource(Schema):
    """A page that a text cites, or that a tool has found."""

    number: int = Field(description="The number by which the text cites the page, such as `[1]`.")
    title: str = Field(description="The title of the page.")
    url: str = Field(
        description="The address of the page. For a passage of a file of the workspace, it is a path on this server."
    )


class AgentMentionOut(Schema):
    """A place where a text mentions an agent of the session: an `@` and the agent's name or title, or `@agent`."""

    agent: str = Field(description="The `name` of the agent.")
    start: message_fields.MentionStart
    length: message_fields.MentionLength


class MentionOut(Schema):
    """A place where a text mentions a user of the session: an `@` and the user's name."""

    user_id: int = Field(description="The id of the user.")
    start: message_fields.MentionStart
    length: message_fields.MentionLength


class ScheduleLabel(Schema):
    """The times of a schedule when it sent a message."""

    cron: str = Field(description="The cron expression with five fields.")
    zone: str = Field(description="The IANA name of the time zone.")


class MessageOut(Schema):
    """A message: a text, reasoning, a tool call and its result, an error, or the start or end of a turn."""

    id: str = Field(examples=[EXAMPLE_MESSAGE_ID], description="The id of the message.")
    session_id: str = Field(examples=[EXAMPLE_SESSION_ID], description="The id of the session.")
    sequence: message_fields.Sequence
    revision: int = Field(description="The revision of the session after the last change of the message.")
    type: MessageType = Field(
        description="The type of the message. `tool_group` is a tool call with its result. `turn_start` and "
        "`turn_done` mark the start and the end of a turn."
    )
    role: MessageRole = Field(
        description="The role of the author for the model. Empty for the start and the end of a turn."
    )
    status: MessageStatus = Field(
        description="The status. `queued`: the agent gets it after the current turn. `pending`: a tool call that has "
        "not begun. `waiting`: it waits for a user or another agent. The last status is `complete`, `interrupted` or "
        "`failed`."
    )
    text: str = Field(description="The text. While the status is `streaming`, it is the text so far.")
    sender: str = Field(
        description="The name of the author. Empty for the agent's messages, unless the session has had several agents."
    )
    user_id: int | None = Field(
        description="The id of the user who wrote the message. Null if no user wrote it, or if the account was deleted."
    )
    model: str = Field(
        description="The name of the model that wrote the message or called the tool. Empty if there is none."
    )
    provider: str = Field(description="The name of the provider of that model. Empty if there is none.")
    turn_id: str = Field(description="The id of the turn. Empty if the message belongs to no turn.")
    response_id: str = Field(description="The id of the model's response. Empty if the message belongs to no response.")
    include_in_context: bool = Field(description="Whether the message is sent to the model.")
    edited: bool = Field(description="Whether a user has edited the message.")
    edited_by: str = Field(
        description="The name of the user who made the last edit. Empty if the author made it, or if there is none."
    )
    edited_by_id: int | None = Field(
        description="The id of the user who made the last edit. Null if the author made it, or if there is none."
    )
    suggested_by: str = Field(
        description="The name of the user who suggested the last edit, if another user accepted it. Empty otherwise."
    )
    suggestions: int = Field(description="The number of open suggested edits.")
    timestamp: message_fields.BeganAt
    duration_ms: int | None = Field(
        description="The duration of a text or of reasoning of the agent, or of a tool call, in milliseconds. Null if "
        "unknown."
    )
    duration_seconds: float | None = Field(
        description="The duration of the turn in seconds. Null unless `type` is `turn_done`."
    )
    end_reason: Literal["", "stopped", "restarted"] = Field(
        description="Why the turn was interrupted: a user `stopped` it, or the process was `restarted`. Empty if "
        "unknown, or unless `type` is `turn_done`."
    )
    stopped_by: str = Field(
        description="The name of the user who stopped the turn. Empty unless `end_reason` is `stopped`."
    )
    stopped_by_id: int | None = Field(
        description="The id of the user who stopped the turn. Null unless `end_reason` is `stopped`."
    )
    held: bool = Field(
        description="Whether a stop has put the queued message on hold. It is delivered when a user sends it with "
        "`sendHeldMessages`."
    )
    for_agent: bool = Field(
        description="Whether an agent answers this message. False for a message of a user that mentions no agent "
        "while `replies` of the session is `mentions`."
    )
    attempt_count: int = Field(
        description="The number of attempts at the messages that follow, including the current one. 0 if there is "
        "only one."
    )
    attempt_current: int = Field(
        description="The number of the attempt that follows now, from 1. 0 if there is only one."
    )
    usage: TokenUsage | None = Field(
        description="The token usage of the response. Null unless this is the last message of a response."
    )
    tool: MessageTool | None = Field(description="The tool call. Null unless `type` is `tool_group`.")
    attachments: list[AttachmentOut] = Field(description="The files of the message.")
    sources: list[CitedSource] = Field(
        description="For a text, the pages that it cites, or that it may cite while it is `streaming`. For a tool "
        "call, the pages that it has found."
    )
    mentions: list[MentionOut] = Field(
        description="The places where a message of a user mentions users of the session."
    )
    agent_mentions: list[AgentMentionOut] = Field(
        description="The places where a message of a user mentions agents of the session."
    )
    words: Json | None = Field(
        description="The template and the values of a text that Parley itself wrote, with which clients can translate "
        "it. Null for other messages."
    )
    error: TurnError | None = Field(description="The reason why the turn failed. Null unless `type` is `error`.")
    mode: Mode = Field(
        description="The mode of the session when the message was written. `run` in a turn that a schedule started."
    )
    agent_id: str = Field(description="The `name` of the agent that wrote the message. Empty if there is none.")
    workflow_id: message_fields.ScheduleId
    schedule: ScheduleLabel | None = Field(
        description="The times of that schedule when it sent the message. Null if no schedule sent it."
    )
    summarises: int | None = Field(
        description="The number of messages that this summary replaces in the context. The messages before a summary "
        "are not sent to the model. Null if the message is not a summary."
    )
    made_at: datetime | None = Field(
        description="The time at which the summary was written, because its `timestamp` is that of the message before "
        "it. Null if the message is not a summary."
    )


class MessagePage(Schema):
    """A page of messages."""

    messages: list[MessageOut] = Field(description="The messages in the order of their `sequence`.")
    queued: list[MessageOut] = Field(
        description="The queued messages, which follow all others. They are only in a response to a request "
        "without `before`, `after` and `turn`."
    )
    more: bool = Field(description="Whether more messages exist in the direction of this page.")


class EventRow(MessageOut):
    """The message that an event is about. The field `text` is missing if the event itself contains the text or its
    length.
    """

    text: str = Field("", description="The text. It is missing if the event itself contains the text or its length.")


class SyncedMessage(MessageOut):
    """A message of a `changes` event. Keep the first `offset` code points of your text, and append `text`."""

    offset: int = Field(
        description="The number of Unicode code points of the text that are not repeated. Greater than 0 only on a "
        "WebSocket, for a `streaming` message whose beginning you have."
    )
