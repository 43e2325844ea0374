"""Upload, send and delete attachments of messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.sandbox.copies import ATTACHMENTS, remove_copies
from chat.access import session_for
from chat.agents_setup import sandbox
from chat.errors import Forbidden, Invalid, ServiceError
from chat.files import names, sniffing
from chat.files.contents import Contents, Problem, Unusable
from chat.files.plain import is_named_as_text
from chat.files.user_locks import UserLocks
from chat.limits.quotas import require_storage
from chat.limits.rates import limited, spend
from chat.models import Attachment, ChatMessage, Session, SessionRole, User
from chat.queries.attachments import MODEL_IMAGE, THUMB, copy_mark, fetch, stored_name
from chat.services.discarding import discard_after_error, discard_files
from chat.services.idempotency import id_of_key

logger = logging.getLogger(__name__)
MAX_PER_MESSAGE = 10
# The most unsent files of a user, in all sessions.
MAX_UNSENT = 40
UNSENT_KEPT = timedelta(hours=24)
SWEPT_AT_ONCE = 100
MEGABYTE = 1024 * 1024
# Suffixes of the stored files of one attachment.
FORMS = ("", THUMB, MODEL_IMAGE)

# Reading a file can use a CPU core for seconds, so only one file per user is read at a time.
_locks = UserLocks()


class TooLarge(ServiceError):
    CODE: ClassVar[str] = "too_large"

    def __init__(self) -> None:
        message = _("The file is too large (%(limit)d MB max).")
        super().__init__(self.CODE, message % {"limit": settings.MAX_ATTACHMENT_MB})


def limit_bytes() -> int:
    """Return the size of the largest accepted file in bytes."""
    megabytes: int = settings.MAX_ATTACHMENT_MB
    return megabytes * MEGABYTE


@limited("uploads", by="author")
def upload(
    *, session: Session | Callable[[], Session], author: User, name: str, size: int, file: File[Any], key: str = ""
) -> Attachment:
    """Store a file as unsent in the author's composer. With a `key`, the same file is stored only once.

    `session` may be a callable that creates the session. It is called after the file has been read, so that a refused
    file leaves no empty session. Raise ServiceError for the file's type or size, too many unsent files, or a file with
    this key that was already sent.
    """
    _require_size(size)
    if not callable(session) and (before := _stored_with(key, session, author)) is not None:
        return before
    spend("upload_megabytes", author.pk, cost=-(-size // MEGABYTE))
    _sweep()
    _require_room(author, size)
    with _locks.hold(author.pk):
        _require_room(author, size)  # other files of the author may have been stored while this one waited
        contents = _read(file.read(limit_bytes() + 1), name)
        row = session() if callable(session) else session
        return _keep_once(key, row, author, names.clean(name), contents)


def remove(*, user: User, attachment_id: str) -> str:
    """Delete an unsent file. Return the id of its session.

    Raise NoSuchAttachment, Forbidden if another user uploaded it, ServiceError if it was sent.
    """
    attachment = fetch(user, attachment_id)
    session_for(user, attachment.session_id, SessionRole.EDITOR)
    if attachment.user_id != user.pk:
        raise Forbidden(_("Only the person who uploaded a file can remove it."))
    if not _discard([attachment]):
        raise _already_sent()
    return attachment.session_id


def read_file(data: bytes, reader: User) -> Contents:
    """Read a file of an imported session. Raise ServiceError for its type or size."""
    with _locks.hold(reader.pk):
        return _read(data)


def keep_with(message: ChatMessage, *, author: User, name: str, contents: Contents, **columns: Any) -> Attachment:
    """Store a file that was read as an attachment of a message, with a new id."""
    return _keep(message.session, author, names.clean(name), contents, message=message, **columns)


def delete_unused(stored: Iterable[str]) -> None:
    """Delete stored files, by their names, unless an attachment still uses them. Forks share files.

    An erasure calls this before it commits. After a crash there can be a row without its file, which the next round
    deletes, but no file without a row. Raise OSError if a file cannot be deleted; the erasure is rolled back then.
    """
    for name in _unused(stored):
        for form in _forms_of(name):
            default_storage.delete(form)


def remove_copies_on_commit(session_id: str, files: Iterable[Attachment]) -> None:
    """Remove the copies of files of removed messages from the session's folder on commit.

    A turn that runs may use the copies of other files, and its next request to a model updates the folder.
    """
    if marks := set(map(copy_mark, files)):
        # The removal is committed: a database error here must not stop its events.
        transaction.on_commit(partial(_remove_copies, session_id, marks), robust=True)


def _remove_copies(session_id: str, marks: set[tuple[int, int]]) -> None:
    remaining = Attachment.objects.filter(session=session_id, message__sequence__isnull=False)
    kept = set(map(copy_mark, remaining.only("size", "created_at")))
    workspace = sandbox(session_id).workspace
    try:
        remove_copies(workspace, ATTACHMENTS, marks - kept)
    except OSError:
        logger.exception("Could not remove the copies of attachments from %s", workspace)


def delete_folder(session_id: str) -> None:
    """Delete the stored files of a session that no attachment uses, and their folder if it is then empty.

    Raise OSError if a file cannot be deleted.
    """
    folder = f"attachments/{session_id}"
    try:
        _folders, files = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    delete_unused(f"{folder}/{name.partition('.')[0]}" for name in files)
    with suppress(OSError):  # forks use files in it
        default_storage.delete(folder)


def delete_old_unsent() -> int:
    """Delete all files that were not sent in time; return how many."""
    count = 0
    while found := _sweep():
        count += found
    return count


@transaction.atomic
def claim(*, message: ChatMessage, attachment_ids: Sequence[str]) -> None:
    """Attach unsent files of its author to a message, in this order. If one is gone, raise ServiceError."""
    wanted = list(dict.fromkeys(attachment_ids))
    if len(wanted) > MAX_PER_MESSAGE:
        words = ngettext("A message can have one file.", "A message can have up to %(count)d files.", MAX_PER_MESSAGE)
        raise Invalid(words % {"count": MAX_PER_MESSAGE})
    mine = _unsent().filter(session=message.session_id, user=message.user_id)
    claimed = [mine.filter(pk=pk).update(message=message, position=place) for place, pk in enumerate(wanted)]
    if not all(claimed):
        raise ServiceError("attachment_gone", _("One of the files is gone or was already sent. Attach it again."))


@transaction.atomic
def give_back(*, message: ChatMessage) -> list[Attachment]:
    """Return the files of a withdrawn message to its author's composer, as unsent. They expire like new uploads."""
    files = list(message.attachments.defer("text").order_by("position"))
    message.attachments.update(message=None, created_at=timezone.now())
    return files


def _require_room(author: User, size: int) -> None:
    require_storage(author, size)
    if _unsent().filter(user=author).count() >= MAX_UNSENT:
        raise ServiceError("too_many_unsent", _("Too many unsent files. Send or remove some first."))


def _require_size(size: int) -> None:
    if size > limit_bytes():
        raise TooLarge


def _read(data: bytes, name: str = "") -> Contents:
    _require_size(len(data))
    try:
        return sniffing.read(data)
    except Unusable as error:
        if error.problem == "unsupported" and is_named_as_text(name):
            raise ServiceError(error.problem, _("The file contains binary data.")) from None
        raise ServiceError(error.problem, _WORDS[error.problem]()) from None


_WORDS: dict[Problem, Callable[[], str]] = {
    "empty": lambda: _("The file is empty."),
    "unsupported": lambda: _("Unsupported file type. Use images, PDF or text."),
    "broken_image": lambda: _("The image is damaged."),
    "too_many_pixels": lambda: _("The image has too many pixels. Make it smaller."),
    "broken_pdf": lambda: _("The PDF file is damaged."),
    "unavailable": lambda: _("Too many files are being processed. Try again in a minute."),
    "locked_pdf": lambda: _("The PDF file is password-protected. Save it without a password."),
}


def _keep_once(key: str, session: Session, author: User, name: str, contents: Contents) -> Attachment:
    """Store a file, or return the unsent one that was stored with the same key. Raise ServiceError if it was sent."""
    if not key:
        return _keep(session, author, name, contents)
    if (before := _stored_with(key, session, author)) is not None:
        return before
    try:
        return _keep(session, author, name, contents, pk=_id_of_key(key, session, author))
    except IntegrityError:
        if (quicker := _stored_with(key, session, author)) is None:
            raise
        return quicker


def _stored_with(key: str, session: Session, author: User) -> Attachment | None:
    """Return the unsent file that was stored with a key. Raise ServiceError if it was sent."""
    stored = Attachment.objects.filter(pk=_id_of_key(key, session, author)).first() if key else None
    if stored is not None and stored.message_id is not None:
        raise _already_sent()
    return stored


def _id_of_key(key: str, session: Session, author: User) -> str:
    return id_of_key("a", user=author, purpose=f"file {session.pk}", key=key)


def _already_sent() -> ServiceError:
    return ServiceError("already_sent", _("This file was already sent."))


def _keep(session: Session, author: User, name: str, contents: Contents, **columns: Any) -> Attachment:
    attachment = Attachment(
        session=session,
        user=author,
        name=name,
        kind=contents.kind,
        media_type=contents.media_type,
        size=len(contents.data),
        width=contents.width,
        height=contents.height,
        pages=contents.pages,
        text=contents.text,
        **columns,
    )
    # The name is set first, so that a file that was written in part, on a full disk, can be deleted.
    attachment.file.name = stored = attachment.file.field.generate_filename(attachment, name)
    with discard_after_error(*_forms_of(stored)):
        for form, data in (("", contents.data), (THUMB, contents.thumb), (MODEL_IMAGE, contents.model_image)):
            if data:
                default_storage.save(stored + form, ContentFile(data))
        with transaction.atomic():
            attachment.save(force_insert=True)
    return attachment


def _unsent() -> QuerySet[Attachment]:
    return Attachment.objects.filter(message=None)


def _sweep() -> int:
    """Delete some of the files that were not sent in time; return how many."""
    old = _unsent().filter(created_at__lt=timezone.now() - UNSENT_KEPT)
    return _discard(old[:SWEPT_AT_ONCE])


def _discard(attachments: Iterable[Attachment]) -> int:
    """Delete attachments that are still unsent, and stored files without a row; return how many."""
    deleted = [one for one in attachments if _unsent().filter(pk=one.pk).delete()[0]]
    for name in _unused(map(stored_name, deleted)):
        discard_files(*_forms_of(name))
    return len(deleted)


def _unused(stored: Iterable[str]) -> set[str]:
    names = set(stored)
    return names - set(Attachment.objects.filter(file__in=names).values_list("file", flat=True))


def _forms_of(name: str) -> list[str]:
    return [name + form for form in FORMS]
