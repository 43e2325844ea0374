"""`manage.py prune`: delete sessions that were not used for RETENTION_DAYS."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db.models import QuerySet, Sum
from django.utils import timezone

from chat.management.amounts import amount
from chat.management.data_command import DataCommand, number_of_days
from chat.management.people import named_workspace
from chat.models import Attachment, ChatMessage, Session
from chat.services.batches import Pacer
from chat.services.sessions import retention


class Command(DataCommand):
    help = (
        "Count the sessions that no one has used for RETENTION_DAYS; with --yes, delete them. Pinned sessions are "
        "kept. Deleted sessions can be restored for PURGE_AFTER_DAYS."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=number_of_days, help="the number of days; default: RETENTION_DAYS")
        parser.add_argument("--workspace", type=int, help="only the sessions of the workspace with this id")
        parser.add_argument("--yes", action="store_true", help="delete the sessions")

    def handle(
        self, *args: Any, days: int | None = None, workspace: int | None = None, yes: bool = False, **options: Any
    ) -> str:
        if days is not None and days < 1:
            raise CommandError(f"--days must be 1 or more, not {days}.")
        days = days or settings.RETENTION_DAYS
        if not days:
            raise CommandError("No retention period is set. Set RETENTION_DAYS, or use --days.")
        before = timezone.now() - timedelta(days=days)
        found = retention.unused(before)
        if workspace is not None:
            found = found.filter(workspace=named_workspace(workspace))
        since = amount(days, "day")
        if not found.exists():
            return f"There are no sessions that no one has used for {since}. Nothing was changed."
        counted = _amount(retention.with_below(found))
        if not yes:
            return f"No one has used {counted} for {since}. Nothing was changed. Use --yes to delete them."
        return f"Deleted {_delete(found, before)} of {counted}. They can be restored {_until()}."


def _amount(sessions: QuerySet[Session]) -> str:
    """Return the number of sessions, their messages and the size of their files, in words."""
    messages = ChatMessage.objects.filter(session__in=sessions).count()
    size = Attachment.objects.filter(session__in=sessions).aggregate(size=Sum("size"))["size"] or 0
    found = f"{amount(sessions.count(), 'session')} with {amount(messages, 'message')}"
    return f"{found} and {size / 1e6:.1f} MB of files"


def _delete(sessions: QuerySet[Session], before: datetime) -> int:
    pacer, count = Pacer(), 0
    for session_id in list(sessions.values_list("pk", flat=True)):
        count += retention.delete_if_unused(session_id, before)
        pacer.pause()
    return count


def _until() -> str:
    days: int = settings.PURGE_AFTER_DAYS
    return f"for {amount(days, 'day')}" if days else "indefinitely: PURGE_AFTER_DAYS is 0"
