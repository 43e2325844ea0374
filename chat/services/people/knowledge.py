"""Add files to the knowledge of a workspace; rename, remove and restore them; delete them permanently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.access import may, workspace_where
from chat.commands import MAX_FILES
from chat.errors import Forbidden, Invalid, ServiceError
from chat.files import documents, names
from chat.files.contents import Problem, Unusable
from chat.files.documents import Document
from chat.files.passages import indexed_words_of, split
from chat.files.plain import is_named_as_text
from chat.files.user_locks import UserLocks
from chat.limits.quotas import require_storage
from chat.limits.rates import limited, spend
from chat.models import KnowledgeFile, KnowledgePassage, User, Workspace
from chat.permissions import Permission
from chat.queries.knowledge import fetch, files_in
from chat.services.discarding import discard_after_error, discard_files
from chat.services.messages.attachments import MEGABYTE, TooLarge, limit_bytes
from chat.services.messages.validation import validate_characters

# Stored files without a row are deleted when they are this old: the row of a younger one may not be committed yet.
ORPHANS_KEPT = timedelta(days=1)
FOLDER = "knowledge"
# Reading a file can use a CPU core for seconds, so only one file per user is read at a time.
_locks = UserLocks()


@limited("uploads", by="author")
def add(*, author: User, workspace_id: int, name: str, size: int, file: File[Any]) -> KnowledgeFile:
    """Add a file to a workspace of which the author is a member.

    Raise NoSuchWorkspace, Forbidden, and ServiceError for a name that is taken, or a file that cannot be read.
    """
    workspace = workspace_where(author, Permission.ADD_KNOWLEDGE, workspace_id)
    if size > limit_bytes():
        raise TooLarge
    spend("upload_megabytes", author.pk, cost=-(-size // MEGABYTE))
    require_storage(author, size)
    name = names.clean(name)
    _require_room(workspace.pk)
    _require_free(workspace.pk, name)
    with _locks.hold(author.pk):
        require_storage(author, size)  # other files of the author may have been stored while this one waited
        data = file.read(limit_bytes() + 1)
        if len(data) > limit_bytes():
            raise TooLarge
        document = _read(name, data)
        return _keep(workspace, author, name, data, document)


@transaction.atomic
def rename(*, author: User, file_id: str, name: str) -> KnowledgeFile:
    """Rename a file. Sessions that have chosen it keep it. Raise NoSuchKnowledgeFile, Forbidden, Invalid."""
    file = _lock_to_manage(author, file_id)
    clean = names.clean(validate_characters(name)) if name.strip() else ""
    if not clean:
        raise Invalid(_("Enter a name."))
    if clean != file.name:
        _require_free(file.workspace_id, clean)
        file.name = clean
        file.save(update_fields=["name", "updated_at"])
    return file


@transaction.atomic
def remove(*, author: User, file_id: str) -> KnowledgeFile:
    """Remove a file, so that agents can no longer use it. It can be restored. Raise NoSuchKnowledgeFile, Forbidden."""
    file = _lock_to_manage(author, file_id)
    file.removed_at = timezone.now()
    file.save(update_fields=["removed_at", "updated_at"])
    return file


@transaction.atomic
def restore(*, author: User, file_id: str) -> KnowledgeFile:
    """Restore a removed file. Raise NoSuchKnowledgeFile, Forbidden, ServiceError if its name is taken."""
    file = _lock_to_manage(author, file_id, removed=True)
    if file.removed_at is None:
        return file
    _require_room(file.workspace_id)
    _require_free(file.workspace_id, file.name)
    file.removed_at = None
    file.save(update_fields=["removed_at", "updated_at"])
    return file


def may_manage(user: User, file: KnowledgeFile) -> bool:
    """Return whether a user may rename and remove a file: their own, or any file with the permission."""
    return file.added_by_id == user.pk or may(user, Permission.MANAGE_KNOWLEDGE, file.workspace_id)


def purge(before: datetime | None) -> int:
    """Delete files that were removed before a time, and stored files without a row. Return the number of rows."""
    removed = KnowledgeFile.objects.filter(removed_at__lt=before) if before else KnowledgeFile.objects.none()
    count = _delete(list(removed))
    for name in _orphans():
        discard_files(name)
    return count


def forget(workspace_ids: Iterable[int]) -> None:
    """Delete the files of workspaces that are about to be deleted."""
    _delete(list(KnowledgeFile.objects.filter(workspace__in=list(workspace_ids))))


def _delete(files: list[KnowledgeFile]) -> int:
    for file in files:
        with transaction.atomic():
            file.delete()
            # The stored file must exist as long as the caller's transaction can be rolled back.
            transaction.on_commit(partial(discard_files, file.file.name or ""))
    return len(files)


def _lock_to_manage(author: User, file_id: str, *, removed: bool = False) -> KnowledgeFile:
    workspace = fetch(author, file_id, removed=removed).workspace_id
    Workspace.objects.select_for_update().get(pk=workspace)
    file = fetch(author, file_id, removed=removed)
    if not may_manage(author, file):
        raise Forbidden(_("Only the person who added the file, and owners and admins of the workspace, can do that."))
    return file


def _require_room(workspace_id: int) -> None:
    if files_in(workspace_id).count() >= MAX_FILES:
        raise Invalid(_("A workspace can have up to %(count)d files. Remove one first.") % {"count": MAX_FILES})


def _require_free(workspace_id: int, name: str) -> None:
    if files_in(workspace_id).filter(name=name).exists():
        raise ServiceError(
            "name_taken", _("There is a file “%(name)s” already. Rename or remove it first.") % {"name": name}
        )


def _read(name: str, data: bytes) -> Document:
    try:
        return documents.read(name, data)
    except Unusable as error:
        if error.problem == "unsupported" and is_named_as_text(name):
            raise ServiceError(error.problem, _("The file contains binary data.")) from error
        raise ServiceError(error.problem, _WORDS[error.problem]()) from error


_WORDS: dict[Problem, Callable[[], str]] = {
    "empty": lambda: _("The file is empty."),
    "unsupported": lambda: _("Unsupported file type. Use PDF, HTML, Markdown, code or other text."),
    "broken_pdf": lambda: _("The PDF file is damaged."),
    "locked_pdf": lambda: _("The PDF file is password-protected. Save it without a password."),
    "no_text": lambda: _("The file has no text. A scanned document needs text recognition first."),
    "too_complex": lambda: _("The file takes too long to read. Save it in a simpler form, or split it."),
    "unavailable": lambda: _("Too many files are being processed. Try again in a minute."),
}


def _keep(workspace: Workspace, author: User, name: str, data: bytes, document: Document) -> KnowledgeFile:
    file = KnowledgeFile(
        workspace=workspace,
        name=name,
        kind=document.kind,
        media_type=document.media_type,
        size=len(data),
        pages=document.pages,
        is_cut=document.is_cut,
        added_by=author,
    )
    passages = _passages(file, document)
    file.passage_count, file.characters = len(passages), sum(len(each.text) for each in passages)
    file.file.name = stored = f"{FOLDER}/{file.pk}"
    with discard_after_error(stored):
        default_storage.save(stored, ContentFile(data))
        with transaction.atomic():
            # The lock makes two simultaneous requests check one after the other.
            Workspace.objects.select_for_update().get(pk=workspace.pk)
            _require_room(workspace.pk)
            _require_free(workspace.pk, name)
            file.save(force_insert=True)
            KnowledgePassage.objects.bulk_create(passages, batch_size=200)
    return file


def _passages(file: KnowledgeFile, document: Document) -> list[KnowledgePassage]:
    found = list[KnowledgePassage]()
    for page, text in document.parts:
        for passage in split(text):
            words, number = " ".join(indexed_words_of(passage)), len(found) + 1
            found.append(KnowledgePassage(file=file, number=number, page=page, text=passage, words=words))
    return found


def _orphans() -> list[str]:
    """Return the names of stored files without a row, which a crash can leave."""
    try:
        _folders, stored = default_storage.listdir(FOLDER)
    except (OSError, NotImplementedError):  # nothing is stored yet, or the storage has no folders
        return []
    known = set(KnowledgeFile.objects.filter(pk__in=stored).values_list("pk", flat=True))
    old = timezone.now() - ORPHANS_KEPT
    unknown = [f"{FOLDER}/{name}" for name in stored if name not in known]
    return [name for name in unknown if default_storage.get_modified_time(name) < old]
