"""The row that describes the installation."""

from __future__ import annotations

from django.db import models


class Installation(models.Model):
    """The only row says which files belong to the database: `files_mark` is stored among them, too."""

    files_mark = models.CharField(max_length=32)

    def __str__(self) -> str:
        return self.files_mark
