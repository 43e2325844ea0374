"""Signatures of webhooks by the scheme of Standard Webhooks: https://www.standardwebhooks.com"""

from __future__ import annotations

import base64
import hmac
import secrets

PREFIX = "whsec_"
# The scheme asks for 24 to 64.
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers_for(secret: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers by which a receiver checks that a request is from us, unchanged and not old."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
