"""The session backend (SESSION_ENGINE): Django's, with hashed keys, and with columns for searched values."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from allauth.account.internal.stagekit import LOGIN_SESSION_KEY
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.http import base36_to_int

from chat.models import LoginSession

# Keys in a session: the digest of the browser's push subscription, and the id of the VAPID key that it uses.
PUSH, PUSH_KEY = "push", "push_key"
# A session that is used is prolonged when at least this much of its lifetime has passed.
PROLONGED_AFTER = timedelta(days=1)


def hash_key(session_key: str) -> str:
    """Return the form in which a cookie's key is stored. Keys have 165 random bits, so they need no salt."""
    return sha256(session_key.encode()).hexdigest()


class SessionStore(db.SessionStore):
    """Django's database store over LoginSession. The cookie contains the key, and the row its hash."""

    # When the session expires, as it was loaded.
    _expires_at: datetime | None = None

    @classmethod
    def get_model_class(cls) -> type[LoginSession]:
        return LoginSession

    def _get_session_from_db(self) -> LoginSession | None:
        row = self._rows(self.session_key).filter(expire_date__gt=timezone.now()).first()
        return self._loaded(row)

    async def _aget_session_from_db(self) -> LoginSession | None:
        row = await self._rows(self.session_key).filter(expire_date__gt=timezone.now()).afirst()
        return self._loaded(row)

    def _loaded(self, row: LoginSession | None) -> LoginSession | None:
        if row is None:
            self._session_key = None
        else:
            self._expires_at = row.expire_date
        return row

    def prolong(self) -> bool:
        """Let a loaded session expire SESSION_COOKIE_AGE from now, at most once a day. Return whether this was done.

        Only the time is written, so that concurrent changes of the data stay, and a session that has ended stays ended.
        """
        expires_at = timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE)
        if self._expires_at is None or expires_at - self._expires_at < PROLONGED_AFTER:
            return False
        rows = self._rows(self.session_key).filter(expire_date=self._expires_at)
        return rows.update(expire_date=expires_at) == 1

    def exists(self, session_key: str) -> bool:
        return self._rows(session_key).exists()

    async def aexists(self, session_key: str) -> bool:
        return await self._rows(session_key).aexists()

    def create_model_instance(self, data: dict[str, Any]) -> LoginSession:
        return _make_storable(super().create_model_instance(data), data)

    async def acreate_model_instance(self, data: dict[str, Any]) -> LoginSession:
        return _make_storable(await super().acreate_model_instance(data), data)

    def delete(self, session_key: str | None = None) -> None:
        self._rows(session_key or self.session_key).delete()

    async def adelete(self, session_key: str | None = None) -> None:
        await self._rows(session_key or self.session_key).adelete()

    def _rows(self, session_key: str | None) -> QuerySet[LoginSession]:
        return LoginSession.objects.filter(session_key=hash_key(session_key or ""))


class SeenSession(SessionStore):
    """A browser's session if no response can set its cookie: for sockets, and before a request is read.

    When only an earlier SECRET_KEY verifies a login, Django changes the session key and deletes the old row. The
    browser would not get the new key, so this class does neither.
    """

    # Django's salt contains the name of the class. This class reads the rows of SessionStore, so it uses that name.
    key_salt = f"django.contrib.sessions.{SessionStore.__qualname__}"

    def cycle_key(self) -> None:
        pass

    def flush(self) -> None:
        pass


def _make_storable(row: Any, data: dict[str, Any]) -> LoginSession:
    """Change the row that Django's store has made into one that may be stored."""
    row.session_key = hash_key(row.session_key)
    row.user_id = _user_id(data)
    row.push = data.get(PUSH, "")
    stored: LoginSession = row
    return stored


def _user_id(data: dict[str, Any]) -> int | None:
    if SESSION_KEY in data:
        return int(data[SESSION_KEY])
    half_way = data.get(LOGIN_SESSION_KEY)
    return base36_to_int(half_way["user_pk"]) if half_way else None
