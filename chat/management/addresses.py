"""The addresses of Parley that its commands print."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.urls import reverse

ANYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104  # only recognized here, not bound


def home_url(port: int | None = None) -> str:
    """Return the address of the home page. `port` is the port on which the server listens, if that is known."""
    return _base(port) + reverse("home")


def link_url(token: str, port: int | None = None) -> str:
    """Return the address of the sign-in link with this token. `port` is as in `home_url`."""
    return _base(port) + reverse("sign-in-link", args=[token])


def remember(port: int) -> None:
    """Store in the data folder where this process listens, so that other commands can print the address."""
    with suppress(OSError):  # then commands use the settings
        _file().write_text(json.dumps({"pid": os.getpid(), "url": _local(port)}))


def forget() -> None:
    """Delete the stored address if this process has stored it."""
    if _read_note().pid == os.getpid():
        with suppress(OSError):
            _file().unlink()


class Note(NamedTuple):
    """The process that serves Parley, and its address."""

    pid: int = 0
    url: str = ""


def _read_note() -> Note:
    try:
        note = json.loads(_file().read_text())
        return Note(int(note["pid"]), str(note["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Note()


def _running_address() -> str:
    """Return the address of a server that runs on this data folder, or "" if none is known."""
    note = _read_note()
    try:
        if note.pid > 0:
            os.kill(note.pid, 0)
            return note.url
    except PermissionError:  # the process runs under another account
        return note.url
    except (OSError, OverflowError):
        pass
    return ""


def _file() -> Path:
    return Path(settings.DATA_DIR) / "server.json"


def _base(port: int | None) -> str:
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL)
    return _local(port) if port is not None else _running_address() or _local(settings.PORT)


def _local(port: int) -> str:
    host = "127.0.0.1" if settings.HOST in ANYWHERE else settings.HOST
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
