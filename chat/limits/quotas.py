"""How much a user may have or use: stored files, running agents, tokens in a day; and how much disk space stays free.

Quotas are checked against rows, by the services that use them. Requests at the same moment may all pass, so a quota can
be exceeded by that many and no further. A turn that has begun runs to its end.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import ServiceError
from chat.limits.rates import waiting
from chat.models import Attachment, DailyUsage, KnowledgeFile, RunState, SessionRun, User

MEGABYTE = 1024 * 1024
# Adds responses to the row of their user and day, or begins that row.
_ADD_USAGE = """
    INSERT INTO chat_dailyusage (user_id, day, tokens, responses) VALUES (%s, %s, %s, %s)
    ON CONFLICT (user_id, day) DO UPDATE
    SET tokens = chat_dailyusage.tokens + excluded.tokens, responses = chat_dailyusage.responses + excluded.responses
"""
# What is no longer than this is written while the disk is almost full.
SMALL_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a person; 0 is no limit."""

    # Files in messages and in composers, each once, however many forks show it; and those added to workspaces.
    stored_megabytes: int = 20_000
    # Turns that the person has started and that are still running.
    running_turns: int = 50
    # Tokens that models were sent and wrote since midnight UTC, in the person's turns and for their sessions' titles.
    tokens_per_day: int = 100_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What a person has used of their quotas. `day_ends` is when the tokens of the day are forgotten."""

    stored_bytes: int
    running_turns: int
    tokens_today: int
    responses_today: int
    day_ends: datetime


class QuotaExceeded(ServiceError):
    CODE: ClassVar[str] = "quota_exceeded"

    def __init__(self, quota: str, words: str, **details: object) -> None:
        super().__init__(self.CODE, words, quota=quota, **details)


class DiskFull(ServiceError):
    CODE: ClassVar[str] = "disk_full"

    def __init__(self) -> None:
        words = _("The server is almost out of disk space. Only short messages can be sent.")
        super().__init__(self.CODE, words)


def quotas() -> Quotas:
    """Return the quotas with what QUOTAS changes of them. Raises ValueError."""
    return _changed_by(settings.QUOTAS)


@lru_cache(maxsize=8)
def _changed_by(written: str) -> Quotas:
    values: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in written.split(","))):
        name, _equals, value = (word.strip() for word in part.partition("="))
        if name not in Quotas.__slots__ or not (value.isascii() and value.isdigit()):
            raise ValueError(f"{part!r} does not set a quota")
        values[name] = int(value)
    return Quotas(**values)


def usage_of(user: User) -> Usage:
    """Return what a person has used; in four queries."""
    now = timezone.now()
    today = DailyUsage.objects.filter(user=user, day=now.date()).first()
    return Usage(
        stored_bytes=_stored_bytes(user.pk),
        running_turns=_running_turns(user.pk).count(),
        tokens_today=today.tokens if today else 0,
        responses_today=today.responses if today else 0,
        day_ends=_next_midnight(now),
    )


def require_turn(user: User, *, starts: bool = True) -> None:
    """Raise QuotaExceeded if a person may not have another turn now.

    `starts` is False for a message that waits in the queue of a turn: that has been counted.
    """
    limits = quotas()
    if limits.tokens_per_day:
        now = timezone.now()
        used = DailyUsage.objects.filter(user=user, day=now.date(), tokens__gte=limits.tokens_per_day)
        if used.exists():
            seconds = round((_next_midnight(now) - now).total_seconds()) + 1
            words = _("You’ve used today’s tokens. Try again in %(wait)s.") % {"wait": waiting(seconds)}
            raise QuotaExceeded("tokens_per_day", words, limit=limits.tokens_per_day, retry_after=seconds)
    if starts and limits.running_turns and _running_turns(user.pk).count() >= limits.running_turns:
        words = ngettext(
            "You have %(count)d agent working, which is the limit. Wait until it finishes, or stop it.",
            "You have %(count)d agents working, which is the limit. Wait until one finishes, or stop one.",
            limits.running_turns,
        )
        details = {"limit": limits.running_turns}
        raise QuotaExceeded("running_turns", words % {"count": limits.running_turns}, **details)


def record_tokens(used: Iterable[tuple[int | None, int]]) -> None:
    """Count responses, given as users and tokens, in the transaction that records them.

    A transaction that counts for several users calls it once, as its last statement: rows are locked in the order of
    users, so that workers with the same users do not wait for each other in a circle.
    """
    tokens: Counter[int] = Counter()
    responses: Counter[int] = Counter()
    for user_id, count in used:
        if user_id is not None:
            tokens[user_id] += count
            responses[user_id] += 1
    day = connection.ops.adapt_datefield_value(timezone.now().date())
    for user_id in sorted(responses):
        with connection.cursor() as cursor:
            cursor.execute(_ADD_USAGE, [user_id, day, tokens[user_id], responses[user_id]])


def require_storage(user: User, size: int) -> None:
    """Raise QuotaExceeded if `size` more bytes of files are too many for a person; DiskFull."""
    require_disk()
    limit = quotas().stored_megabytes
    if limit and _stored_bytes(user.pk) + size > limit * MEGABYTE:
        words = _("Your files use all of your %(count)d MB. Delete some first.")
        raise QuotaExceeded("stored_megabytes", words % {"count": limit}, limit=limit)


def require_disk() -> None:
    """Raise DiskFull if there is less free disk than MIN_FREE_DISK_MB: for what writes more than a short text."""
    floor = settings.MIN_FREE_DISK_MB * MEGABYTE
    if floor and any(shutil.disk_usage(_existing(folder)).free < floor for folder in _folders()):
        raise DiskFull


def require_disk_for(text: str) -> None:
    """Raise DiskFull if a text is too long for what is left of the disk."""
    if len(text) > SMALL_CHARS:
        require_disk()


def as_numbers() -> Mapping[str, int]:
    """Return the quotas by name."""
    return asdict(quotas())


def _running_turns(user_id: int) -> QuerySet[SessionRun]:
    """Return the turns that a user has started. One that waits for people takes nothing from the server."""
    return SessionRun.objects.filter(started_by=user_id).exclude(state=RunState.IDLE).exclude(state=RunState.WAITING)


def _stored_bytes(user_id: int) -> int:
    files = Attachment.objects.filter(user=user_id).order_by().values("file", "size").distinct()
    knowledge = KnowledgeFile.objects.filter(added_by=user_id)
    return sum(rows.aggregate(total=Sum("size"))["total"] or 0 for rows in (files, knowledge))


def _next_midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def _folders() -> set[Path]:
    folders = set[Path]() if settings.S3_BUCKET else {Path(settings.MEDIA_ROOT)}
    if connection.vendor == "sqlite":
        folders.add(Path(settings.DATA_DIR))
    return folders


def _existing(folder: Path) -> Path:
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)
