"""User accounts."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat import names

# Cleaning a name can make it longer. All name columns hold at least this many characters.
SHOWN_NAME = 80


def picture_place(user: User, filename: str) -> str:
    """Return the path of a picture in the storage. Each upload has a new name, so that browsers can cache pictures."""
    return f"pictures/{user.pk}-{secrets.token_hex(8)}"


class User(AbstractUser):
    """A user account. `display_name` and `picture` are what others see beside the user's messages.

    An empty `language` or `theme` follows the browser. `workspace` is the workspace that the user has selected, if they
    are still a member of it; `chat/services/people/workspaces.py` chooses another one if not. `can_own_workspace` is
    false for accounts that were made with an invitation: they get no workspace, and cannot start sessions until they
    are members of one.
    """

    class Theme(models.TextChoices):
        LIGHT = "light"
        DARK = "dark"

    class Clock(models.TextChoices):
        """The format of times: 24 or 12 hours."""

        HOURS_24 = "24"
        HOURS_12 = "12"

    class SendKey(models.TextChoices):
        """The key that sends a message. The other one inserts a line break."""

        ENTER = "enter"
        CTRL_ENTER = "ctrl_enter"

    display_name = models.CharField(_("display name"), max_length=80, blank=True)
    picture = models.FileField(upload_to=picture_place, max_length=255, blank=True)
    language = models.CharField(max_length=10, blank=True)
    theme = models.CharField(max_length=5, choices=Theme.choices, blank=True)
    clock = models.CharField(max_length=2, choices=Clock.choices, default=Clock.HOURS_24)
    send_key = models.CharField(max_length=10, choices=SendKey.choices, default=SendKey.ENTER)
    notify = models.BooleanField(default=False)
    workspace = models.ForeignKey("chat.Workspace", models.SET_NULL, null=True, blank=True, related_name="+")
    can_own_workspace = models.BooleanField(_("can have their own workspace"), default=True, db_default=True)
    # What staff changed in this account, as objects with "kind", "by" and "at", until the user dismisses it. Every page
    # shows it, so it is a column and not a table.
    account_notices = models.JSONField(null=True, editable=False)

    class Meta(AbstractUser.Meta):
        verbose_name = _("person")  # type: ignore[assignment]  # the stub of AbstractUser.Meta has no lazy texts
        verbose_name_plural = _("people")  # type: ignore[assignment]  # likewise
        abstract = False
        permissions = (
            ("erase_user", "Can erase people permanently"),
            ("reset_second_factor", "Can reset two-step verification of people"),
        )

    def clean(self) -> None:
        """Clean the names that others see, and reject a new user name that could be mistaken for another one."""
        super().clean()
        for name in ("display_name", "first_name", "last_name"):
            setattr(self, name, names.clean(getattr(self, name))[:SHOWN_NAME])
        is_kept = not self._state.adding and type(self).objects.filter(pk=self.pk, username=self.username).exists()
        if not is_kept and names.mixes_scripts(self.username):
            raise ValidationError(
                {
                    "username": gettext(
                        "Use letters of a single alphabet in a user name. "
                        "Letters of different alphabets can look the same."
                    )
                }
            )

    @property
    def sender(self) -> str:
        """The name on this user's messages (MSG-04)."""
        return self.display_name or self.get_full_name() or self.username or "User"
