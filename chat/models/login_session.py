"""The browsers that are signed in."""

from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class LoginSession(AbstractBaseSession):
    """A browser's session. `session_key` holds a hash: reading the table signs nobody in.

    `user` is who is signed in, or who has passed the first step of signing in and still owes the second factor.
    """

    session_key = models.CharField(primary_key=True, max_length=64)
    # Without a constraint: Django's store takes an IntegrityError for a key in use and would try others for ever.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+", db_constraint=False)

    class Meta:
        verbose_name = "login"
