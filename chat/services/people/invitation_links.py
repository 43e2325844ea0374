"""Functions for links to sessions and to workspaces, and the links that end with a membership."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TypedDict

from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import Invalid
from chat.models import Invitation, Session, User
from chat.services.people.secrets import hash_token
from chat.services.people.security_log import Kind, record

INVITATION_LIFE = timedelta(days=7)
MAX_USES = 100


class LinkColumns(TypedDict):
    token_hash: str
    created_by: User
    max_uses: int
    expires_at: datetime


def new_link(author: User, uses: int) -> tuple[str, LinkColumns]:
    """Return a token for a number of uses, and the columns of its row. Raise Invalid unless it is 1 to MAX_USES."""
    if not 1 <= uses <= MAX_USES:
        raise Invalid(_("A link can be for 1 to %(count)d people.") % {"count": MAX_USES})
    token = secrets.token_urlsafe(24)
    expires_at = timezone.now() + INVITATION_LIFE
    return token, {"token_hash": hash_token(token), "created_by": author, "max_uses": uses, "expires_at": expires_at}


def end_links_to_shared(*, author: User, workspace_id: int, user_id: int) -> None:
    """End the links to a workspace's sessions that are shared with a user, in the caller's transaction.

    A user who is removed may know such a link. Guests have joined with one, and it may have uses left.
    """
    known = Invitation.objects.filter(session__workspace=workspace_id, session__shares__user=user_id)
    for session in Session.objects.filter(pk__in=known.values("session")):
        count, _kinds = Invitation.objects.filter(session=session).delete()
        record(Kind.INVITATION_ENDED, actor=author, person=session.owner_id, target=session, count=count)
