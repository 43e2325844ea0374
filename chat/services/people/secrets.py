"""The secrets in links: only their hashes are kept, so that whoever reads the database cannot use them."""

import hashlib


def hashed(token: str) -> str:
    """Return the form in which a token is stored and found again."""
    return hashlib.sha256(token.encode()).hexdigest()
