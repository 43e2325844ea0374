"""Web Push messages: encrypted for one browser (RFC 8291), and signed with the key of this installation (RFC 8292).

`cryptography` takes 5 MB of memory, which processes that send nothing do not need, so it is imported at its first use.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct
import time
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

Urgency = Literal["normal", "high"]
# In bytes. Push services accept 4,096. The difference is for the encryption, and for services that accept less.
MAX_PAYLOAD_SIZE = 3_000
# Seconds. Services accept signatures that are valid for a day at most.
SIGNATURE_LIFE = 12 * 3600
SIGNATURE_BUCKET = 6 * 3600
RECORD_SIZE = 4096
KEY_BYTES, POINT_BYTES, AUTH_BYTES = 32, 65, 16
# The order of the curve P-256 (SEC 2, 2.4.2). Private keys are smaller.
CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# Used if no contact is configured. The domain is reserved (RFC 2606). Apple's service refuses it; the others accept it.
NO_SUBJECT = "mailto:unknown@parley.invalid"


@dataclass(frozen=True, slots=True)
class PushTarget:
    """The address to which a browser's messages are sent, and the keys of its `PushSubscription` that encrypt them."""

    endpoint: str
    p256dh: str
    auth: str


@dataclass(frozen=True, slots=True)
class PushRequest:
    """A request to a push service."""

    url: str
    headers: dict[str, str]
    body: bytes


def is_configured() -> bool:
    """Return whether this installation has a key to sign with."""
    return bool(settings.VAPID_PRIVATE_KEY)


def key_id() -> str:
    """Return an id of the key. Subscriptions that were made with another key cannot be used."""
    return sha256(b"parley.vapid\0" + settings.VAPID_PRIVATE_KEY.encode()).hexdigest()[:16]


def public_key() -> str:
    """Return the key with which browsers subscribe (`applicationServerKey`), or "" without one."""
    return _encoded(_point(_private_key(settings.VAPID_PRIVATE_KEY).public_key())) if is_configured() else ""


def check_private_key(text: str) -> None:
    """Raise ValueError if a text is not a private key. This does not load the library, which takes 6 MB."""
    _private_number(text)


def check_target(target: PushTarget) -> None:
    """Raise ValueError if messages cannot be encrypted for a browser."""
    _public_key(_decoded(target.p256dh))
    if len(_decoded(target.auth)) != AUTH_BYTES:
        raise ValueError("the secret has another length")


def request_to(target: PushTarget, payload: bytes, *, seconds: int, urgency: Urgency, topic: str) -> PushRequest:
    """Build the request that delivers a payload. The service keeps it for up to `seconds`.

    A later message with the same `topic` replaces one that was not delivered yet. Raise ValueError if the payload has
    more than MAX_PAYLOAD_SIZE bytes.
    """
    if len(payload) > MAX_PAYLOAD_SIZE:
        raise ValueError(f"{len(payload)} bytes are too many for a push message")
    parts = urlsplit(target.endpoint)
    headers = {
        "Authorization": _authorization(f"{parts.scheme}://{parts.netloc}", settings.VAPID_SUBJECT or NO_SUBJECT),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(seconds),
        "Topic": base64.urlsafe_b64encode(sha256(topic.encode()).digest()[:24]).decode(),
        "Urgency": urgency,
    }
    return PushRequest(target.endpoint, headers, encrypt(payload, target))


def encrypt(payload: bytes, target: PushTarget, private_key: EllipticCurvePrivateKey | None = None) -> bytes:
    """Encrypt a payload as one record of `aes128gcm`. Tests set the private key and, through `os.urandom`, the salt."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    browser = _public_key(_decoded(target.p256dh))
    private_key = private_key or ec.generate_private_key(ec.SECP256R1())
    sender, salt = _point(private_key.public_key()), os.urandom(16)
    info = b"WebPush: info\0" + _point(browser) + sender
    secret = _derive(private_key.exchange(ec.ECDH(), browser), _decoded(target.auth), info, 32)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + struct.pack("!IB", RECORD_SIZE, len(sender)) + sender
    return header + AESGCM(key).encrypt(nonce, payload + b"\x02", None)  # 2 ends the last record


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def _authorization(audience: str, subject: str) -> str:
    bucket = int(time.time()) // SIGNATURE_BUCKET
    return _make_authorization(
        settings.VAPID_PRIVATE_KEY, audience, subject, bucket * SIGNATURE_BUCKET + SIGNATURE_LIFE
    )


@lru_cache(maxsize=64)
def _make_authorization(key: str, audience: str, subject: str, expires: int) -> str:
    import jwt

    private_key = _private_key(key)
    token = jwt.encode({"aud": audience, "exp": expires, "sub": subject}, private_key, algorithm="ES256")
    return f"vapid t={token}, k={_encoded(_point(private_key.public_key()))}"


@lru_cache(maxsize=4)
def _private_key(text: str) -> EllipticCurvePrivateKey:
    """Read a private key. Raise ValueError."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(_private_number(text), ec.SECP256R1())


def _private_number(text: str) -> int:
    key = _decoded(text)
    if len(key) != KEY_BYTES:
        raise ValueError(f"it has {len(key)} bytes instead of {KEY_BYTES}")
    number = int.from_bytes(key)
    if not 0 < number < CURVE_ORDER:
        raise ValueError("its number is out of range")
    return number


def _public_key(point: bytes) -> EllipticCurvePublicKey:
    """Read a browser's key. Raise ValueError."""
    from cryptography.hazmat.primitives.asymmetric import ec

    if len(point) != POINT_BYTES:
        raise ValueError("the key has another length")
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _point(key: EllipticCurvePublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    """Decode Base64 of either alphabet, with or without padding. Raise ValueError."""
    plain = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("it is no Base64") from error
