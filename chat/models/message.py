"""Chat messages: the only stored form of a conversation (MSG-01)."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat import ids
from chat.models.session import Session


class MessageType(models.TextChoices):
    TEXT = "text"
    REASONING = "reasoning"
    TOOL_GROUP = "tool_group"
    ERROR = "error"
    TURN_START = "turn_start"
    TURN_DONE = "turn_done"


class MessageRole(models.TextChoices):
    """The role of a text; other types have the assistant's, markers none."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class MessageStatus(models.TextChoices):
    """queued: sent while the agent works; streaming: its text grows; pending: a tool call that has not begun;
    running: a tool at work; waiting: for a person; then one of complete, interrupted, failed for good."""

    QUEUED = "queued"
    STREAMING = "streaming"
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class EndReason(models.TextChoices):
    """Why a turn was interrupted; rows of before this was recorded do not say."""

    STOPPED = "stopped"
    RESTARTED = "restarted"


# Rows at work: a dead process leaves them damaged.
IN_FLIGHT = (MessageStatus.STREAMING, MessageStatus.RUNNING)
# Rows that a run has still to bring to an end (MSG-07); a trigger refuses them while the session is idle.
UNFINISHED = (*IN_FLIGHT, MessageStatus.PENDING)
# The rows that only mark where a turn begins and ends.
TURN_MARKERS = (MessageType.TURN_START, MessageType.TURN_DONE)


class MessageQuerySet(models.QuerySet["ChatMessage"]):
    def live(self, session_id: str) -> Self:
        """What stands in a session, in no order: neither queued nor removed."""
        return self.filter(session=session_id, sequence__isnull=False)

    def queued(self, session_id: str) -> Self:
        """What waits for the agent, in the order in which it was sent; editing changes no place (RUN-06)."""
        waiting = self.filter(session=session_id, status=MessageStatus.QUEUED, removed_at__isnull=True)
        return waiting.order_by("created_at", "pk")

    def deliverable(self, session_id: str) -> Self:
        """Return the queued messages that the next turn takes up by itself: held ones wait for a person."""
        return self.queued(session_id).filter(held=False)


class ChatMessage(models.Model):
    """One displayable item of a session.

    `sequence` orders the live rows; it is null while queued and after removal. `revision` is the session's at the
    row's last change. `text` of a streaming row is completed by its MessageDelta rows.
    """

    id = models.CharField(primary_key=True, max_length=32, default=ids.message_id, editable=False)
    # No index of its own: `message_sequence_once` begins with it. Likewise other foreign keys below and elsewhere.
    session = models.ForeignKey(Session, models.CASCADE, related_name="chat_messages", db_index=False)
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

    run_id = models.CharField(max_length=32, blank=True)
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

    # What the provider must get back as it gave it: signatures, ids, the arguments' own text (MSG-08).
    provider_data = models.JSONField(null=True, blank=True)
    # The sender's idempotency key (MSG-02).
    key = models.CharField(max_length=100, null=True, blank=True)  # noqa: DJ001  # null: no key, and unique among keys
    # A digest of the request that used the key, to refuse the key for another one (services/once.py).
    key_digest = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001  # null: no key, or from before
    edited_at = models.DateTimeField(null=True, blank=True)
    # Who made the last edit, unless it was the author; and who had suggested it, unless it was the editor's own idea.
    # These two and `stopped_by` are looked up by message alone, so they have no index.
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    edited_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    suggested_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    open_suggestions = models.PositiveIntegerField(default=0, db_default=0)
    # Of a turn_done row that is interrupted: why, and who stopped the turn.
    end_reason = models.CharField(max_length=9, choices=EndReason.choices, blank=True, default="", db_default="")
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    stopped_by_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    # Queued before a stop: waits until a person sends it (RUN-06).
    held = models.BooleanField(default=False, db_default=False)
    # Of a row that a retry replaced: the attempt that it belongs to, and its place in that, from 0 (RUN-12).
    attempt = models.CharField(max_length=32, blank=True, default="", db_default="")
    attempt_place = models.PositiveBigIntegerField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["session", "sequence"], name="message_sequence_once"),
            models.UniqueConstraint(fields=["session", "key"], name="message_key_once"),
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
            models.Index(fields=["run_id"], name="message_by_turn"),
            models.Index(
                fields=["session"], name="message_unfinished", condition=Q(status__in=[str(s) for s in UNFINISHED])
            ),
            models.Index(fields=["session"], name="message_queued", condition=Q(status="queued")),
            models.Index(fields=["removed_at"], name="message_by_removal", condition=Q(removed_at__isnull=False)),
            models.Index(fields=["attempt"], name="message_by_attempt", condition=~Q(attempt="")),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class MessageDelta(models.Model):
    """Text of a streaming message that is not yet folded into its row; gone when the message ends.

    `offset` counts characters (code points) from the start of the message.
    """

    message = models.ForeignKey(ChatMessage, models.CASCADE, related_name="deltas", db_index=False)
    offset = models.PositiveBigIntegerField()
    text = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["message", "offset"], name="delta_once"),)

    def __str__(self) -> str:
        return f"{self.message_id}+{self.offset}"


class MessageRevision(models.Model):
    """What a message was before somebody changed it: who, when, what (MSG-11)."""

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
    """Another text for a person's message, by somebody who may not edit it; its author or the session's owner decides.

    `revision` is the message's when it was suggested. A person has at most one open suggestion per message.
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
