"""A user's own preferences: appearance, language, name and picture."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from chat.errors import Invalid
from chat.files import image_processes
from chat.files.contents import Problem, Unusable
from chat.files.user_locks import UserLocks
from chat.limits.quotas import require_disk
from chat.limits.rates import limited
from chat.models import User
from chat.names import clean

SIDE = 256
MAX_PICTURE_SIZE = 10 * 1024 * 1024
MAX_NAME_LENGTH = 80
# Reading a picture can use a CPU core for seconds, so only one picture per user is read at a time.
_locks = UserLocks()


def choices() -> dict[str, tuple[str, ...]]:
    """Return the valid values of each preference; "" follows the browser."""
    return {
        "theme": ("", *User.Theme.values),
        "language": ("", *(code for code, _name in settings.LANGUAGES)),
        "clock": tuple(User.Clock.values),
        "send_key": tuple(User.SendKey.values),
        "notify": ("yes", "no"),
    }


@transaction.atomic
def choose(*, user: User, values: dict[str, str]) -> None:
    """Save a user's preferences, by name. Raise ServiceError for unknown values."""
    known = choices()
    for name, value in values.items():
        if name not in known or value not in known[name]:
            raise Invalid(_("That’s not one of the options."))
        setattr(user, name, value == "yes" if name == "notify" else value)
    user.save(update_fields=list(values))


@transaction.atomic
def rename(*, user: User, name: str) -> None:
    """Change the user's display name, from their next message on. Raise ServiceError."""
    name = clean(name)
    if not name or len(name) > MAX_NAME_LENGTH:
        raise Invalid(_("Enter a name of up to %(count)d characters.") % {"count": MAX_NAME_LENGTH})
    user.display_name = name
    user.save(update_fields=["display_name"])


@limited("uploads", by="user")
def set_picture(*, user: User, upload: UploadedFile[bytes]) -> None:
    """Set the user's picture: cropped to a square and encoded again, so that no metadata of the file is stored."""
    with _locks.hold(user.pk):
        drawn = _square(upload)
    require_disk()
    before = PurePath(user.picture.name or "").name
    user.picture.save("picture", ContentFile(drawn), save=False)
    user.save(update_fields=["picture"])
    _forget(user, before)


def remove_picture(*, user: User) -> None:
    """Remove the picture, so that initials are shown again."""
    before = PurePath(user.picture.name or "").name
    user.picture = ""
    user.save(update_fields=["picture"])
    _forget(user, before)


def _forget(user: User, name: str) -> None:
    if name:
        with suppress(OSError):  # the file only takes space
            user.picture.storage.delete(f"pictures/{name}")


def picture_too_large() -> Invalid:
    return Invalid(_("A picture can be up to %(count)d MB.") % {"count": MAX_PICTURE_SIZE // 1024**2})


def _square(upload: UploadedFile[bytes]) -> bytes:
    if (upload.size or 0) > MAX_PICTURE_SIZE:
        raise picture_too_large()
    try:
        return image_processes.square(upload.read(), SIDE)
    except Unusable as error:
        raise Invalid(_WORDS.get(error.problem, _WORDS["broken_image"])()) from None


_WORDS: dict[Problem, Callable[[], str]] = {
    "too_many_pixels": lambda: _("This picture has too many pixels. Resize it first."),
    "broken_image": lambda: _("Unsupported picture. Use a PNG, JPEG, WebP or GIF file."),
    "unavailable": lambda: _("Too many files are being processed. Try again in a minute."),
}
