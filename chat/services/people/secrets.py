"""Hash the secrets of links and tokens. Only hashes are stored, so that a copy of the database gives no access."""

import hashlib


def hash_token(token: str) -> str:
    """Return the hash under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
