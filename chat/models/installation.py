"""The row that describes the installation."""

from __future__ import annotations

from django.db import models


class Installation(models.Model):
    """The single row of an installation.

    `files_mark` is also stored among the files, and shows that these belong to the database; it is "" until the storage
    has responded at a start. `key_mark` is a digest of the SECRET_KEY that all processes share, or "" until one of them
    has started.
    """

    files_mark = models.CharField(max_length=32)
    key_mark = models.CharField(max_length=32, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return self.files_mark
