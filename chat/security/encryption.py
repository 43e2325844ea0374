"""Encryption of stored secrets that must be read again. The key is derived from SECRET_KEY."""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class DecryptionError(Exception):
    """The text was encrypted with a key that is not configured any more."""


def encrypt(text: str) -> str:
    return _cipher(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).encrypt(text.encode()).decode()


def decrypt(text: str) -> str:
    """Decrypt a text with SECRET_KEY or a fallback. Raise DecryptionError."""
    from cryptography.fernet import InvalidToken  # as below

    try:
        return _cipher(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).decrypt(text.encode()).decode()
    except InvalidToken as error:
        raise DecryptionError("encrypted with another SECRET_KEY") from error


@cache
def _cipher(*secrets: str) -> MultiFernet:
    from cryptography.fernet import Fernet, MultiFernet  # 5 MB of memory, which most processes never need

    keys = [sha256(b"parley.encryption\0" + secret.encode()).digest() for secret in secrets]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
