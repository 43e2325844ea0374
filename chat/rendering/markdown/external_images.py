"""External images: a placeholder with a button that loads the image through Parley.

If the page loaded the image from its own server, that server would learn about the reader. Parley fetches only
addresses that it has signed, which are the addresses in messages.
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
    """Return the key that signs addresses. Rendering processes get this key, not the secret that it is derived from."""
    return _keys[0] if _keys else salted_hmac(_SALT, "key", algorithm="sha256").hexdigest()


def use_key(given: str) -> None:
    """Sign with this key from now on. For a process without settings."""
    if _keys != [given]:
        _keys[:] = [given]
        key.cache_clear()


@lru_cache(maxsize=1_000)
def signature(address: str) -> str:
    """Sign the address of an image."""
    return Signer(key=key(), salt=_SALT, fallback_keys=[]).signature(address)


def is_signed(address: str, given: str) -> bool:
    """Return whether this address was in a rendered message."""
    return constant_time_compare(signature(address), given)


def placeholder(address: str, alt: str) -> str:
    """Return the placeholder of an image: a button that loads it, and a link to its address."""
    parts = urlsplit(address)
    name = alt.strip() or parts.path.rpartition("/")[2] or parts.netloc
    return (
        f'<span class="ext-img"><button type="button" class="load" data-action="load-picture"'
        f' data-picture="{signature(address)}"><bdi>{escapeHtml(name[:MAX_ALT])}</bdi></button>'
        f'<a href="{escapeHtml(address)}">{escapeHtml(parts.netloc)}</a></span>'
    )
