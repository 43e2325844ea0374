"""Rate limits: one table of named limits for pages, the API, sockets and the admin.

A limit counts requests in a moving window, per user unless the table states otherwise. The setting LIMITS changes or
removes limits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from hashlib import sha256
from typing import Any, ClassVar, ParamSpec, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from limits import RateLimitItem, RateLimitItemPerSecond
from limits import parse_many as parse_rates

from chat.errors import ServiceError
from chat.limits.counters import counters
from chat.origin import Interface, current_origin

P = ParamSpec("P")
R = TypeVar("R")

MINUTE, HOUR, DAY = 60, 3600, 86_400
# Actions with these origins are not limited, because no client requests them.
UNLIMITED_INTERFACES = (Interface.COMMAND, Interface.AGENT)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `amount` requests in any `seconds`; 0 means no limit. `reason` helps operators to decide about it."""

    amount: int
    seconds: int
    reason: str


RATES: Mapping[str, Rate] = {
    # Guesses. services/people/login_throttle.py has the delay that grows with each wrong guess for one name.
    "sign_ins": Rate(
        200, 10 * MINUTE, "passwords tried from one network, for all user names: an office may share one address"
    ),
    "sign_ins_of_name": Rate(
        8, 10 * MINUTE, "passwords tried for one user name, from one network or one known browser"
    ),
    "passkeys": Rate(
        200, 10 * MINUTE, "passkey sign-ins started from one network: each creates a short-lived session row"
    ),
    "passkey_checks": Rate(30, 10 * MINUTE, "passkeys tried as the second factor of one user"),
    "links": Rate(60, 10 * MINUTE, "sign-in links opened from one network"),
    "joins": Rate(60, HOUR, "accounts created from one network"),
    "join_forms": Rate(60, 10 * MINUTE, "forms for an account sent from one network, including refused ones"),
    "joins_of_invitation": Rate(100, DAY, "accounts created with one invitation"),
    # Actions of users and API clients.
    "requests": Rate(1_200, MINUTE, "API requests with one token, or of one browser's user"),
    "sends": Rate(120, MINUTE, "messages: each may run a model"),
    "turns": Rate(120, MINUTE, "retries, tool calls run again, and queued messages sent now"),
    "changes": Rate(600, MINUTE, "edits, removals and changed settings of sessions: each keeps the earlier version"),
    "sessions": Rate(600, HOUR, "sessions created"),
    "forks": Rate(120, HOUR, "forks: each copies a session"),
    "fork_megabytes": Rate(4_000, HOUR, "megabytes of session files that forks copy: further forks get no files"),
    "uploads": Rate(600, HOUR, "files and profile pictures uploaded: each is read and checked"),
    "upload_megabytes": Rate(4_000, HOUR, "megabytes uploaded"),
    "imports": Rate(60, HOUR, "conversation files read: a large one uses a core for seconds"),
    "import_requests": Rate(600, HOUR, "requests that import conversations of an uploaded file"),
    "exports": Rate(240, HOUR, "sessions and archives of their files exported: each is read as a whole"),
    "searches": Rate(120, MINUTE, "searches: each covers all messages that a user can see"),
    "finds": Rate(240, MINUTE, "searches in one session, sent while a user types, and comparisons of texts"),
    "invitations": Rate(100, HOUR, "invitation links created"),
    "sign_in_links": Rate(200, HOUR, "sign-in links created by one administrator"),
    "mcp_checks": Rate(60, HOUR, "MCP servers tested: each test connects to another machine"),
    "webhook_requests": Rate(120, HOUR, "webhooks tested, and deliveries sent again: each connects to another machine"),
    "tokens": Rate(60, HOUR, "API tokens created"),
    "push_subscriptions": Rate(120, HOUR, "browsers that turn on or renew notifications"),
    "push_tests": Rate(30, HOUR, "test notifications: each connects to another machine"),
}


class RateLimited(ServiceError):
    """Too many requests. `retry_after` is the number of seconds until the next request is accepted."""

    CODE: ClassVar[str] = "rate_limited"

    def __init__(self, seconds: float, words: str = "") -> None:
        wait = max(1, math.ceil(seconds))
        sentence = words or _("Too many requests. Try again in %(wait)s.")
        super().__init__(self.CODE, sentence % {"wait": duration_words(wait)}, retry_after=wait)


@dataclass(frozen=True, slots=True)
class Window:
    """The state of a limit after a request was counted or refused. `resets_in` is in seconds."""

    name: str
    rate: Rate
    is_admitted: bool
    remaining: int
    resets_in: float

    def require(self, words: str = "") -> None:
        """Raise RateLimited if the request was refused. `words` is a sentence with a placeholder "%(wait)s"."""
        if not self.is_admitted:
            raise RateLimited(self.resets_in, words)


def rates() -> Mapping[str, Rate]:
    """Return the table with the changes by the setting LIMITS. Raise ValueError."""
    return _changed_by(settings.LIMITS)


@lru_cache(maxsize=8)
def _changed_by(written: str) -> Mapping[str, Rate]:
    table, changed = dict(RATES), set[str]()
    for part in filter(None, (each.strip() for each in written.split(","))):
        name, is_given, value = (word.strip() for word in part.partition("="))
        if name not in table or not is_given:
            raise ValueError(f"{part!r} does not name a known limit")
        if name in changed:
            raise ValueError(f"{name!r} is set twice")
        changed.add(name)
        reason = table[name].reason
        if value == "0":
            table[name] = Rate(0, 0, reason)
            continue
        item, *others = parse_rates(value)
        if others:
            raise ValueError(f"{part!r} has more than one rate")
        table[name] = Rate(item.amount, item.get_expiry(), reason)
    return table


def count(name: str, *who: object, cost: int = 1) -> Window:
    """Count a request of `who` against a limit. A refused request is not counted."""
    rate = rates()[name]
    if not rate.amount:
        return Window(name, rate, True, 0, 0.0)
    item, key = _item(rate), key_of(name, *who)

    def hit(limiter: Any) -> Window:
        # A request that costs more than the whole limit is accepted if nothing else was counted.
        is_admitted = limiter.hit(item, key, cost=min(cost, rate.amount))
        stats = limiter.get_window_stats(item, key)
        return Window(name, rate, is_admitted, max(0, stats.remaining), max(0.0, stats.reset_time - time.time()))

    return counters().window(hit)


def spend(name: str, *who: object, cost: int = 1) -> None:
    """Count a request against a limit, unless it comes from a command or an agent. Raise RateLimited."""
    if current_origin().interface not in UNLIMITED_INTERFACES:
        count(name, *who, cost=cost).require()


def forget(name: str, *who: object) -> None:
    """Reset the count of a limit for `who`."""
    rate, key = rates()[name], key_of(name, *who)
    if rate.amount:
        counters().window(lambda limiter: limiter.clear(_item(rate), key))


def limited(name: str, *, by: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for services: each call counts against a limit of the user in the argument `by`.

    Place it above `transaction.atomic`, so that no call waits for Redis while it holds a database lock.
    """

    def decorated(service: Callable[P, R]) -> Callable[P, R]:
        @wraps(service)
        def counted(*args: P.args, **kwargs: P.kwargs) -> R:
            spend(name, getattr(kwargs[by], "pk", None))
            return service(*args, **kwargs)

        return counted

    return decorated


def duration_words(seconds: int) -> str:
    """Return a number of seconds in words, rounded up to minutes or hours."""
    if seconds < 2 * MINUTE:
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    minutes = math.ceil(seconds / MINUTE)
    if minutes < 2 * MINUTE:
        return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}
    hours = math.ceil(minutes / MINUTE)
    return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}


def key_of(*parts: object) -> str:
    """Return a key of bounded length. The parts may contain any characters."""
    return sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def _item(rate: Rate) -> RateLimitItem:
    return RateLimitItemPerSecond(rate.amount, rate.seconds)
