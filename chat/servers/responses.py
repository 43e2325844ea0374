"""Responses that a server writes itself, because the request is incomplete or not HTTP and reaches no application."""

from __future__ import annotations

import json
from email.utils import formatdate
from http import HTTPStatus

from chat.api.errors import MEDIA_TYPE
from chat.api.middleware import PREFIX

CODES = {400: "malformed", 408: "too_slow", 429: "too_many_connections", 500: "internal", 503: "unavailable"}
SENTENCES = {
    400: "The request is malformed.",
    408: "The request took too long to arrive.",
    429: "Too many connections from this address. Close some, or try again later.",
    500: "Something went wrong. The error was logged.",
    503: "Parley cannot answer right now. Try again.",
}
RETRY_SECONDS = 10
# In bytes. This part of a request is kept to find the address that it is for.
FIRST_BYTES = 256


def response_bytes(status: int, first_bytes: bytes = b"") -> bytes:
    """Return a complete response that ends the connection.

    `first_bytes` are the beginning of the request. Addresses of the API get a problem document, others plain text.
    """
    reason = HTTPStatus(status).phrase
    if _is_for_api(first_bytes):
        problem = {"type": "about:blank", "title": reason, "status": status, "code": CODES[status]}
        body, media_type = json.dumps({**problem, "detail": SENTENCES[status]}), MEDIA_TYPE
    else:
        body, media_type = f"{status} {reason}\n\n{SENTENCES[status]}\n", "text/plain; charset=utf-8"
    lines = [
        f"HTTP/1.1 {status} {reason}",
        f"Date: {formatdate(usegmt=True)}",
        "Server: Parley",
        f"Content-Type: {media_type}",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        lines.append(f"Retry-After: {RETRY_SECONDS}")
    return "\r\n".join([*lines, "", body]).encode("ascii")


def _is_for_api(first_bytes: bytes) -> bool:
    target = first_bytes.split(b"\r\n", 1)[0].partition(b" ")[2]
    return target.startswith(PREFIX.encode())
