"""Idempotency keys: a request that a client repeats with the same key is executed once (MSG-02)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from django.db import IntegrityError
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from chat import ids
from chat.errors import Busy, ServiceError
from chat.models import Session, User
from chat.services.messages.validation import validate_characters

MAX_KEY_LENGTH = 100


def create_once(
    *,
    user: User,
    purpose: str,
    key: str | None,
    request: Mapping[str, object],
    make: Callable[[str, str | None], Session],
) -> tuple[Session, bool]:
    """Create a session once per key. Return the session, and whether it existed already.

    A key belongs to a user and a `purpose`. Without a key each call creates a session. `make` gets the session's id and
    the digest to store with it, and creates the row in its own transaction. Raise ServiceError if the session of
    the key is deleted or still being copied, or if the key was used for another `request`. The key stays free if `make`
    raises.
    """
    if not key:
        return make(ids.session_id(), None), False
    session_id, digest = id_of_key("s", user=user, purpose=purpose, key=key), request_digest(request)
    if (before := _made_before(session_id, digest)) is not None:
        return before, True
    try:
        return make(session_id, digest), False
    except IntegrityError:
        if (quicker := _made_before(session_id, digest)) is None:
            raise
        return quicker, True


def id_of_key(kind: str, *, user: User, purpose: str, key: str) -> str:
    """Return the id of the row that a user's key creates. It cannot be computed without the server's secret.

    `kind` is the letter of the id, as in `chat/ids.py`. As the id is the primary key, a repeated request cannot create
    a second row.
    """
    text = f"{user.pk}\n{purpose}\n{validate_characters(key)}"
    return f"{kind}_" + salted_hmac("chat.services.idempotency", text, algorithm="sha256").hexdigest()[:24]


def request_digest(request: Mapping[str, object]) -> str:
    """Return a keyed digest of a request's fields. The secret key prevents guessing of short texts."""
    written = json.dumps(request, sort_keys=True)
    return salted_hmac("chat.services.idempotency.request", written, algorithm="sha256").hexdigest()


def require_same_request(kept: str | None, digest: str | None) -> None:
    """Raise ServiceError "key_taken" if a key was used for another request. Old rows have no digest and pass."""
    if kept and kept != digest:
        raise ServiceError("key_taken", _("This key was used for a different request. Use a new key."))


def _made_before(session_id: str, digest: str) -> Session | None:
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        return None
    require_same_request(session.key_digest, digest)
    if session.deleted_at is not None:  # maybe being erased, with `building_until`
        raise ServiceError("key_taken", _("The session created with this key is deleted. Use a new key."))
    if session.building_until is not None:
        raise Busy(_("This session is still being copied. Try again in a moment."))
    return session
