"""The credentials of subscribers, and a check which of them have ended (LIVE-06)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

from chat.models import LoginSession, User
from chat.security.session_store import hash_key
from chat.services.people import api_tokens


class Login(NamedTuple):
    """A browser's sign-in: its session key, hashed, the user, and their password's hash when the socket opened."""

    key_hash: str
    user_id: int
    auth_hash: str


class Token(NamedTuple):
    """An API token."""

    token_id: int


Credential = Login | Token


def login_of(user: User, session: SessionBase) -> Login | None:
    """Return the login of a user by a browser's session, or None if the session is not stored."""
    key = session.session_key
    return Login(hash_key(key), user.pk, user.get_session_auth_hash()) if key else None


def ended(entries: Iterable[Credential]) -> set[Credential]:
    """Return the credentials that have ended, with three queries at most.

    A credential ends when it expires or is revoked, and when its user signs out, changes the password or is deleted.
    """
    entries = set(entries)
    logins = {entry for entry in entries if isinstance(entry, Login)}
    tokens = {entry for entry in entries if isinstance(entry, Token)}
    alive = api_tokens.alive(token.token_id for token in tokens) if tokens else set()
    revoked = {token for token in tokens if token.token_id not in alive}
    return {*(_signed_out(logins) if logins else ()), *revoked}


def _signed_out(logins: set[Login]) -> set[Login]:
    hashes = {login.key_hash for login in logins}
    sessions = LoginSession.objects.filter(session_key__in=hashes, expire_date__gt=timezone.now())
    alive = set(sessions.values_list("session_key", flat=True))
    users = User.objects.filter(pk__in={login.user_id for login in logins}, is_active=True).only("password")
    current = {user.pk: user.get_session_auth_hash() for user in users}
    return {login for login in logins if login.key_hash not in alive or current.get(login.user_id) != login.auth_hash}
