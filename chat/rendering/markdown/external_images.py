"""Pictures from elsewhere: a place that loads one once the reader asks for it, by an address that only we can make.

Loading it from its own server would tell that server who reads what; so Parley fetches it, and only what a message
holds: the signature says so.
"""

from functools import cache, lru_cache
from urllib.parse import urlsplit

from django.core.signing import Signer
from django.utils.crypto import constant_time_compare, salted_hmac
from markdown_it.common.utils import escapeHtml

_SALT = "chat.pictures"
MAX_ALT = 200
_keys: list[str] = []


@cache
def key() -> str:
    """Return the key that signs addresses. Processes that draw get it, and not the secret that it is made of."""
    return _keys[0] if _keys else salted_hmac(_SALT, "key", algorithm="sha256").hexdigest()


def use_key(given: str) -> None:
    """Sign with this key from now on; for a process that has no settings."""
    if _keys != [given]:
        _keys[:] = [given]
        key.cache_clear()


@lru_cache(maxsize=1_000)
def signature(address: str) -> str:
    """Sign the address of a picture."""
    return Signer(key=key(), salt=_SALT, fallback_keys=[]).signature(address)


def is_signed(address: str, given: str) -> bool:
    """Tell whether this address stood in a message that was drawn here."""
    return constant_time_compare(signature(address), given)


def place(address: str, alt: str) -> str:
    """Draw where a picture will be: a button that loads it, and a link to where it is."""
    parts = urlsplit(address)
    name = alt.strip() or parts.path.rpartition("/")[2] or parts.netloc
    return (
        f'<span class="ext-img"><button type="button" class="load" data-action="load-picture"'
        f' data-picture="{signature(address)}"><bdi>{escapeHtml(name[:MAX_ALT])}</bdi></button>'
        f'<a href="{escapeHtml(address)}">{escapeHtml(parts.netloc)}</a></span>'
    )
