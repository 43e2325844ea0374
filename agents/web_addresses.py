"""Parse web addresses in the texts of others."""

from __future__ import annotations

from yarl import URL


def parse_address(text: str) -> URL:
    """Return an address. Raise ValueError if it is malformed."""
    try:
        return URL(text)
    except IndexError as error:  # yarl raises it for http://[a]@
        raise ValueError("the address is malformed") from error
