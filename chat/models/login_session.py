"""Browser sessions."""

from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class LoginSession(AbstractBaseSession):
    """A browser session. `session_key` is a hash of the cookie's key, so a reader of the table cannot sign in with it.

    `user` is the signed-in user, or the user who has given a password but not yet the second factor. `push` is the
    digest of the browser's push subscription.
    """

    session_key = models.CharField(primary_key=True, max_length=64)
    # No constraint, because Django's store treats every IntegrityError as a key in use, and would try other keys
    # forever.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+", db_constraint=False)
    push = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        verbose_name = "login"
