"""What staff do with a session or one of its messages by a button; each leads back to where the button was."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_POST

from chat import ids
from chat.admin import audit_log, session_page
from chat.admin.list_actions import archive_one, restore_one, stop_one, undelete_one
from chat.admin.message_rows import page_with
from chat.admin.permissions import Pages, StaffRequest, require_messages, session_or_404
from chat.errors import NoSuchMessage, ServiceError
from chat.models import ChatMessage, MessageRole, Session, User
from chat.services.messages import editing
from chat.services.runs import attempts, control
from chat.services.sessions import forking
from chat.services.transaction import SessionTransaction

UNDELETE = "undelete"
OF_SESSIONS: dict[str, Callable[[User, Session], bool]] = {
    "stop": stop_one,
    "archive": archive_one,
    "restore": restore_one,
    UNDELETE: undelete_one,
}


class Deed(StrEnum):
    """What can be done with a message."""

    EXCLUDE = "exclude"
    INCLUDE = "include"
    REMOVE = "remove"
    PUT_BACK = "put_back"
    RETRY = "retry"
    RESTORE_ATTEMPT = "restore_attempt"
    FORK = "fork"


# What withdraws messages, and asks first how many.
ASKING = (Deed.RETRY, Deed.RESTORE_ATTEMPT)


# Django's words for what became of an object, and the field that it concerns.
LOGGED: dict[Deed, tuple[str, list[str] | None]] = {
    Deed.EXCLUDE: ("changed", [gettext_noop("In context: excluded")]),
    Deed.INCLUDE: ("changed", [gettext_noop("In context: included")]),
    Deed.REMOVE: ("deleted", None),
    Deed.PUT_BACK: ("changed", [gettext_noop("Removal: undone")]),
    Deed.RETRY: ("changed", [gettext_noop("Answer")]),
    Deed.RESTORE_ATTEMPT: ("added", None),
}


@require_POST
def do(request: StaffRequest, session_id: str) -> HttpResponse:
    """Do what the pressed button says: a deed, and for messages the message's id after a space."""
    deed, _space, message_id = request.POST.get("deed", "").partition(" ")
    session = session_or_404(request, session_id, needs_change=True, is_deleted=deed == UNDELETE)
    if deed in OF_SESSIONS:
        return _with_session(request, session, OF_SESSIONS[deed])
    if deed not in list(Deed):
        return HttpResponseBadRequest("deed")
    require_messages(request.user, change=deed != Deed.FORK)
    return _with_message(request, session, Deed(deed), message_id)


def _with_session(request: StaffRequest, session: Session, deed: Callable[[User, Session], bool]) -> HttpResponse:
    try:
        with transaction.atomic():
            deed(request.user, session)
    except ServiceError as refused:
        messages.error(request, refused.message)
    return HttpResponseRedirect(_back(request, session))


def _with_message(request: StaffRequest, session: Session, deed: Deed, message_id: str) -> HttpResponse:
    try:
        row = message_of(session, message_id)
        if deed in ASKING and request.POST.get("sure") != str(session.revision):
            return _ask(request, session, row, deed)
        if deed == Deed.FORK:  # a large one takes several transactions
            return _fork(request, session, row)
        with transaction.atomic():
            if deed in ASKING and SessionTransaction.lock(session.pk).session.revision != session.revision:
                return _ask(request, session_or_404(request, session.pk, needs_change=True), row, deed)
            _carry_out(request.user, session, row, deed)
    except ServiceError as refused:
        messages.error(request, refused.message)
        return HttpResponseRedirect(_back(request, session))
    if deed == Deed.RETRY:
        messages.success(
            request, _("The agent is answering again. You can find the replaced messages under Removed messages.")
        )
    row.refresh_from_db(fields=["sequence"])
    return HttpResponseRedirect(_back(request, session, row))


def _fork(request: StaffRequest, session: Session, row: ChatMessage) -> HttpResponse:
    """Fork and show the fork. Raises ServiceError."""
    made = forking.fork(session=session, author=request.user, message_id=row.pk)
    # A fork is the reader's own: reading it is not logged.
    audit_log.note_reading(request.user, session, opens=False)
    audit_log.note(request.user, session, audit_log.FORKED)
    messages.success(request, _("This is your fork of the session."))
    return HttpResponseRedirect(session_page.address(made.pk))


def _carry_out(user: User, session: Session, row: ChatMessage, deed: Deed) -> None:
    """Do it through the services, and log what has changed."""
    about: dict[str, Any] = {"session": session, "author": user, "message_id": row.pk}
    has_changed = True
    match deed:
        case Deed.EXCLUDE | Deed.INCLUDE:
            has_changed = editing.include(**about, included=deed == Deed.INCLUDE)
        case Deed.REMOVE:
            editing.remove(**about, as_staff=True)
        case Deed.PUT_BACK:
            has_changed = editing.restore(**about, as_staff=True)
        case Deed.RETRY:
            control.retry_here(**about)
        case Deed.RESTORE_ATTEMPT:
            attempts.restore_attempt(session=session, author=user, attempt=row.attempt)
        case Deed.FORK:
            raise AssertionError("_fork does it")
    if has_changed:
        audit_log.note_message(user, row, *LOGGED[deed])


def message_of(session: Session, message_id: str) -> ChatMessage:
    """Fetch a message of a session, a removed one too. Raises NoSuchMessage."""
    rows = ChatMessage.objects.select_related("session").filter(session=session)
    row = rows.filter(pk=message_id).first() if ids.may_be_one(message_id) else None
    if row is None:
        raise NoSuchMessage
    return row


def _ask(request: StaffRequest, session: Session, row: ChatMessage, deed: Deed) -> HttpResponse:
    """Ask for a confirmation that says what is withdrawn. Raises ServiceError."""
    about: dict[str, Any] = {"session": session, "author": request.user, "preview": True}
    if deed == Deed.RETRY:
        title, found = _("Retry from here?"), control.retry_here(**about, message_id=row.pk)
    else:
        title, found = _("Restore these messages?"), attempts.restore_attempt(**about, attempt=row.attempt)
    values = {
        **session_page.frame(request, session, title),
        "row": row,
        "deed": deed,
        "found": found,
        "is_answer": row.role not in (MessageRole.USER, MessageRole.SYSTEM),
        "back": _back(request, session, row),
    }
    return render(request, "admin/chat/session/retry.html", values)


def _back(request: StaffRequest, session: Session, row: ChatMessage | None = None) -> str:
    """The page from which the button was pressed, at the message."""
    if row is not None and row.sequence is not None:
        return session_page.address(session.pk, f"?p={page_with(row)}#{row.pk}")
    here = request.POST.get("here", "")
    is_ours = here.startswith("?") and here.isascii() and here.isprintable()
    return session_page.address(session.pk, here if is_ours else "?p=")


PAGES: Pages = {"<str:session_id>/do/": (do, "chat_session_do")}
