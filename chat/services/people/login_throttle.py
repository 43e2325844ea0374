"""Limit guesses of passwords and codes.

Guesses of a password are counted by network and by name. From all networks together, a name has ten guesses a day, and
further guesses only after a delay that doubles each time. Users are not locked out, because browsers in which the user
has signed in before have a separate count, and passkeys and sign-in links work without a password.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Mapping

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from chat.limits import rates
from chat.limits.counters import Storage, counters
from chat.limits.rates import DAY, RateLimited, key_of
from chat.models import User
from chat.origin import address_of, network_of

FREE_GUESSES = 10
MAX_DELAY = 900
# The most users that a browser's cookie remembers. The cookie lasts for a year after the last sign-in.
MAX_KNOWN = 5
KNOWN_FOR = 365 * DAY
SALT = "chat.services.people.login_throttle"


def begin(*, username: str, request: HttpRequest) -> None:
    """Count a guess of a password before it is checked, so that simultaneous guesses count, too.

    Raise RateLimited.
    """
    network, name, words = network_of(address_of(request)), _folded(username), _wrong_passwords()
    rates.count("sign_ins", network).require(words)
    if (browser := _known_in(request).get(_mark(name))) is not None:
        rates.count("sign_ins_of_name", "browser", browser, name).require(words)
        return
    rates.count("sign_ins_of_name", network, name).require(words)
    _delay(key_of("name", name), words)


def password_was_right(*, username: str, request: HttpRequest) -> None:
    """Reset the counts after a correct password."""
    name = _folded(username)
    browser = _known_in(request).get(_mark(name))
    who = ("browser", browser) if browser is not None else (network_of(address_of(request)),)
    rates.forget("sign_ins_of_name", *who, name)
    if browser is None:
        _forget_delay(key_of("name", name))


def begin_confirmation(*, user: User) -> None:
    """Count a guess of a signed-in user's password, because another person may use their browser.

    Raise RateLimited.
    """
    _delay(key_of("confirmation", user.pk), _wrong_passwords())


def reset_confirmation(*, user: User) -> None:
    """Reset the count of `begin_confirmation`."""
    _forget_delay(key_of("confirmation", user.pk))


def begin_code(*, user: User) -> None:
    """Count a guess of a second factor's code, from any network. Raise RateLimited."""
    _delay(key_of("code", user.pk), _("Too many wrong codes. Try again in %(wait)s."))


def code_was_right(*, user: User) -> None:
    """Reset the count of `begin_code`."""
    _forget_delay(key_of("code", user.pk))


def delay_after(guesses: int) -> int:
    """Return the delay in seconds before the next guess, by the number of wrong guesses."""
    beyond = guesses - FREE_GUESSES
    return 0 if beyond < 0 else min(2 ** min(beyond + 1, 32), MAX_DELAY)


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Add a user to the cookie of users who have signed in with this browser."""
    known = dict(_known_in(request))
    mark = _mark(_folded(user.get_username()))
    browser = known.pop(mark, None) or get_random_string(16)
    kept = dict([*known.items(), (mark, browser)][-MAX_KNOWN:])
    response.set_cookie(
        _cookie(), signing.dumps(kept, salt=SALT), KNOWN_FOR, secure=settings.HTTPS, httponly=True, samesite="Lax"
    )


def _delay(key: str, words: str) -> None:
    """Count a guess, and reject it during the delay after the previous one."""

    def guess(storage: Storage) -> float:
        if not storage.get(f"delay/{key}"):
            delay = delay_after(storage.incr(f"guesses/{key}", DAY))
            if not delay or storage.incr(f"delay/{key}", delay) == 1:  # else another guess was faster
                return 0.0
        return max(1.0, storage.get_expiry(f"delay/{key}") - time.time())

    if seconds := counters().storage(guess):
        raise RateLimited(seconds, words)


def _forget_delay(key: str) -> None:
    def forget(storage: Storage) -> None:
        storage.clear(f"guesses/{key}")
        storage.clear(f"delay/{key}")

    counters().storage(forget)


def _known_in(request: HttpRequest) -> Mapping[str, str]:
    try:
        known = signing.loads(request.COOKIES.get(_cookie(), ""), salt=SALT, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return {}
    return known if isinstance(known, dict) else {}


def _cookie() -> str:
    return f"{settings.COOKIE_PREFIX}parley_browser"


def _folded(username: str) -> str:
    return unicodedata.normalize("NFKC", username).casefold()


def _mark(name: str) -> str:
    """Return a digest of a name for the cookie, because others could read the cookie on a shared computer."""
    return key_of(settings.SECRET_KEY, name)[:16]


def _wrong_passwords() -> str:
    return _("Too many wrong passwords. Try again in %(wait)s.")
