"""The addresses that Parley's commands print."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.urls import reverse

ANYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104  # these are recognised, not bound


def home_url(port: int | None = None) -> str:
    """Return the address of the home page; `port`: where the server really listens."""
    return _base(port) + reverse("home")


def link_url(token: str, port: int | None = None) -> str:
    """Return the address that signs in by `token`."""
    return _base(port) + reverse("sign-in-link", args=[token])


def remember(port: int) -> None:
    """Record in the data folder where this process listens, for other commands."""
    with suppress(OSError):  # they assume the settings then
        _file().write_text(json.dumps({"pid": os.getpid(), "url": _local(port)}))


def forget() -> None:
    """Delete the note, if it is this process's."""
    if _noted().pid == os.getpid():
        with suppress(OSError):
            _file().unlink()


class Note(NamedTuple):
    """Which process serves, and where."""

    pid: int = 0
    url: str = ""


def _noted() -> Note:
    try:
        note = json.loads(_file().read_text())
        return Note(int(note["pid"]), str(note["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Note()


def _remembered() -> str:
    """Return the address of a server that runs on this data folder; "" where none is known."""
    note = _noted()
    try:
        if note.pid > 0:
            os.kill(note.pid, 0)
            return note.url
    except PermissionError:  # it runs, under another account
        return note.url
    except (OSError, OverflowError):
        pass
    return ""


def _file() -> Path:
    return Path(settings.DATA_DIR) / "server.json"


def _base(port: int | None) -> str:
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL)
    return _local(port) if port is not None else _remembered() or _local(settings.PORT)


def _local(port: int) -> str:
    host = "127.0.0.1" if settings.HOST in ANYWHERE else settings.HOST
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
