"""The description of a failure in a server's error body, in the forms that servers use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# The JSON form of a duration in Google's APIs.
SECONDS = re.compile(r"(\d{1,9}(\.\d{1,9})?)s")


def failure_in(body: object) -> object:
    """Return the inner value of {"error": …}, or the body itself. Gemini's compatible endpoint sends it in a list."""
    if isinstance(body, list) and body and isinstance(body[0], Mapping):
        body = body[0]
    return body.get("error", body) if isinstance(body, Mapping) else body


def message_of(failure: Mapping[str, Any]) -> str:
    """Return the server's message. OpenRouter adds the message of the server behind it in another field."""
    message = str(failure.get("message") or failure.get("detail") or failure.get("msg") or "")
    metadata = failure.get("metadata")
    cause = _inner_message(metadata.get("raw")) if isinstance(metadata, Mapping) else ""
    return f"{message}: {cause}" if message and cause else message or cause


def wait_in(content: bytes) -> float | None:
    """Return the seconds for which an error body asks to wait, or None.

    Gemini's compatible endpoint sends them there, in a `google.rpc.RetryInfo`, and no header Retry-After.
    """
    try:
        failure = failure_in(json.loads(content))
    except (ValueError, RecursionError):
        return None
    details = failure.get("details") if isinstance(failure, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        stated = detail.get("retryDelay") if isinstance(detail, Mapping) else None
        if isinstance(stated, str) and (match := SECONDS.fullmatch(stated)):
            return float(match[1])
    return None


def _inner_message(raw: object) -> str:
    """Return the message in an error body that is quoted as a value or as JSON text, or the text itself."""
    try:
        body = json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        body = raw
    failure = failure_in(body)
    if isinstance(failure, Mapping):
        failure = failure.get("message")
    return failure if isinstance(failure, str) else ""
