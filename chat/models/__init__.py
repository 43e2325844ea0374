"""The database models: all durable state, with the constraints that protect it."""

from chat.models.access import Invitation, SessionRole, Share, SignInLink
from chat.models.api_token import ApiToken
from chat.models.attachment import Attachment, attached_to, cache_files, has_cached_files, may_have_files, without_files
from chat.models.dialect import LearnedDialect
from chat.models.erasure import Erasure
from chat.models.history import ModelRequest, SessionRevision
from chat.models.installation import Installation
from chat.models.job_lease import JobLease
from chat.models.knowledge import KnowledgeFile, KnowledgePassage
from chat.models.login_session import LoginSession
from chat.models.mcp_server import McpServer
from chat.models.memory import MemoryNote
from chat.models.message import (
    ASKING,
    CONTENT_TYPES,
    IN_FLIGHT,
    NEVER_APPROVED,
    TURN_MARKERS,
    UNFINISHED,
    WITH_DECISIONS,
    ChatMessage,
    EndReason,
    MessageDelta,
    MessageRevision,
    MessageRole,
    MessageStatus,
    MessageType,
    QuestionKind,
    Suggestion,
)
from chat.models.participation import UserSessionState
from chat.models.preset import AgentPreset
from chat.models.push import PushSubscription
from chat.models.run import RunState, SessionRun, Worker
from chat.models.schedule import Schedule
from chat.models.security_event import SecurityEvent
from chat.models.session import APPROVED, FORKED_FILES, IMPORTED, SENDING, Session
from chat.models.usage import DailyUsage
from chat.models.user import User
from chat.models.webhook import TEST_EVENT, Webhook, WebhookDelivery, WebhookEvent
from chat.models.workspace import ApprovalRule, Membership, Workspace, WorkspaceInvitation

__all__ = [
    "APPROVED",
    "ASKING",
    "CONTENT_TYPES",
    "FORKED_FILES",
    "IMPORTED",
    "IN_FLIGHT",
    "NEVER_APPROVED",
    "SENDING",
    "TEST_EVENT",
    "TURN_MARKERS",
    "UNFINISHED",
    "WITH_DECISIONS",
    "AgentPreset",
    "ApiToken",
    "ApprovalRule",
    "Attachment",
    "ChatMessage",
    "DailyUsage",
    "EndReason",
    "Erasure",
    "Installation",
    "Invitation",
    "JobLease",
    "KnowledgeFile",
    "KnowledgePassage",
    "LearnedDialect",
    "LoginSession",
    "McpServer",
    "Membership",
    "MemoryNote",
    "MessageDelta",
    "MessageRevision",
    "MessageRole",
    "MessageStatus",
    "MessageType",
    "ModelRequest",
    "PushSubscription",
    "QuestionKind",
    "RunState",
    "Schedule",
    "SecurityEvent",
    "Session",
    "SessionRevision",
    "SessionRole",
    "SessionRun",
    "Share",
    "SignInLink",
    "Suggestion",
    "User",
    "UserSessionState",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "Worker",
    "Workspace",
    "WorkspaceInvitation",
    "attached_to",
    "cache_files",
    "has_cached_files",
    "may_have_files",
    "without_files",
]
