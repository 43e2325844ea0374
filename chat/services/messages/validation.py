"""Validate texts: they are stored unchanged, or rejected (MSG-12)."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chat.errors import Invalid, ServiceError
from chat.runs.sanitize import MAX_DEPTH


def validate_message(text: str, *, may_be_empty: bool = False) -> str:
    """Check that a message's text is not empty, and validate it as `validate_text` does. Return it."""
    if not (may_be_empty or text.strip()):
        raise ServiceError("empty", _("The message is empty."))
    return validate_text(text)


def validate_text(text: str) -> str:
    """Validate a text that may be empty. Return it. Raise ServiceError if it is too long or has invalid characters."""
    if len(text) > settings.MAX_MESSAGE_CHARS:
        message = _("The message has %(count)s characters; the limit is %(limit)s. Shorten or split it.")
        raise ServiceError(
            "too_long", message % {"count": f"{len(text):,}", "limit": f"{settings.MAX_MESSAGE_CHARS:,}"}
        )
    return validate_characters(text)


def validate_characters(text: str) -> str:
    """Reject characters that databases and browsers do not support: NUL and lone surrogates. Return the text."""
    if "\0" in text:
        raise ServiceError("not_storable", _("The text contains NUL characters, which can’t be stored. Remove them."))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ServiceError(
            "not_storable", _("The text contains invalid Unicode (lone surrogates). Remove them.")
        ) from None
    return text


def validate_arguments(value: object) -> dict[str, Any]:
    """Validate a tool's arguments. Return them. Raise ServiceError."""
    if not isinstance(value, dict):
        raise Invalid(_("The arguments of a tool must be a JSON object: {…}."))
    validate_json(value)
    try:
        validate_text(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise Invalid(_("The arguments contain values that JSON doesn’t allow, such as NaN or infinity.")) from error
    return value


def validate_json(value: object, depth: int = 0) -> None:
    """Reject a JSON value that is nested too deeply or has invalid characters. Raise ServiceError."""
    if depth > MAX_DEPTH:
        raise Invalid(_("The arguments are nested too deeply."))
    if isinstance(value, str):
        validate_characters(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            validate_json(name, depth)
            validate_json(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            validate_json(item, depth + 1)
