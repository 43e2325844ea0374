"""Uploaded export files, kept for an hour, so that several requests can import from one upload.

They are stored with the attachments under their owner's id, without rows, so that no other user can refer to them. The
next upload, or the daily maintenance, deletes expired files.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any, ClassVar

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ServiceError
from chat.limits.quotas import require_storage
from chat.models import User

KEPT = timedelta(hours=1)
MAX_KEPT = 3
ROOT = "imports"

_ID = re.compile(r"[0-9a-f]{24}")


class NoSuchUpload(ServiceError):
    CODE: ClassVar[str] = "no_such_import"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("This file is no longer available. Upload it again."))


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file and the time when it expires."""

    id: str
    expires_at: datetime


def keep(*, owner: User, file: File[Any]) -> Upload:
    """Store a file for its owner, and delete the oldest if there are more than MAX_KEPT.

    Raise DiskFull, QuotaExceeded.
    """
    delete_expired()
    mine = sorted(_files(f"{ROOT}/{owner.pk}"), key=default_storage.get_modified_time)
    too_many = max(0, len(mine) - MAX_KEPT + 1)
    require_storage(owner, file.size + sum(map(default_storage.size, mine[too_many:])))
    for name in mine[:too_many]:
        default_storage.delete(name)
    upload_id = secrets.token_hex(12)
    file.seek(0)
    name = default_storage.save(_place(owner, upload_id), file)
    return Upload(upload_id, default_storage.get_modified_time(name) + KEPT)


@contextmanager
def open_upload(*, owner: User, upload_id: str) -> Iterator[tuple[Upload, IO[bytes]]]:
    """Open a file that the owner uploaded. Raise NoSuchUpload."""
    name = _place(owner, upload_id)
    try:
        expires_at = default_storage.get_modified_time(name) + KEPT
        file = default_storage.open(name)
    except FileNotFoundError:
        raise NoSuchUpload from None
    with file:
        if expires_at < timezone.now():
            raise NoSuchUpload
        yield Upload(upload_id, expires_at), file


def discard(*, owner: User, upload_id: str) -> None:
    """Delete a file that the owner uploaded, if it still exists. If that fails, the file expires later."""
    with suppress(OSError):
        default_storage.delete(_place(owner, upload_id))


def discard_all(owner_id: int) -> None:
    """Delete all files that a user uploaded."""
    for name in _files(f"{ROOT}/{owner_id}"):
        default_storage.delete(name)


def _place(owner: User, upload_id: str) -> str:
    if not _ID.fullmatch(upload_id):
        raise NoSuchUpload
    return f"{ROOT}/{owner.pk}/{upload_id}"


def delete_expired() -> None:
    """Delete the expired files of all users."""
    for folder in _list_folder(ROOT)[0]:
        for name in _files(f"{ROOT}/{folder}"):
            try:
                if default_storage.get_modified_time(name) + KEPT < timezone.now():
                    default_storage.delete(name)
            except FileNotFoundError:  # another request was faster
                continue


def _files(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in _list_folder(folder)[1]]


def _list_folder(folder: str) -> tuple[list[str], list[str]]:
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:
        return [], []
