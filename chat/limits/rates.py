"""How often something may be done: one table of named limits, for pages, the API, sockets and the admin alike.

A limit counts requests in a moving window, for a person unless the table says otherwise. LIMITS in the settings changes
or removes any of them.
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
from limits import parse as parse_rate

from chat.errors import ServiceError
from chat.limits.counters import counters
from chat.origin import Face, current_origin

P = ParamSpec("P")
R = TypeVar("R")

MINUTE, HOUR, DAY = 60, 3600, 86_400
# Actions that no client requests.
UNLIMITED_FACES = (Face.COMMAND, Face.AGENT)


@dataclass(frozen=True, slots=True)
class Rate:
    """`amount` in any `seconds`; 0 is no limit. `reason` is for the operator who considers changing it."""

    amount: int
    seconds: int
    reason: str


RATES: Mapping[str, Rate] = {
    # Guesses. services/people/login_throttle.py has the delay that grows with the wrong guesses of one name.
    "sign_ins": Rate(200, 10 * MINUTE, "passwords tried from one network, for all names: an office may share it"),
    "sign_ins_of_name": Rate(8, 10 * MINUTE, "passwords tried for one name, from one network or one known browser"),
    "passkeys": Rate(100, 10 * MINUTE, "passkey sign-ins from one network: each makes a short session row"),
    "passkey_checks": Rate(30, 10 * MINUTE, "passkeys tried as the second step of one person"),
    "links": Rate(60, 10 * MINUTE, "sign-in links opened from one network"),
    "joins": Rate(60, HOUR, "accounts made from one network"),
    "joins_of_invitation": Rate(100, DAY, "accounts made by one invitation"),
    # What people and programs do.
    "requests": Rate(1_200, MINUTE, "API requests with one token, or of one browser's user"),
    "sends": Rate(120, MINUTE, "messages: each may run a model"),
    "turns": Rate(120, MINUTE, "retries, tools that run again, queued messages that are sent now"),
    "changes": Rate(600, MINUTE, "edits, removals and settings of sessions: each keeps what was before"),
    "sessions": Rate(600, HOUR, "sessions begun"),
    "forks": Rate(120, HOUR, "forks: each copies a session"),
    "fork_megabytes": Rate(4_000, HOUR, "megabytes of workspaces that forks copy: further forks have no files"),
    "uploads": Rate(600, HOUR, "files and profile pictures uploaded: each is read and checked"),
    "upload_megabytes": Rate(4_000, HOUR, "megabytes uploaded"),
    "imports": Rate(60, HOUR, "files of conversations read: large ones take a core for seconds"),
    "import_requests": Rate(600, HOUR, "requests that import conversations of an uploaded file"),
    "exports": Rate(240, HOUR, "sessions exported: each is read as a whole"),
    "searches": Rate(120, MINUTE, "searches: each looks into all messages of a person"),
    "finds": Rate(240, MINUTE, "searches in one session, which its page makes while a person types"),
    "invitations": Rate(100, HOUR, "invitation links made"),
    "sign_in_links": Rate(200, HOUR, "sign-in links made by one member of staff"),
    "mcp_checks": Rate(60, HOUR, "MCP servers tested: each is a connection to another machine"),
    "webhook_requests": Rate(120, HOUR, "webhooks tested, and deliveries sent again: each is a connection elsewhere"),
    "tokens": Rate(60, HOUR, "API tokens made"),
    "push_subscriptions": Rate(120, HOUR, "browsers that turn on notifications, or renew them"),
    "push_tests": Rate(30, HOUR, "test notifications: each is a connection to another machine"),
}


class RateLimited(ServiceError):
    """Too many requests; `retry_after` is in how many seconds the next one may come."""

    CODE: ClassVar[str] = "rate_limited"

    def __init__(self, seconds: float, words: str = "") -> None:
        wait = max(1, math.ceil(seconds))
        sentence = words or _("Too many requests. Try again in %(wait)s.")
        super().__init__(self.CODE, sentence % {"wait": waiting(wait)}, retry_after=wait)


@dataclass(frozen=True, slots=True)
class Window:
    """A limit after a request was counted, or refused. `resets_in` is in seconds."""

    name: str
    rate: Rate
    is_admitted: bool
    remaining: int
    resets_in: float

    def require(self, words: str = "") -> None:
        """Raise RateLimited if the request is one too many. `words` is a sentence with a place for "%(wait)s"."""
        if not self.is_admitted:
            raise RateLimited(self.resets_in, words)


def rates() -> Mapping[str, Rate]:
    """Return the table with what LIMITS changes of it. Raises ValueError."""
    return _changed_by(settings.LIMITS)


@lru_cache(maxsize=8)
def _changed_by(written: str) -> Mapping[str, Rate]:
    table = dict(RATES)
    for part in filter(None, (each.strip() for each in written.split(","))):
        name, is_given, value = (word.strip() for word in part.partition("="))
        if name not in table or not is_given:
            raise ValueError(f"{part!r} does not name a limit")
        reason = table[name].reason
        if value == "0":
            table[name] = Rate(0, 0, reason)
            continue
        item = parse_rate(value)
        table[name] = Rate(item.amount, item.get_expiry(), reason)
    return table


def count(name: str, *who: object, cost: int = 1) -> Window:
    """Count a request of `who` against a limit. A refused request is not counted."""
    rate = rates()[name]
    if not rate.amount:
        return Window(name, rate, True, 0, 0.0)
    item, key = _item(rate), key_of(name, *who)

    def hit(limiter: Any) -> Window:
        # What costs more than the whole limit is taken when nothing else was.
        is_admitted = limiter.hit(item, key, cost=min(cost, rate.amount))
        stats = limiter.get_window_stats(item, key)
        return Window(name, rate, is_admitted, max(0, stats.remaining), max(0.0, stats.reset_time - time.time()))

    return counters().window(hit)


def spend(name: str, *who: object, cost: int = 1) -> None:
    """Count what a person asks for. Raises RateLimited."""
    if current_origin().face not in UNLIMITED_FACES:
        count(name, *who, cost=cost).require()


def forget(name: str, *who: object) -> None:
    """Forget what was counted for `who`."""
    rate, key = rates()[name], key_of(name, *who)
    if rate.amount:
        counters().window(lambda limiter: limiter.clear(_item(rate), key))


def limited(name: str, *, by: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator for services: each call counts against a limit of the person in the argument `by`.

    Place it above `transaction.atomic`: nothing waits for Redis with a lock in its hands.
    """

    def decorated(service: Callable[P, R]) -> Callable[P, R]:
        @wraps(service)
        def counted(*args: P.args, **kwargs: P.kwargs) -> R:
            spend(name, getattr(kwargs[by], "pk", None))
            return service(*args, **kwargs)

        return counted

    return decorated


def waiting(seconds: int) -> str:
    """Return a time to wait in words."""
    if seconds < 2 * MINUTE:
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    minutes = math.ceil(seconds / MINUTE)
    if minutes < 2 * MINUTE:
        return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}
    hours = math.ceil(minutes / MINUTE)
    return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}


def key_of(*parts: object) -> str:
    """Return a key of bounded length: names may hold anything."""
    return sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def _item(rate: Rate) -> RateLimitItem:
    return RateLimitItemPerSecond(rate.amount, rate.seconds)
