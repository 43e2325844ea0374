"""Find out at the start whether this process has the files of the database: several machines must share them.

The first process stores a mark among the files and its value in the database. A process that finds another mark, or
none where there must be one, has a folder or a bucket of its own.
"""

from __future__ import annotations

import logging
import secrets

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from chat.errors import FilesRefused
from chat.models import Attachment, Installation, KnowledgeFile, User

logger = logging.getLogger(__name__)

NAME = "installation"
ONLY = 1


class WrongFilesError(Exception):
    """The files are not those of the database; the message says what to do."""


def require_own_files() -> None:
    """Refuse the files of another installation. Raises WrongFilesError.

    Call it in one process at a time. A storage that does not respond now is not waited for.
    """
    try:
        mark = _read()
        known = Installation.objects.filter(pk=ONLY).first()
        if known is not None and (mark or _are_missed()):
            if mark != known.files_mark:
                raise WrongFilesError(_problem(known.files_mark, is_other=bool(mark)))
        elif known is not None:
            _write(known.files_mark)
        else:
            mark = mark or _write(secrets.token_hex(8))
            Installation.objects.create(pk=ONLY, files_mark=mark)
    except FilesRefused as error:
        raise WrongFilesError(f"{_place()} cannot be used: {error.reason}. Check the settings S3_*.") from error
    except OSError as error:
        logger.warning("Files cannot be uploaded or read now: %s", error)


def _read() -> str:
    """Return the stored mark, "" if there is none."""
    try:
        with default_storage.open(NAME) as file:
            return file.read(100).decode(errors="replace").strip()  # type: ignore[no-any-return]  # File is untyped here
    except FileNotFoundError:
        return ""


def _write(mark: str) -> str:
    default_storage.delete(NAME)  # what is no mark
    default_storage.save(NAME, ContentFile(mark.encode()))
    return mark


def _are_missed() -> bool:
    """Return whether files without a mark cannot be those of the database; SQLite is used by one machine alone."""
    if connection.vendor != "sqlite":
        return True
    has_pictures = User.objects.exclude(picture="").exists()
    return has_pictures or Attachment.objects.exists() or KnowledgeFile.objects.exists()


def _place() -> str:
    return f"the bucket {settings.S3_BUCKET}" if settings.S3_BUCKET else f"the folder {settings.MEDIA_ROOT}"


def _problem(mark: str, *, is_other: bool) -> str:
    found = "has the files of another installation" if is_other else "does not have the files of this database"
    name = "/".join(filter(None, [settings.S3_PREFIX if settings.S3_BUCKET else "", NAME]))
    return (
        f"{_place()} {found}. Several machines must share one: mount the same folder on each of them, or set "
        "S3_BUCKET, S3_ENDPOINT and S3_PREFIX to the same values. If these are the right files, write "
        f"{mark} to {name} there."
    )
