"""Check at the start that this process has the same SECRET_KEY as the others, because all must share one.

The database has a mark of the key, from which the key cannot be computed. A process with another key, and without the
shared one among its SECRET_KEY_FALLBACKS, would sign out the users of the other processes and could not decrypt their
data.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection
from django.utils.crypto import salted_hmac

from chat.models import Installation

SALT = "chat.installation"
CHANGED = (
    "SECRET_KEY has changed since the last start: all users must sign in again, and two-step verification must be "
    "reset for each account that has it. To avoid this, set SECRET_KEY_FALLBACKS to the earlier key."
)


class WrongKeyError(Exception):
    """The key differs from that of the other processes. The message states what to do."""


def mark_of(key: str) -> str:
    """Return a digest that shows whether two keys are equal. The key cannot be computed from it."""
    return salted_hmac(SALT, "key", secret=key, algorithm="sha256").hexdigest()[:32]


def require_own_key() -> str:
    """Check that SECRET_KEY is that of the installation. Return a notice for the operator, or "". Raise WrongKeyError.

    Call it in one process at a time. On SQLite, which only one machine uses, a new key is accepted, because no other
    process can have the old one.
    """
    known = _known()
    if known is None or known == mark_of(settings.SECRET_KEY):
        return ""
    fits = not known or known in map(mark_of, settings.SECRET_KEY_FALLBACKS)
    if not fits and connection.vendor != "sqlite":
        raise WrongKeyError(
            "SECRET_KEY differs from that of the other processes on this database. Set it to the same value in all of "
            "them; a key that Parley generated is in PARLEY_DATA/secret_key. To change the key, set "
            "SECRET_KEY_FALLBACKS to the earlier one. If that is lost, stop all processes and run manage.py acceptkey."
        )
    accept_key()
    return "" if fits else CHANGED


def require_known_key() -> None:
    """Raise WrongKeyError if neither SECRET_KEY nor a fallback is the key of the installation. Change nothing."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    if (known := _known()) and known not in map(mark_of, keys):
        raise WrongKeyError(
            "SECRET_KEY is not that of the servers on this database. Set SECRET_KEY and PARLEY_DATA to their values; a "
            "key that Parley generated is in PARLEY_DATA/secret_key."
        )


def _known() -> str | None:
    """Return the stored mark, "" if no process has stored one, or None if no server has started on this database."""
    return Installation.objects.values_list("key_mark", flat=True).first()


def accept_key() -> bool:
    """Store the mark of this process's key as the installation's. Return False if the installation has no row yet."""
    return bool(Installation.objects.update(key_mark=mark_of(settings.SECRET_KEY)))


def forget_key() -> None:
    """Clear the stored mark, so that the next process that starts stores its own."""
    Installation.objects.update(key_mark="")
