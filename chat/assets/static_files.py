"""Serve static/ compressed, at URLs that change with the content, so that browsers can cache the files forever.

All files are copied into one folder, a version, whose name is a hash of the contents of all files. Relative paths
between scripts and styles stay valid in that folder, and no file is loaded under two names.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

import brotli  # type: ignore[import-untyped]  # it ships no types
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from whitenoise.compress import Compressor  # type: ignore[import-untyped]  # it ships no types

from chat.overrides.whole_files import WholeFileMiddleware

logger = logging.getLogger(__name__)

# The sources of static/dist/. They are not served, because pages load only static/dist/.
SOURCES = ("js/", "css/")
# The number of versions to keep. Pages that were loaded before an update still import scripts of an older version.
KEPT_VERSIONS = 3
# Creating a version takes seconds. An unfinished folder older than this was left behind by a process that stopped.
ABANDONED_SECONDS = 3600.0
# Size in bytes. The files that every first visit loads are larger, so they get Brotli's best quality.
FIRST_VISIT = 30_000
# Size in bytes. The best qualities take most of a minute for larger files, which pages load only for some messages.
LARGE = 500_000
_VERSIONED = re.compile(r"/(v-[0-9a-f]{16})/")


class Storage(StaticFilesStorage):
    """A storage that returns URLs in the folder of the current version, or plain URLs before `prepare` has run."""

    version = ""

    def url(self, name: str | None) -> str:
        return super().url(f"{self.version}/{name}" if self.version and name else name)


class Delivery(WholeFileMiddleware):
    """Middleware that serves the prepared files, or with DEBUG the original files."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = set[str]()
        _deliveries.add(self)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info not in self.files and (version := _VERSIONED.search(request.path_info)):
            self.show(version[1])
        response: HttpResponse = super().__call__(request)
        return response

    def show(self, version: str) -> None:
        """Start to serve a version if its folder exists.

        Another process may have created the folder since this process started, or may be creating it now.
        """
        folder = Path(settings.PREPARED_STATIC) / version
        if version in self._known or not folder.is_dir():
            return
        try:
            self.add_files(str(folder), prefix=f"{settings.STATIC_URL}{version}/")
            self._known.add(version)
        except FileNotFoundError:
            logger.info("The static files %s were removed while they were being read", version)

    def immutable_file_test(self, path: str, url: str) -> bool:
        return _VERSIONED.search(url) is not None


_deliveries: WeakSet[Delivery] = WeakSet()


def prepare() -> None:
    """Create the folder of this version if it is missing, and serve it."""
    if settings.DEBUG:
        return
    files = _files()
    version = f"v-{_fingerprint(files)}"
    root = Path(settings.PREPARED_STATIC)
    if not (root / version).is_dir():
        _make(root / version, files)
    _forget_old(root, version)
    for delivery in _deliveries:
        delivery.show(version)
    Storage.version = version


def _files() -> dict[str, Path]:
    """Return the paths of the files to serve by name. If several finders find a name, the first one is used."""
    found: dict[str, Path] = {}
    for finder in finders.get_finders():
        for name, storage in finder.list([".*"]):
            if not name.startswith(SOURCES):
                found.setdefault(name, Path(storage.path(name)))
    return found


def _fingerprint(files: dict[str, Path]) -> str:
    total = sha256()
    # This module is included, because a change of the compression changes the served files.
    for name, path in sorted({"": Path(__file__), **files}.items()):
        total.update(f"{name}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:16]


class BrotliAndGzip(Compressor):  # type: ignore[misc]  # it ships no types
    """A compressor with a Brotli quality that depends on the size, so that the first start does not take long."""

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        quality = 5 if len(data) > LARGE else 11 if len(data) > FIRST_VISIT else 10
        compressed: bytes = brotli.compress(data, quality=quality)
        return compressed


def _make(folder: Path, files: dict[str, Path]) -> None:
    """Create the folder of a version.

    It is created under another name and then renamed, because several processes may start at the same time.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    compressor = BrotliAndGzip(quiet=True)
    try:
        for name, path in files.items():
            target = aside / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        packable = [path for path in aside.rglob("*") if path.is_file() and compressor.should_compress(path.name)]
        with ThreadPoolExecutor() as pool:  # the compressors let other threads run
            list(pool.map(compressor.compress, map(str, packable)))
        aside.chmod(0o755)
        aside.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _forget_old(root: Path, present: str) -> None:
    with suppress(OSError):  # the folder may be part of a read-only image
        os.utime(root / present)
    others = [folder for folder in root.glob("v-*") if folder.name != present]
    halves = [folder for folder in root.glob(".making-*") if _made_at(folder) < time.time() - ABANDONED_SECONDS]
    for folder in [*sorted(others, key=_made_at, reverse=True)[KEPT_VERSIONS - 1 :], *halves]:
        shutil.rmtree(folder, ignore_errors=True)


def _made_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another process has deleted the folder
        return 0.0
