"""Checks of what staff may see and change in the admin. Errors of the access gate become 404 and 403."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from chat import ids
from chat.access import session_for_staff
from chat.errors import Forbidden, NoSuchMessage, NoSuchSession
from chat.models import ChatMessage, Session, User

# Views of a session and the names of their URLs, by their routes below the session list.
Pages = dict[str, tuple[Callable[..., HttpResponseBase], str]]


class StaffRequest(HttpRequest):
    """A request of a signed-in member of staff. The admin site refuses other requests."""

    user: User


def session_or_404(
    request: StaffRequest, session_id: str, *, needs_change: bool = False, is_deleted: bool = False
) -> Session:
    """Fetch a session for staff. Raise Http404, PermissionDenied."""
    try:
        return session_for_staff(request.user, session_id, needs_change=needs_change, is_deleted=is_deleted)
    except NoSuchSession as error:
        raise Http404(str(error)) from error
    except Forbidden as error:
        raise PermissionDenied(str(error)) from error


def find_message(session: Session, message_id: str) -> ChatMessage:
    """Fetch a message of a session, including removed ones. Raise NoSuchMessage."""
    rows = ChatMessage.objects.select_related("session").filter(session=session)
    row = rows.filter(pk=message_id).first() if ids.may_be_one(message_id) else None
    if row is None:
        raise NoSuchMessage
    return row


def require_messages(user: User, *, change: bool) -> None:
    """Check that a user may read, or change, the messages of sessions. Raise PermissionDenied."""
    if not (may_change_messages(user) if change else may_read_messages(user)):
        raise PermissionDenied


def may_read_messages(user: User | AnonymousUser) -> bool:
    return user.has_perm("chat.view_chatmessage") or may_change_messages(user)


def title_for(user: User | AnonymousUser, session: Session) -> str:
    """Return a session's title, or its id for staff who may not read messages: a title can repeat their text."""
    return (session.title or _("Untitled session")) if may_read_messages(user) else session.pk


def may_change_messages(user: User | AnonymousUser) -> bool:
    return user.has_perm("chat.change_chatmessage")


def may_touch(request: HttpRequest, user: User | None) -> bool:
    """Return whether the requesting user may act on an account. Only superusers may act on accounts of staff."""
    is_superuser = bool(getattr(request.user, "is_superuser", False))
    return user is None or is_superuser or not (user.is_staff or user.is_superuser)


def may_become(request: HttpRequest, user: User | None) -> bool:
    """Return whether the requesting user may create a sign-in link or a password for an account.

    Both allow signing in as that user, so they require the permissions to read and change sessions in the admin.
    """
    may_read_sessions = request.user.has_perm("chat.change_session") and may_read_messages(request.user)
    return may_read_sessions and may_touch(request, user)


def may_change(user: User | AnonymousUser, session: Session) -> bool:
    """Return whether a user may change the fields of a session. No one can change a deleted session."""
    return user.has_perm("chat.change_session") and session.status != Session.Status.DELETED
