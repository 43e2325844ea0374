"""Find out at the start whether this process has the SECRET_KEY of the others: processes of a team must share one.

The database has a mark of the key, from which the key cannot be computed. A process that has another key, and this one
not among its SECRET_KEY_FALLBACKS, would sign out the users of the others, and could not read what they encrypt.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection
from django.utils.crypto import salted_hmac

from chat.models import Installation

SALT = "chat.installation"
CHANGED = (
    "SECRET_KEY has changed since the last start: all users must sign in again, and two-step verification must be "
    "reset for each account that has it. Set SECRET_KEY_FALLBACKS to the earlier key, and nothing is lost."
)


class WrongKeyError(Exception):
    """The key is not the one of the other processes; the message says what to do."""


def mark_of(key: str) -> str:
    """Return what tells whether two keys are the same, without telling the key."""
    return salted_hmac(SALT, "key", secret=key, algorithm="sha256").hexdigest()[:32]


def require_own_key() -> str:
    """Refuse another SECRET_KEY than that of the installation; return what an operator should know, or "".

    Raises WrongKeyError. Call it in one process at a time. On SQLite, which one machine uses alone, a new key is taken:
    no other process can have the old one.
    """
    known = Installation.objects.values_list("key_mark", flat=True).first()
    mark = mark_of(settings.SECRET_KEY)
    if known is None or known == mark:
        return ""
    fits = not known or known in map(mark_of, settings.SECRET_KEY_FALLBACKS)
    if not fits and connection.vendor != "sqlite":
        raise WrongKeyError(
            "SECRET_KEY is not the one that the other processes of this database have. Set it to the same value "
            "everywhere; if Parley has made it, the file secret_key in their PARLEY_DATA has it. To change it, set "
            "SECRET_KEY_FALLBACKS to the earlier key. If that one is lost, stop all processes and run manage.py "
            "acceptkey."
        )
    accept_key()
    return "" if fits else CHANGED


def accept_key() -> None:
    """Store the mark of this process's key as that of the installation."""
    Installation.objects.update(key_mark=mark_of(settings.SECRET_KEY))


def forget_key() -> None:
    """Let the next start say which key is right."""
    Installation.objects.update(key_mark="")
