"""Sessions that a program asks for with a key of its own: however often it asks, there is one (MSG-02)."""

from __future__ import annotations

from collections.abc import Callable

from django.db import IntegrityError
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from chat import ids
from chat.models import Session, User
from chat.services.errors import Busy, Refused
from chat.services.texts import exact


def once(*, user: User, purpose: str, key: str | None, make: Callable[[str], Session]) -> tuple[Session, bool]:
    """Let `make` make a session with the id that it is given; returns it, and whether it was there already.

    `key` is the user's own, for one `purpose`; without one each call makes another session. `make` creates the row in
    a transaction of its own. Raises Refused: what the key has made is deleted, or still being copied; and what `make`
    raises, after which the key is free again.
    """
    if not key:
        return make(ids.session_id()), False
    session_id = _named(f"{user.pk}\n{purpose}\n{exact(key)}")
    if (before := _made_before(session_id)) is not None:
        return before, True
    try:
        return make(session_id), False
    except IntegrityError:
        if (quicker := _made_before(session_id)) is None:
            raise
        return quicker, True


def _named(text: str) -> str:
    """The id of what a key makes: nobody without the server's secret can tell it."""
    return "s_" + salted_hmac("chat.services.once", text, algorithm="sha256").hexdigest()[:24]


def _made_before(session_id: str) -> Session | None:
    session = Session.objects.filter(pk=session_id).first()
    if session is not None and session.incomplete_at is not None:
        raise Busy(_("This session is still being copied. Try again in a moment."))
    if session is not None and session.status == Session.Status.DELETED:
        raise Refused("key_taken", _("What this key has made is deleted. Take another key."))
    return session
