"""A process starts only if its storage holds the files of its database."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db import connection
from pytest_django.fixtures import Settings

from chat.models import Installation, User
from chat.services.maintenance.files_mark import NAME, WrongFilesError, require_own_files
from chat.services.maintenance.key_mark import mark_of, require_own_key
from chat.services.messages import attachments
from chat.services.sessions.lifecycle import create_session
from tests.support.s3 import S3Server

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]


def stored() -> str:
    with default_storage.open(NAME) as file:
        return str(file.read().decode())


def test_files_and_database_are_marked_at_the_first_start() -> None:
    """OPS-10: later starts find the mark in the database and in the storage."""
    require_own_files()
    require_own_files()
    assert stored() == Installation.objects.get().files_mark
    Installation.objects.all().delete()  # a new database beside existing files
    require_own_files()
    assert stored() == Installation.objects.get().files_mark


def test_files_of_another_installation_are_refused() -> None:
    """OPS-10: files of another installation are refused, and the error explains the remedy."""
    require_own_files()
    default_storage.delete(NAME)
    default_storage.save(NAME, ContentFile(b"another"))
    with pytest.raises(WrongFilesError, match=r"has the files of another installation.* mount the same folder"):
        require_own_files()
    default_storage.delete(NAME)
    default_storage.save(NAME, ContentFile(Installation.objects.get().files_mark.encode() + b"\n"))  # by an operator
    require_own_files()


def test_folder_without_the_files_is_refused(ana: User) -> None:
    """OPS-10: a machine with its own empty folder, or a bucket without the copied files, is refused."""
    require_own_files()
    file: File[Any] = File(BytesIO(b"words"))
    attachments.upload(session=create_session(owner=ana), author=ana, name="a.txt", size=5, file=file)
    default_storage.delete(NAME)
    with pytest.raises(WrongFilesError, match="does not have the files of this database"):
        require_own_files()


def test_folder_without_a_mark_is_refused_where_there_may_be_several_machines() -> None:
    """OPS-10: a folder without a mark is refused if several machines may exist, which is not the case with SQLite."""
    require_own_files()
    default_storage.delete(NAME)
    if connection.vendor == "sqlite":
        require_own_files()
        assert stored() == Installation.objects.get().files_mark
    else:
        with pytest.raises(WrongFilesError, match="does not have the files of this database"):
            require_own_files()


def test_wrong_bucket_is_refused(settings: Settings, s3: S3Server) -> None:
    """OPS-10: a wrong bucket is refused at the start, not at the first upload."""
    options = {**s3.options(""), "bucket": "no-such-bucket"}
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": "chat.s3.S3Storage", "OPTIONS": options}}
    with pytest.raises(WrongFilesError, match=r"NoSuchBucket.*Check the S3 settings"):
        require_own_files()


def test_storage_that_is_away_does_not_prevent_the_start(settings: Settings, tmp_path: Path) -> None:
    """OPS-10: if the storage is down, the process starts, because conversations work without files.

    Even at the first start, its key is stored, so that a process with another key is refused.
    """
    place = tmp_path / "files"
    place.write_text("no folder")
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"}}
    settings.MEDIA_ROOT = place
    require_own_files()
    require_own_key()
    assert Installation.objects.get().key_mark == mark_of(settings.SECRET_KEY)
    place.unlink()
    require_own_files()
    assert stored() == Installation.objects.get().files_mark != ""
    assert Installation.objects.get().key_mark == mark_of(settings.SECRET_KEY)
