"""What the links to sessions and to workspaces have in common."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TypedDict

from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import Invalid
from chat.models import User
from chat.services.people.secrets import hashed

INVITATION_LIFE = timedelta(days=7)
MAX_USES = 100


class LinkColumns(TypedDict):
    token_hash: str
    created_by: User
    max_uses: int
    expires_at: datetime


def new_link(author: User, uses: int) -> tuple[str, LinkColumns]:
    """Make a token for a number of users, and the columns of its row. Raises Invalid for less than 1 or over 100."""
    if not 1 <= uses <= MAX_USES:
        raise Invalid(_("A link can be for 1 to %(count)d people.") % {"count": MAX_USES})
    token = secrets.token_urlsafe(24)
    expires_at = timezone.now() + INVITATION_LIFE
    return token, {"token_hash": hashed(token), "created_by": author, "max_uses": uses, "expires_at": expires_at}
