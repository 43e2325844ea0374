"""Check at the start that this process uses the files of the database, because several machines must share them.

The first process stores a mark among the files and its value in the database. A process that finds another mark, or no
mark where one must exist, uses a different folder or bucket.
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
SHARE = (
    "Several machines must share one: mount the same folder on each of them, or set S3_BUCKET, S3_ENDPOINT and "
    "S3_PREFIX to the same values."
)
AS_THE_SERVER = "Set PARLEY_DATA, or S3_BUCKET, S3_ENDPOINT and S3_PREFIX, to the values of the server."


class WrongFilesError(Exception):
    """The files do not belong to the database. The message states what to do."""


def require_own_files() -> None:
    """Raise WrongFilesError if the files belong to another installation.

    Call it in one process at a time. If the storage does not respond, it only logs a warning.
    """
    try:
        mark = _read()
        known = _known()
        if not known:
            mark = mark or _write(secrets.token_hex(8))
            Installation.objects.update_or_create(pk=ONLY, defaults={"files_mark": mark})
        elif mark or _are_missed():
            _require_equal(mark, known, SHARE)
        else:
            _write(known)
    except FilesRefused as error:
        raise _refused(error) from error
    except OSError as error:
        # The mark of the key needs the row, even if the storage does not respond at the first start.
        Installation.objects.get_or_create(pk=ONLY, defaults={"files_mark": ""})
        logger.warning("File storage is not available; files cannot be uploaded or read: %s", error)


def require_known_files() -> None:
    """Raise WrongFilesError if the files belong to another installation than the database. Change nothing.

    Unlike a start, raise OSError if the storage does not respond.
    """
    try:
        mark = _read()
    except FilesRefused as error:
        raise _refused(error) from error
    known = _known()
    if known and (mark or _are_missed()):
        _require_equal(mark, known, AS_THE_SERVER)


def _known() -> str:
    return Installation.objects.filter(pk=ONLY).values_list("files_mark", flat=True).first() or ""


def _read() -> str:
    """Return the stored mark, or "" if there is none."""
    try:
        with default_storage.open(NAME) as file:
            return file.read(100).decode(errors="replace").strip()  # type: ignore[no-any-return]  # File is untyped here
    except FileNotFoundError:
        return ""


def _write(mark: str) -> str:
    default_storage.delete(NAME)  # an empty file, if there is one
    default_storage.save(NAME, ContentFile(mark.encode()))
    return mark


def _are_missed() -> bool:
    """Return whether a missing mark means a wrong folder or bucket. On SQLite it does only if rows refer to files."""
    if connection.vendor != "sqlite":
        return True
    has_pictures = User.objects.exclude(picture="").exists()
    return has_pictures or Attachment.objects.exists() or KnowledgeFile.objects.exists()


def _place() -> str:
    return f"the bucket {settings.S3_BUCKET}" if settings.S3_BUCKET else f"the folder {settings.MEDIA_ROOT}"


def _refused(error: FilesRefused) -> WrongFilesError:
    return WrongFilesError(f"{_place()} cannot be used: {error.reason}. Check the S3 settings.")


def _require_equal(mark: str, known: str, remedy: str) -> None:
    """Raise WrongFilesError if the stored mark is not that of the database."""
    if mark == known:
        return
    found = "has the files of another installation" if mark else "does not have the files of this database"
    name = "/".join(filter(None, [settings.S3_PREFIX if settings.S3_BUCKET else "", NAME]))
    raise WrongFilesError(
        f"{_place()} {found}. {remedy} If these are the right files, write {known} to the file {name} there."
    )
