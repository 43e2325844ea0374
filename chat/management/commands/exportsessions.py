"""`manage.py exportsessions`: write sessions into a folder or an archive."""

from __future__ import annotations

import zipfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from django.core.management.base import CommandError
from django.db.models import QuerySet

from chat.downloads import file_name
from chat.management import private_files
from chat.management.amounts import amount
from chat.management.data_command import DataCommand
from chat.management.paths import explained
from chat.management.people import named_user, named_workspace
from chat.models import Session, SessionRole
from chat.transfer.public import EXTENSIONS, ExportFormat, UnreadableError, export_session, require_readable


class Target(Protocol):
    """The folder or archive to which files are written."""

    def write(self, name: str, pieces: Iterator[str]) -> None: ...


class Command(DataCommand):
    help = "Export sessions to a folder or a ZIP archive, one file for each. Exits with 1 if there are none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("--owner", help="export the sessions of the user with this user name")
        chosen.add_argument("--workspace", type=int, help="export the sessions in the workspace with this id")
        chosen.add_argument("--all", action="store_true", help="export all sessions")
        parser.add_argument(
            "--format",
            choices=list(ExportFormat),
            default=ExportFormat.JSON,
            help="JSON can be imported again (default: %(default)s)",
        )
        parser.add_argument(
            "--to",
            type=Path,
            required=True,
            metavar="FOLDER|FILE.zip",
            help="where to write; existing files are not overwritten",
        )

    def handle(self, *args: Any, to: Path, format: str, **options: Any) -> None:
        form, sessions = ExportFormat(format), _sessions(**options)
        total = sessions.count()
        if not total:
            raise CommandError("There are no sessions to export.", returncode=1)
        try:
            with _target(to) as target:
                # No query may stay open, because each export adds to the security log: SQLite refuses to write after a
                # read that began before another process has written.
                refused = self._write(target, sessions, form)
        except OSError as error:
            raise CommandError(explained(error, to, makes_new=True), returncode=1) from None
        self.stdout.write(f"Wrote {amount(total - refused, 'session')} to {to}.")
        if refused:
            raise CommandError(f"{amount(refused, 'session')} could not be exported.", returncode=1)

    def _write(self, target: Target, sessions: QuerySet[Session], form: ExportFormat) -> int:
        """Write the sessions, and return the number of those that cannot be read."""
        refused, names = 0, list(sessions.values_list("pk", flat=True))
        for number, pk in enumerate(names, 1):
            self.stderr.write(f"{number} of {len(names)}: {pk}")
            try:
                require_readable(pk)
            except UnreadableError as error:
                self.stderr.write(f"{pk}: {error}")
                refused += 1
                continue
            for session in sessions.filter(pk=pk):
                name = file_name(session.title, pk, EXTENSIONS[form])
                target.write(f"{pk} {name}", export_session(session, None, SessionRole.OWNER, form))
        return refused


def _sessions(*, owner: str | None, workspace: int | None, **_options: Any) -> QuerySet[Session]:
    sessions = Session.objects.exclude(status=Session.Status.DELETED).order_by("created_at", "pk")
    if owner is not None:
        return sessions.filter(owner=named_user(owner))
    return sessions if workspace is None else sessions.filter(workspace=named_workspace(workspace))


@contextmanager
def _target(to: Path) -> Iterator[Target]:
    if to.suffix.lower() != ".zip":
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield _Folder(to)
        return
    with private_files.create(to) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        yield _Archive(archive)


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, pieces: Iterator[str]) -> None:
        with private_files.create(self._folder / name) as file:
            file.writelines(piece.encode() for piece in pieces)


class _Archive:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def write(self, name: str, pieces: Iterator[str]) -> None:
        with self._archive.open(name, "w", force_zip64=True) as file:
            for piece in pieces:
                file.write(piece.encode())
