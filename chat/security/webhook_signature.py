"""Signatures of webhooks by the scheme of Standard Webhooks: https://www.standardwebhooks.com"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
# The scheme requires 24 to 64.
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers_for(keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers by which a receiver checks that a request is from this server, unchanged and not old.

    There is a signature for each of the secrets `keys`, separated by spaces. A receiver accepts a request if one of its
    signatures is valid.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(key, signed) for key in keys),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
