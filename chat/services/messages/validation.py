"""Which texts can be kept: exactly as they were written, or not at all (MSG-12)."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chat.errors import Invalid, ServiceError

# No tool nests deeper than this, and code that walks the value stays far from the recursion limit.
MAX_DEPTH = 100


def storable(text: str, *, may_be_empty: bool = False) -> str:
    """Check that a text can be kept exactly as it is. Raises ServiceError."""
    if not (may_be_empty or text.strip()):
        raise ServiceError("empty", _("The message is empty."))
    return bounded(text)


def bounded(text: str) -> str:
    """Check a text that may be empty. Raises ServiceError: too long, unstorable."""
    if len(text) > settings.MAX_MESSAGE_CHARS:
        words = _("The message has %(count)s characters; the limit is %(limit)s. Shorten or split it.")
        raise ServiceError("too_long", words % {"count": f"{len(text):,}", "limit": f"{settings.MAX_MESSAGE_CHARS:,}"})
    return exact(text)


def exact(text: str) -> str:
    """Refuse the characters that no database or browser keeps: NUL and lone surrogates."""
    if "\0" in text:
        raise ServiceError("not_storable", _("The text contains NUL characters, which can’t be stored. Remove them."))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ServiceError(
            "not_storable", _("The text contains invalid Unicode (lone surrogates). Remove them.")
        ) from None
    return text


def storable_object(value: object) -> dict[str, Any]:
    """Check that a tool's arguments can be kept exactly as they are. Raises ServiceError."""
    if not isinstance(value, dict):
        raise Invalid(_("The arguments of a tool must be a JSON object: {…}."))
    check_json(value)
    try:
        bounded(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise Invalid(_("The arguments contain values that JSON doesn’t allow, such as NaN or infinity.")) from error
    return value


def check_json(value: object, depth: int = 0) -> None:
    """Refuse a parsed JSON value that is nested too deeply or holds a text that cannot be kept. Raises ServiceError."""
    if depth > MAX_DEPTH:
        raise Invalid(_("The arguments are nested too deeply."))
    if isinstance(value, str):
        exact(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            check_json(name, depth)
            check_json(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_json(item, depth + 1)
