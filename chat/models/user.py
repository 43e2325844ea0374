"""People."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person; `display_name` is what others see beside their messages."""

    display_name = models.CharField(max_length=80, blank=True)

    @property
    def sender(self) -> str:
        """The name on this person's messages (MSG-04)."""
        return self.display_name or self.get_full_name() or self.username or "User"
