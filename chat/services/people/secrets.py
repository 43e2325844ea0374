"""The secrets in links. Only their hashes are stored, so that reading the database gives no access."""

import hashlib


def hashed(token: str) -> str:
    """Return the form in which a token is stored and found again."""
    return hashlib.sha256(token.encode()).hexdigest()
