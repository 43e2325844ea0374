"""Import files: list the conversations in a file, and create sessions from those that the user chose.

Small files are read in the server. Larger ones are read in a child process with limits, part by part, so that no file
can exhaust the server's memory or CPU (`chat.transfer.reading.conversations`).
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from io import UnsupportedOperation
from shutil import copyfileobj
from typing import IO, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _

from agents.process_pool import Job, Limits, ProcessPool, Reason, WorkFailed
from chat.disconnects import Disconnect
from chat.errors import NoSuchSession, ServiceError
from chat.limits.quotas import require_storage
from chat.limits.rates import spend
from chat.models import User, Workspace
from chat.overrides.postgres.lending import return_connection
from chat.services.deletion import sessions
from chat.services.messages import attachments
from chat.services.people.workspaces import current_workspace
from chat.services.sessions import incomplete
from chat.transfer.formats.parsed import Source
from chat.transfer.importing.notices import loss_notes, manifest_only, no_conversations, problem_message
from chat.transfer.importing.session import FileReader, IdsTaken, ImportedSession, SessionImport
from chat.transfer.reading import conversations as reading
from chat.transfer.reading.conversations import Error, Head, Outline, Problem

MEGABYTE = 1024 * 1024
# The most conversations and problems of a file that are listed.
MAX_LISTED = 20_000
MAX_PROBLEMS = 100
# In bytes. Larger files, and archives with more content, are read in a child process, which takes a second to start.
SMALL_FILE_BYTES = 250_000
SMALL_UNPACKED_BYTES = 1_000_000
# Other compression methods may need gigabytes of memory for a small entry.
CHEAP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Escaped text and ids can make the output of a process up to twice as large as the unpacked file.
_processes = ProcessPool(
    "chat.transfer.reading.child",
    Limits(cpu_seconds=60.0, seconds=180.0, memory_mb=512, output_bytes=1 << 30, queue_seconds=60.0),
    size=2,
)


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """The limit of an operator's command. It reads files in its own process, up to `most` unpacked bytes."""

    most: int


class TooLarge(ServiceError):
    CODE: ClassVar[str] = "too_large"

    def __init__(self, limits: OperatorLimits | None = None) -> None:
        words = _("The file is too large (%(limit)d MB max).")
        most = limits.most if limits else limit_bytes()
        super().__init__(self.CODE, words % {"limit": most // MEGABYTE})


@dataclass(frozen=True, slots=True)
class FileContents:
    """The conversations in a file, and messages about those that cannot be read."""

    conversations: list[Outline]
    problems: list[str]


@dataclass(slots=True)
class ImportResult:
    """The imported sessions, and messages about conversations that could not be imported."""

    imported: list[ImportedSession] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def limit_bytes() -> int:
    """Return the maximum size of an unpacked file in bytes."""
    megabytes: int = settings.MAX_IMPORT_MB
    return megabytes * MEGABYTE


def list_conversations(
    file: IO[bytes], client: Disconnect | None = None, limits: OperatorLimits | None = None
) -> FileContents:
    """List the conversations in a file. Raise ServiceError if it is too large or unreadable."""
    outlines: list[Outline] = []
    problems: list[str] = []
    for kind, body in _parts("outlines", file, client=client, limits=limits):
        if kind == reading.PROBLEM:
            problems.append(problem_message(Problem.model_validate_json(body)))
        else:
            outlines.append(Outline.model_validate_json(body))
    if not outlines:
        raise no_conversations()
    return FileContents(outlines[:MAX_LISTED], problems[:MAX_PROBLEMS])


def import_file(
    *,
    owner: User,
    file: IO[bytes],
    workspace: Workspace | None = None,
    chosen: Sequence[int] | None = None,
    keep_ids: bool = True,
    client: Disconnect | None = None,
    limits: OperatorLimits | None = None,
    is_stored: bool = False,
) -> ImportResult:
    """Import the conversations with the `chosen` indexes, or all. Each is imported completely or not at all.

    The caller has checked that the owner may use `workspace`; None means the owner's current one. The import ends when
    the client disconnects. With `is_stored`, an earlier request has uploaded the file and counted it for the rate
    limit. Raise RateLimited, and ServiceError if nothing could be imported.
    """
    if limits is None:
        spend("import_requests" if is_stored else "imports", owner.pk)
        require_storage(owner, 0)
    for session_id in incomplete.abandoned().filter(owner=owner).values_list("pk", flat=True):
        sessions.discard(session_id)  # this frees its ids
    run = _Import(owner, workspace or current_workspace(owner), file, client, limits)
    try:
        run.run(chosen, keep_ids=keep_ids)
    except ServiceError as refused:  # a truncated file: report the sessions imported so far
        if not run.outcome.imported:
            raise
        run.outcome.problems.append(refused.message)
    if not run.outcome.imported:
        problems = "\n".join(run.outcome.problems)
        raise ServiceError("nothing_imported", problems) if problems else no_conversations()
    return run.outcome


class _Import:
    """The import of one file."""

    def __init__(
        self,
        owner: User,
        workspace: Workspace,
        file: IO[bytes],
        client: Disconnect | None,
        limits: OperatorLimits | None,
    ) -> None:
        self.outcome = ImportResult()
        self._owner = owner
        self._workspace = workspace
        self._file = file
        self._client = client
        self._limits = limits
        self._files = FileReader(owner, is_bounded=limits is None)

    def run(self, chosen: Sequence[int] | None, *, keep_ids: bool) -> None:
        """Import the chosen conversations, or all."""
        arguments = (
            None if chosen is None else sorted(set(chosen)),
            settings.MAX_MESSAGE_CHARS,
            attachments.limit_bytes(),
        )
        retry: list[int] = []
        with closing(
            _parts("conversations", self._file, *arguments, client=self._client, limits=self._limits)
        ) as parts:
            for kind, body in parts:
                if kind == reading.PROBLEM:
                    self.outcome.problems.append(problem_message(Problem.model_validate_json(body)))
                    continue
                head = Head.model_validate_json(body)
                if not self._import_session(head, parts, keep_ids=keep_ids):
                    retry.append(head.index)
        if retry:  # another import has used their ids after the check
            self.run(retry, keep_ids=False)

    def _import_session(self, head: Head, parts: Iterator[tuple[bytes, bytes]], *, keep_ids: bool) -> bool:
        """Import one conversation. Return False if its ids are taken."""
        is_own = head.source != Source.PARLEY
        made = SessionImport(
            head, owner=self._owner, workspace=self._workspace, files=self._files, is_own=is_own, keep_ids=keep_ids
        )
        taken = False
        try:
            for kind, body in parts:
                if kind == reading.END:
                    break
                if taken:
                    continue  # read the parts up to the end of the conversation, but add none
                try:
                    made.add(kind, body)
                except IdsTaken:
                    made.discard()
                    taken = True
            if not taken:
                self.outcome.imported.append(made.finish(loss_notes(head.left, head.kinds)))
        except IdsTaken:
            return False
        except NoSuchSession:  # the import took too long, so the session was deleted as abandoned
            raise _failure("time") from None
        finally:
            made.discard()
        return not taken


def _parts(
    function: str,
    file: IO[bytes],
    *arguments: int | list[int] | None,
    client: Disconnect | None,
    limits: OperatorLimits | None,
) -> Generator[tuple[bytes, bytes], None, None]:
    """Read a file in this or in a child process, and yield the kind and body of each part.

    Raise ServiceError, also for a part that reports an error.
    """
    return_connection()
    with ExitStack() as stack:
        most = limits.most if limits else limit_bytes()
        if limits or _is_small(file):
            pieces: Iterator[bytes] = getattr(reading, function)(file, most, *arguments)
        else:
            job = Job()
            if client is not None:
                client.call(job.cancel)
            on_disk = file if _is_on_disk(file) else stack.enter_context(_copy(file))
            pieces = _processes.stream(function, most, *arguments, file=on_disk, job=job)
        try:
            for piece in pieces:
                if client is not None and client.is_set():
                    raise _failure("cancelled")
                kind, body = piece[:1], piece[1:]
                if kind == reading.ERROR:
                    raise _refusal(Error.model_validate_json(body), limits)
                yield kind, body
        except WorkFailed as failed:
            raise _failure(failed.reason) from failed
        finally:
            pieces.close()  # type: ignore[attr-defined]  # both are generators


def _is_small(file: IO[bytes]) -> bool:
    if file.seek(0, 2) > SMALL_FILE_BYTES:
        return False
    try:
        with zipfile.ZipFile(file) as archive:  # sizes are as declared, except in archives inside it
            entries = archive.infolist()
            is_plain = all(
                entry.compress_type in CHEAP_METHODS and not entry.filename.lower().endswith(".zip")
                for entry in entries
            )
            return is_plain and sum(entry.file_size for entry in entries) <= SMALL_UNPACKED_BYTES
    except Exception:  # not an archive, or a damaged one
        return True


def _is_on_disk(file: IO[bytes]) -> bool:
    try:
        file.fileno()
    except (UnsupportedOperation, AttributeError):
        return False
    file.flush()
    return True


def _copy(file: IO[bytes]) -> IO[bytes]:
    copy = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.seek(0)
    copyfileobj(file, copy)
    copy.flush()
    return copy


def _failure(reason: Reason) -> ServiceError:
    """Return the error for a file that could not be read completely."""
    if reason == "cancelled":
        return ServiceError("cancelled", _("The import was cancelled."))
    if reason == "busy":
        return ServiceError("unavailable", _("Other imports are running. Try again in a few minutes."))
    if reason == "failed":
        return _refusal(Error(reason="unreadable"))
    words = _("The file takes too much time or memory to import. Split it into smaller files.")
    return ServiceError(TooLarge.CODE, words)


def _refusal(error: Error, limits: OperatorLimits | None = None) -> ServiceError:
    if error.reason == "too_much":
        return TooLarge(limits)
    if error.reason == "manifest":
        return manifest_only()
    words = _("This isn’t a conversation export. Use a JSON file, or a ZIP archive that contains one.")
    return ServiceError("unreadable", words)
