"""Who of the staff may see or change a session: the access gate's answers as those of a page."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from chat.access import session_for_staff
from chat.errors import Forbidden, NoSuchSession
from chat.models import Session, User

# Pages of a session, by their addresses below the list's: each with its name.
Pages = dict[str, tuple[Callable[..., HttpResponseBase], str]]


class StaffRequest(HttpRequest):
    """A request behind the admin's own gate."""

    user: User


def session_or_404(
    request: StaffRequest, session_id: str, *, needs_change: bool = False, is_deleted: bool = False
) -> Session:
    """Fetch a session for staff. Raises Http404, PermissionDenied."""
    try:
        return session_for_staff(request.user, session_id, needs_change=needs_change, is_deleted=is_deleted)
    except NoSuchSession as refused:
        raise Http404(str(refused)) from refused
    except Forbidden as refused:
        raise PermissionDenied(str(refused)) from refused


def require_messages(user: User, *, change: bool) -> None:
    """Raises PermissionDenied for staff who may see sessions, but not what is said in them."""
    if not (may_change_messages(user) if change else may_read_messages(user)):
        raise PermissionDenied


def may_read_messages(user: User | AnonymousUser) -> bool:
    return user.has_perm("chat.view_chatmessage") or may_change_messages(user)


def title_for(user: User | AnonymousUser, session: Session) -> str:
    """Return a session's title for staff who may read its messages, of which it is made; its id for others."""
    return (session.title or _("Untitled session")) if may_read_messages(user) else session.pk


def may_change_messages(user: User | AnonymousUser) -> bool:
    return user.has_perm("chat.change_chatmessage")


def may_touch(request: HttpRequest, user: User | None) -> bool:
    """Return whether the requesting user may act on an account. Only superusers may act on accounts of staff."""
    is_superuser = bool(getattr(request.user, "is_superuser", False))
    return user is None or is_superuser or not (user.is_staff or user.is_superuser)


def may_become(request: HttpRequest, user: User | None) -> bool:
    """Return whether the requesting user may create a sign-in link or a password for an account.

    Either lets them sign in as that person, so it takes the permissions to read and change sessions in the admin.
    """
    may_read_sessions = request.user.has_perm("chat.change_session") and may_read_messages(request.user)
    return may_read_sessions and may_touch(request, user)


def may_change(user: User | AnonymousUser, session: Session) -> bool:
    """Whether a session's own fields are open to somebody; nothing of a deleted one is."""
    return user.has_perm("chat.change_session") and session.status != Session.Status.DELETED
