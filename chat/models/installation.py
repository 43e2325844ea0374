"""The row that describes the installation."""

from __future__ import annotations

from django.db import models


class Installation(models.Model):
    """The only row says which files belong to the database: `files_mark` is stored among them, too.

    `key_mark` tells the SECRET_KEY of its processes from others; "" until one of them has started.
    """

    files_mark = models.CharField(max_length=32)
    key_mark = models.CharField(max_length=32, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return self.files_mark
