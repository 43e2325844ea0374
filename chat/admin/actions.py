"""Actions of staff on sessions and messages: those of the session list, and the buttons on a session's pages."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBadRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext
from django.views.decorators.http import require_POST

from chat.access import session_for_staff
from chat.admin import audit_log, exports, session_page
from chat.admin.permissions import Pages, StaffRequest, find_message, require_messages, session_or_404
from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRole, MessageStatus, Session, User
from chat.services.idempotency import create_once
from chat.services.messages import editing, sending
from chat.services.runs import attempts, control
from chat.services.sessions import actions, forking
from chat.services.transaction import SessionTransaction

# A selection can span all pages of the list. One request changes at most this many sessions.
MAX_SESSIONS = 100


def stop_session(user: User, session: Session) -> bool:
    if not control.cancel(session=session, author=user):
        return False
    audit_log.log_change(user, session, audit_log.STOPPED)
    return True


def archive_session(user: User, session: Session) -> bool:
    if session.status == Session.Status.ARCHIVED:
        return False
    actions.set_archived(session=session, author=user, archived=True)
    audit_log.log_change(user, session, audit_log.ARCHIVED)
    return True


def unarchive_session(user: User, session: Session) -> bool:
    if session.status == Session.Status.ACTIVE:
        return False
    actions.set_archived(session=session, author=user, archived=False)
    audit_log.log_change(user, session, audit_log.UNARCHIVED)
    return True


def undelete_session(user: User, session: Session) -> bool:
    if session.status != Session.Status.DELETED:
        return False
    actions.restore_deleted(session=session, author=user)
    audit_log.log_change(user, session, audit_log.UNDELETED)
    return True


# A function that changes a session and logs the change. It returns False if there was nothing to change, and raises
# ServiceError.
StaffAction = Callable[[User, Session], bool]
UNDELETE = "undelete"
SESSION_ACTIONS: dict[str, StaffAction] = {
    "stop": stop_session,
    "archive": archive_session,
    "unarchive": unarchive_session,
    UNDELETE: undelete_session,
}


@admin.action(description=gettext_lazy("Stop the agent"), permissions=["change"])
def stop(model_admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _apply_to_each(request, chosen, stop_session)


@admin.action(description=gettext_lazy("Archive"), permissions=["change"])
def archive(model_admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _apply_to_each(request, chosen, archive_session)


@admin.action(description=gettext_lazy("Restore from the archive"), permissions=["change"])
def unarchive(model_admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _apply_to_each(request, chosen, unarchive_session)


@admin.action(description=gettext_lazy("Restore deleted sessions"), permissions=["change"])
def undelete(model_admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _apply_to_each(request, chosen, undelete_session, are_deleted=True)


@admin.action(description=gettext_lazy("Export as JSON"), permissions=["read_messages"])
def export_json(model_admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> HttpResponseBase:
    return exports.response(request, list(chosen.values_list("pk", flat=True)), "json")


@admin.action(description=gettext_lazy("Export as Markdown"), permissions=["read_messages"])
def export_markdown(model_admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> HttpResponseBase:
    return exports.response(request, list(chosen.values_list("pk", flat=True)), "markdown")


def _apply_to_each(
    request: StaffRequest, chosen: QuerySet[Session], action: StaffAction, *, are_deleted: bool = False
) -> None:
    """Apply an action to each chosen session in its own transaction. Report the number of changes and the errors."""
    ids = list(chosen.values_list("pk", flat=True)[: MAX_SESSIONS + 1])
    if len(ids) > MAX_SESSIONS:
        text = _("Only the first %(count)s sessions were changed.")
        messages.warning(request, text % {"count": MAX_SESSIONS})
        ids = ids[:MAX_SESSIONS]
    if not ids:
        messages.warning(request, _("The selected rows are no longer in this list."))
    errors: list[ServiceError] = []
    changed = 0
    for session_id in ids:
        try:
            with transaction.atomic():
                session = session_for_staff(request.user, session_id, needs_change=True, is_deleted=are_deleted)
                changed += action(request.user, session)
        except ServiceError as error:
            errors.append(error)
    if changed:
        text = ngettext("Updated %(count)s session.", "Updated %(count)s sessions.", changed)
        messages.success(request, text % {"count": changed})
    if unchanged := len(ids) - len(errors) - changed:
        text = ngettext("%(count)s session needed no change.", "%(count)s sessions needed no change.", unchanged)
        messages.info(request, text % {"count": unchanged})
    for message in sorted({error.message for error in errors}):
        messages.error(request, message)


class MessageAction(StrEnum):
    EXCLUDE = "exclude"
    INCLUDE = "include"
    REMOVE = "remove"
    RESTORE = "restore"
    RETRY = "retry"
    RESTORE_ATTEMPT = "restore_attempt"
    FORK = "fork"


# Actions that need a confirmation, because they withdraw messages.
CONFIRMED_ACTIONS = (MessageAction.RETRY, MessageAction.RESTORE_ATTEMPT)


# For each action, the arguments of `audit_log.log_message`: Django's verb for the change, and the changed fields.
LOGGED: dict[MessageAction, tuple[str, list[str] | None]] = {
    MessageAction.EXCLUDE: ("changed", [gettext_noop("In context: excluded")]),
    MessageAction.INCLUDE: ("changed", [gettext_noop("In context: included")]),
    MessageAction.REMOVE: ("deleted", None),
    MessageAction.RESTORE: ("changed", [gettext_noop("Status: restored")]),
    MessageAction.RETRY: ("changed", [gettext_noop("Answer")]),
    MessageAction.RESTORE_ATTEMPT: ("added", None),
}


@require_POST
def perform(request: StaffRequest, session_id: str) -> HttpResponse:
    """Perform the action of the pressed button, then redirect to the page of the button.

    `action` in the form is a key of SESSION_ACTIONS, or a MessageAction followed by a space and the message's id.
    """
    name, _space, message_id = request.POST.get("action", "").partition(" ")
    session = session_or_404(request, session_id, needs_change=True, is_deleted=name == UNDELETE)
    if name in SESSION_ACTIONS:
        return _change_session(request, session, SESSION_ACTIONS[name])
    if name not in list(MessageAction):
        return HttpResponseBadRequest("action")
    require_messages(request.user, change=name != MessageAction.FORK)
    return _change_message(request, session, MessageAction(name), message_id)


def _change_session(request: StaffRequest, session: Session, action: StaffAction) -> HttpResponse:
    try:
        with transaction.atomic():
            action(request.user, session)
    except ServiceError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(_return_url(request, session))


def _change_message(request: StaffRequest, session: Session, action: MessageAction, message_id: str) -> HttpResponse:
    try:
        row = find_message(session, message_id)
        if action in CONFIRMED_ACTIONS and request.POST.get("sure") != str(session.revision):
            return _ask(request, session, row, action)
        if action == MessageAction.FORK:  # forking a large session takes several transactions
            return _fork(request, session, row)
        with transaction.atomic():
            if action in CONFIRMED_ACTIONS and SessionTransaction.lock(session.pk).session.revision != session.revision:
                return _ask(request, session_or_404(request, session.pk, needs_change=True), row, action)
            _apply(request.user, session, row, action)
    except ServiceError as error:
        messages.error(request, error.message)
        return HttpResponseRedirect(_return_url(request, session))
    if action == MessageAction.RETRY:
        messages.success(
            request, _("The agent is answering again. You can find the replaced messages under Removed messages.")
        )
    row.refresh_from_db(fields=["sequence"])
    return HttpResponseRedirect(_return_url(request, session, row))


def _fork(request: StaffRequest, session: Session, row: ChatMessage) -> HttpResponse:
    """Fork a session and redirect to the fork. A form sent twice makes one fork (MSG-02). Raise ServiceError."""
    copy = partial(forking.fork, session=session, author=request.user, message_id=row.pk)
    fork, repeated = create_once(
        user=request.user,
        purpose=f"fork {session.pk} {row.pk} in the admin",
        key=request.POST.get("key"),
        request={},
        make=lambda pk, digest: copy(session_id=pk, key_digest=digest),
    )
    # The user owns the fork, so reading it is not logged. Log that they read the original.
    audit_log.log_reading(request.user, session, is_new=False)
    if not repeated:
        audit_log.log_change(request.user, session, audit_log.FORKED)
    messages.success(request, _("This is your fork of the session."))
    return HttpResponseRedirect(session_page.url_of(fork.pk))


def _apply(user: User, session: Session, row: ChatMessage, action: MessageAction) -> None:
    """Apply an action to a message through the services and log the change. Raise ServiceError."""
    target: dict[str, Any] = {"session": session, "author": user, "message_id": row.pk}
    has_changed = True
    match action:
        case MessageAction.EXCLUDE | MessageAction.INCLUDE:
            has_changed = editing.set_included(**target, included=action == MessageAction.INCLUDE)
        case MessageAction.REMOVE if row.status == MessageStatus.QUEUED:
            sending.withdraw(**target, as_staff=True)
        case MessageAction.REMOVE:
            editing.remove(**target, as_staff=True)
        case MessageAction.RESTORE:
            has_changed = editing.restore(**target, as_staff=True)
        case MessageAction.RETRY:
            control.retry(**target)
        case MessageAction.RESTORE_ATTEMPT:
            attempts.restore_attempt(session=session, author=user, attempt=row.attempt)
        case MessageAction.FORK:
            raise AssertionError("_fork handles forks")
    if has_changed:
        audit_log.log_message(user, row, *LOGGED[action])


def _ask(request: StaffRequest, session: Session, row: ChatMessage, action: MessageAction) -> HttpResponse:
    """Show a page that asks for confirmation and counts the messages to withdraw. Raise ServiceError.

    The confirmation has the session's revision. If the session changes before it is sent, the page is shown again.
    """
    options: dict[str, Any] = {"session": session, "author": request.user, "preview": True}
    if action == MessageAction.RETRY:
        title, preview = _("Retry from here?"), control.retry(**options, message_id=row.pk)
    else:
        title, preview = _("Restore these messages?"), attempts.restore_attempt(**options, attempt=row.attempt)
    values = {
        **session_page.frame(request, session, title),
        "row": row,
        "action": action,
        "preview": preview,
        "is_answer": row.role not in (MessageRole.USER, MessageRole.SYSTEM),
        "back": _return_url(request, session, row),
    }
    return render(request, "admin/chat/session/retry.html", values)


def _return_url(request: StaffRequest, session: Session, row: ChatMessage | None = None) -> str:
    """Return the URL of the page with the pressed button, scrolled to the message if it is still in the session."""
    if row is not None and row.sequence is not None:
        return session_page.url_of(session.pk, f"?p={session_page.page_number(row)}#{row.pk}")
    here = request.POST.get("here", "")
    is_query = here.startswith("?") and here.isascii() and here.isprintable()
    return session_page.url_of(session.pk, here if is_query else "?p=")


PAGES: Pages = {"<str:session_id>/do/": (perform, "chat_session_do")}
