"""Quotas: a user's stored files, running agents and tokens per day, and the disk space that must stay free.

The services that need a quota check it against rows. Simultaneous requests may all pass the check and exceed a
quota together; the next request is refused. A turn that has begun runs to its end.
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
from chat.limits.rates import duration_words
from chat.models import Attachment, DailyUsage, KnowledgeFile, RunState, SessionRun, User

MEGABYTE = 1024 * 1024
# Adds responses to the row of their user and day, or begins that row.
_ADD_USAGE = """
    INSERT INTO chat_dailyusage (user_id, day, tokens, responses) VALUES (%s, %s, %s, %s)
    ON CONFLICT (user_id, day) DO UPDATE
    SET tokens = chat_dailyusage.tokens + excluded.tokens, responses = chat_dailyusage.responses + excluded.responses
"""
# Texts of at most this length are written even if the disk is almost full.
SMALL_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a user; 0 means no limit."""

    # Files in messages and in composers, each counted once even if forks share it, and files added to workspaces.
    stored_megabytes: int = 20_000
    # Running turns that the user has started.
    running_turns: int = 50
    # Tokens of input and output since midnight UTC, in the user's turns and for the titles of their sessions.
    tokens_per_day: int = 100_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """A user's usage of their quotas. The tokens of the day count until `day_ends`."""

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
    """Return the quotas with the changes by the setting QUOTAS. Raise ValueError."""
    return _changed_by(settings.QUOTAS)


@lru_cache(maxsize=8)
def _changed_by(written: str) -> Quotas:
    values: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in written.split(","))):
        name, _equals, value = (word.strip() for word in part.partition("="))
        if name not in Quotas.__slots__ or not (value.isascii() and value.isdigit()):
            raise ValueError(f"{part!r} does not set a quota")
        if name in values:
            raise ValueError(f"{name!r} is set twice")
        values[name] = int(value)
    return Quotas(**values)


def usage_of(user: User) -> Usage:
    """Return a user's usage, in four queries."""
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
    """Raise QuotaExceeded if a user may not have another turn now.

    `starts` is False for a message that joins the queue of a turn, because that turn has been counted.
    """
    limits = quotas()
    if limits.tokens_per_day:
        now = timezone.now()
        used = DailyUsage.objects.filter(user=user, day=now.date(), tokens__gte=limits.tokens_per_day)
        if used.exists():
            seconds = round((_next_midnight(now) - now).total_seconds()) + 1
            words = _("You’ve used today’s tokens. Try again in %(wait)s.") % {"wait": duration_words(seconds)}
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
    """Count responses, given as user ids and tokens, in the transaction that records them.

    A transaction that counts for several users calls it once, as its last statement. It locks rows in the order of user
    ids, so that such transactions cannot deadlock.
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
    """Raise QuotaExceeded if a user cannot store `size` more bytes of files, DiskFull if the disk is almost full."""
    require_disk()
    limit = quotas().stored_megabytes
    if limit and _stored_bytes(user.pk) + size > limit * MEGABYTE:
        words = _("Your files use all of your %(count)d MB. Delete some first.")
        raise QuotaExceeded("stored_megabytes", words % {"count": limit}, limit=limit)


def require_disk() -> None:
    """Raise DiskFull if less than MIN_FREE_DISK_MB is free. Call it before writing more than a short text."""
    floor = settings.MIN_FREE_DISK_MB * MEGABYTE
    if floor and any(shutil.disk_usage(_existing(folder)).free < floor for folder in _folders()):
        raise DiskFull


def require_disk_for(text: str) -> None:
    """Raise DiskFull if a text is too long for the free disk space."""
    if len(text) > SMALL_CHARS:
        require_disk()


def as_numbers() -> Mapping[str, int]:
    """Return the quotas as numbers, by name."""
    return asdict(quotas())


def _running_turns(user_id: int) -> QuerySet[SessionRun]:
    """Return a user's running turns. A turn that waits for people does not count, because it uses no resources."""
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
        folders.add(Path(connection.settings_dict["NAME"]).parent)
    return folders


def _existing(folder: Path) -> Path:
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)
