"""The child process in which `chat.transfer.importing.files` reads large files.

It configures only the parts of Django that the models need, without the settings of the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import django
from django.apps import AppConfig
from django.conf import settings


class Models(AppConfig):
    """The app without the startup of a server."""

    name = "chat"
    path = str(Path(__file__).resolve().parents[2])
    default_auto_field = "django.db.models.BigAutoField"


if not settings.configured:
    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", f"{__name__}.{Models.__name__}"],
        AUTH_USER_MODEL="chat.User",
        USE_TZ=True,
    )
    django.setup()

from chat.transfer.reading import conversations as reading  # noqa: E402  # it needs the models


def outlines(file: IO[bytes], most: int) -> Iterator[bytes]:
    return reading.outlines(file, most)


def conversations(
    file: IO[bytes], most: int, chosen: list[int] | None, longest: int, largest_file: int
) -> Iterator[bytes]:
    return reading.conversations(file, most, chosen, longest, largest_file)
