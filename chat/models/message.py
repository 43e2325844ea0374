"""Messages, the only stored form of a conversation (MSG-01), with their revisions and suggestions."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat import ids
from chat.models.session import Session
from chat.models.user import User
from chat.models.workspace_id import WorkspaceIdField


class MessageType(models.TextChoices):
    TEXT = "text"
    REASONING = "reasoning"
    TOOL_GROUP = "tool_group"
    ERROR = "error"
    TURN_START = "turn_start"
    TURN_DONE = "turn_done"


class MessageRole(models.TextChoices):
    """The author of a text message. Other types have the role "assistant"; turn markers have none."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class MessageStatus(models.TextChoices):
    """The state of a message. Complete, interrupted and failed are final.

    queued: sent while the agent is running. streaming: the text is still growing. pending: a tool call that has not
    started. running: a tool call that is being executed. waiting: a tool call that waits for a user.
    """

    QUEUED = "queued"
    STREAMING = "streaming"
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class QuestionKind(models.TextChoices):
    """The kinds of questions to people: an approval of a tool call, or a question that the agent asks with a tool."""

    APPROVAL = "approval"
    FORM = "form"
    SELECTION = "selection"
    CONFIRMATION = "confirmation"
    PLAN_REVIEW = "plan_review"
    FEEDBACK = "feedback"
    ACTION_SELECTION = "action_selection"
    MEMORY = "memory"


class EndReason(models.TextChoices):
    """The reason why a turn was interrupted. It is "" on rows that are older than this column."""

    STOPPED = "stopped"
    RESTARTED = "restarted"


# Rows that a process is writing. If the process dies, they stay incomplete until another one repairs them.
IN_FLIGHT = (MessageStatus.STREAMING, MessageStatus.RUNNING)
# Rows that a run must still finish (MSG-07). A database trigger rejects them while the session is idle.
UNFINISHED = (*IN_FLIGHT, MessageStatus.PENDING, MessageStatus.WAITING)
# Running calls that have asked people something. Other waiting calls have no process.
ASKING = Q(status=MessageStatus.WAITING, asked__isnull=False)
# Calls whose JSON can name users who have approved or answered them.
WITH_DECISIONS = Q(approval__isnull=False) | Q(asked__isnull=False)
# Calls that were interrupted before users approved them.
NEVER_APPROVED = Q(status=MessageStatus.INTERRUPTED, question=QuestionKind.APPROVAL, answer__isnull=True)
# Types of rows that the model gets, unless they are excluded from the context.
CONTENT_TYPES = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)
# Rows that only mark the beginning or the end of a turn.
TURN_MARKERS = (MessageType.TURN_START, MessageType.TURN_DONE)


class MessageQuerySet(models.QuerySet["ChatMessage"]):
    def in_conversation(self, session_id: str) -> Self:
        """Return the messages of a session's conversation, unordered: neither queued nor removed ones."""
        return self.filter(session=session_id, sequence__isnull=False)

    def written_by(self, user: User) -> Self:
        """Return a user's messages, without the summaries that the user requested, which a model wrote (CTX-07)."""
        return self.filter(user=user, summarises__isnull=True)

    def queued(self, session_id: str) -> Self:
        """Return the queued messages in the order in which they were sent, which editing does not change (RUN-06)."""
        waiting = self.filter(session=session_id, status=MessageStatus.QUEUED, removed_at__isnull=True)
        return waiting.order_by("created_at", "pk")

    def deliverable(self, session_id: str) -> Self:
        """Return the queued messages that the next turn takes. Held messages wait until a user sends them."""
        return self.queued(session_id).filter(held=False)

    def to_answer(self, session_id: str) -> Self:
        """Return the deliverable messages that an agent has to answer, so that a turn begins for them."""
        return self.deliverable(session_id).filter(for_agent=True)

    def for_break(self, session_id: str) -> Self:
        """Return the queued messages for which the running turn ends at its next break. Messages of schedules wait."""
        return self.to_answer(session_id).filter(workflow_id="")


class ChatMessage(models.Model):
    """One item of a conversation: a text, the model's reasoning, a tool call, an error, or a marker of a turn.

    `sequence` orders the messages of the conversation, without gaps from 1; it is null while a message is queued and
    after it is removed. `revision` is the session's revision at the last change of the row. While a message is
    streaming, its MessageDelta rows continue `text`.
    """

    id = models.CharField(primary_key=True, max_length=32, default=ids.message_id, editable=False)
    # No index: `message_sequence_once` begins with this column. The same holds for other foreign keys without an index.
    session = models.ForeignKey(Session, models.CASCADE, related_name="chat_messages", db_index=False)
    workspace_id = WorkspaceIdField()
    sequence = models.PositiveBigIntegerField(null=True, blank=True)
    revision = models.PositiveBigIntegerField(default=0)

    type = models.CharField(max_length=10, choices=MessageType.choices, default=MessageType.TEXT)
    role = models.CharField(max_length=9, choices=MessageRole.choices, blank=True)
    status = models.CharField(max_length=11, choices=MessageStatus.choices, default=MessageStatus.COMPLETE)
    text = models.TextField(blank=True)

    sender = models.CharField(max_length=200, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    model = models.CharField(max_length=200, blank=True)
    provider = models.CharField(max_length=80, blank=True)

    # The columns of this field and of `idempotency_key` have older names.
    turn_id = models.CharField(db_column="run_id", max_length=32, blank=True)
    response_id = models.CharField(max_length=32, blank=True)
    mode = models.CharField(max_length=8, choices=Session.Mode.choices, default=Session.Mode.AGENT)
    workflow_id = models.CharField(max_length=80, blank=True)
    agent_id = models.CharField(max_length=80, blank=True)
    include_in_context = models.BooleanField(default=True)

    tool_call_id = models.CharField(max_length=200, blank=True)
    tool_name = models.CharField(max_length=200, blank=True)
    arguments = models.JSONField(null=True, blank=True)
    result = models.TextField(blank=True)
    is_error = models.BooleanField(default=False)

    # On a tool call: the source of foreign text in its result, and the pages in it by number. On a text: the pages it
    # cites.
    origin = models.CharField(max_length=200, blank=True, default="", db_default="")
    sources = models.JSONField(null=True, blank=True)
    # Files of the workspace that a tool has returned: path, media_type and size of each.
    files = models.JSONField(null=True, blank=True)

    # On a tool call that asks people (UI-12): the kind of the question, and the answer.
    question = models.CharField(max_length=16, choices=QuestionKind.choices, blank=True, default="", db_default="")
    answer = models.JSONField(null=True, blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    answered_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    answered_at = models.DateTimeField(null=True, blank=True)
    # On a call that needs several approvals, or approvals by a role: the requirement and each decision
    # (chat/runs/approvals.py).
    approval = models.JSONField(null=True, blank=True)

    # The questions of a running call, as records of chat.runs.elicitations; null if there are none.
    asked = models.JSONField(null=True, blank=True)

    # On a call of another agent: the session in which that agent works (`chat.subsession_snapshot`).
    subsession = models.JSONField(null=True, blank=True)

    timestamp = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.PositiveBigIntegerField(null=True, blank=True)
    duration_seconds = models.FloatField(null=True, blank=True)
    input_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    output_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    total_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    cache_read_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    cache_write_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    reasoning_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    first_token_latency_ms = models.PositiveBigIntegerField(null=True, blank=True)

    # Data that the provider must get back unchanged: signatures, ids, the original text of arguments (MSG-08).
    provider_data = models.JSONField(null=True, blank=True)
    # The sender's idempotency key (MSG-02).
    idempotency_key = models.CharField(  # noqa: DJ001  # null: no key, and unique among keys
        db_column="key", max_length=100, null=True, blank=True
    )
    # A digest of the request that used the key, to reject the key for a different request (services/idempotency.py).
    key_digest = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001  # null: no key, or from before
    edited_at = models.DateTimeField(null=True, blank=True)
    # The user who made the last edit, unless it was the author, and the user who suggested the edit, if any.
    # This, `answered_by` and `stopped_by` have partial indexes, because they are null in nearly all rows.
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    edited_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    suggested_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    open_suggestions = models.PositiveIntegerField(default=0, db_default=0)
    # On the turn_done row of an interrupted turn: why it was interrupted, and the user who stopped it.
    end_reason = models.CharField(max_length=9, choices=EndReason.choices, blank=True, default="", db_default="")
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    stopped_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    # The mentions in a user's message: the user's id, the start and the length of each (LIVE-07).
    mentions = models.JSONField(null=True, blank=True)
    # True if the agent has to answer a user's message (see Session.replies).
    for_agent = models.BooleanField(default=True, db_default=True)
    # True if the message was queued when the agent was stopped. It waits until a user sends it (RUN-06).
    held = models.BooleanField(default=False, db_default=False)
    # On a summary: the number of messages that it replaces. Messages before it are not in the context (CTX-07).
    summarises = models.PositiveIntegerField(null=True, blank=True)
    # On a row that a retry replaced: the id of its attempt, and its position in the attempt from 0 (RUN-12).
    attempt = models.CharField(max_length=32, blank=True, default="", db_default="")
    attempt_place = models.PositiveBigIntegerField(null=True, blank=True)
    # On the row before an answer with several attempts: their number, and the number of the current one, from 1.
    attempt_count = models.PositiveIntegerField(default=0, db_default=0)
    attempt_current = models.PositiveIntegerField(default=0, db_default=0)
    removed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = (
            models.UniqueConstraint(fields=["session", "sequence"], name="message_sequence_once"),
            models.UniqueConstraint(fields=["session", "idempotency_key"], name="message_key_once"),
            models.CheckConstraint(
                condition=Q(sequence__isnull=False, removed_at__isnull=True) & ~Q(status="queued")
                | Q(sequence__isnull=True) & (Q(status="queued") | Q(removed_at__isnull=False)),
                name="message_sequence_iff_live",
            ),
            models.CheckConstraint(condition=Q(type__in=MessageType.values), name="message_type"),
            models.CheckConstraint(condition=Q(status__in=MessageStatus.values), name="message_status"),
            models.CheckConstraint(
                condition=~Q(status="queued") | Q(type="text", role="user"), name="message_only_user_text_queues"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["running", "pending", "waiting"]) | Q(type="tool_group"),
                name="message_only_tools_run",
            ),
        )
        indexes = (
            models.Index(fields=["session", "revision"], name="message_by_revision"),
            models.Index(fields=["turn_id"], name="message_by_turn"),
            models.Index(
                fields=["session"], name="message_unfinished", condition=Q(status__in=[str(s) for s in UNFINISHED])
            ),
            models.Index(fields=["session"], name="message_queued", condition=Q(status="queued")),
            models.Index(fields=["removed_at"], name="message_by_removal", condition=Q(removed_at__isnull=False)),
            models.Index(fields=["attempt"], name="message_by_attempt", condition=~Q(attempt="")),
            models.Index(fields=["session"], name="message_summary", condition=Q(summarises__isnull=False)),
            # These are for erasing users, which would otherwise read all messages of the installation.
            models.Index(fields=["edited_by"], name="message_by_editor", condition=Q(edited_by__isnull=False)),
            models.Index(fields=["stopped_by"], name="message_by_stopper", condition=Q(stopped_by__isnull=False)),
            models.Index(fields=["answered_by"], name="message_by_answerer", condition=Q(answered_by__isnull=False)),
            models.Index(fields=["session"], name="message_with_decisions", condition=WITH_DECISIONS),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def is_asking(self) -> bool:
        """True if the call runs and has asked people something, as ASKING selects it."""
        return self.status == MessageStatus.WAITING and self.asked is not None

    @property
    def was_never_approved(self) -> bool:
        """True if the call was interrupted before users approved it, as NEVER_APPROVED selects it."""
        is_undecided = self.question == QuestionKind.APPROVAL and self.answer is None
        return is_undecided and self.status == MessageStatus.INTERRUPTED


class MessageDelta(models.Model):
    """A piece of a streaming message's text that is not yet part of `ChatMessage.text`.

    `offset` is its position in the message, in code points. The rows are deleted when the message ends.
    """

    message = models.ForeignKey(ChatMessage, models.CASCADE, related_name="deltas", db_index=False)
    offset = models.PositiveBigIntegerField()
    text = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["message", "offset"], name="delta_once"),)

    def __str__(self) -> str:
        return f"{self.message_id}+{self.offset}"


class MessageRevision(models.Model):
    """A change of a message: who made it, when, and the message before (MSG-11).

    `before` has the replaced content for edits, and flags such as the position for other kinds.
    """

    class Kind(models.TextChoices):
        ADD = "add"
        EDIT = "edit"
        WITHDRAW = "withdraw"
        REMOVE = "remove"
        RETRY = "retry"
        RESTORE = "restore"
        EXCLUDE = "exclude"
        INCLUDE = "include"

    message = models.ForeignKey(ChatMessage, models.CASCADE, related_name="revisions")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    before = models.JSONField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} of {self.message_id}"


class Suggestion(models.Model):
    """A new text for a user's message, suggested by a user who may not edit it.

    The message's author or the session's owner accepts or dismisses it. `revision` is the message's revision that the
    suggestion refers to. A user has at most one open suggestion per message.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        ACCEPTED = "accepted"
        DISMISSED = "dismissed"

    id = models.CharField(primary_key=True, max_length=32, default=ids.suggestion_id, editable=False)
    message = models.ForeignKey(ChatMessage, models.CASCADE, related_name="suggestions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    user_name = models.CharField(max_length=200)
    text = models.TextField()
    revision = models.PositiveBigIntegerField()
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.OPEN)
    created_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("created_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=["message", "user"], name="suggestion_open_once", condition=Q(status="open")
            ),
            models.CheckConstraint(condition=Q(status__in=["open", "accepted", "dismissed"]), name="suggestion_status"),
        )

    def __str__(self) -> str:
        return f"{self.status} suggestion {self.id}"
