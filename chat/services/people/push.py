"""Browsers that get push messages: register, refresh and remove them, and record deliveries."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from hashlib import sha256

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.toolbox.public_addresses import is_misread, may_be_internal
from agents.web_addresses import parse_address
from chat.errors import Invalid, ServiceError
from chat.limits.rates import limited
from chat.models import PushSubscription, User
from chat.queries.push import without_login
from chat.security import web_push
from chat.security.web_push import PushTarget

MAX_BROWSERS = 20
# The ports at which push services may be.
PORTS = (443, 8443)
MAX_ENDPOINT_LENGTH = 2048
MAX_NAME_LENGTH = 80
# A browser is removed after this many failed messages in a row. Then the user has to turn notifications on again.
MAX_FAILURES = 30
# How long a browser is listed after its login has ended. It works again when the user signs in there.
KEPT_WITHOUT_LOGIN = timedelta(days=90)


def digest_of(endpoint: str) -> str:
    """Return the digest that identifies an endpoint."""
    return sha256(endpoint.encode("utf-8", "surrogatepass")).hexdigest()


@limited("push_subscriptions", by="user")
@transaction.atomic
def register(*, user: User, target: PushTarget, name: str, language: str) -> PushSubscription:
    """Register a browser for the user's notifications. Raise ServiceError."""
    _check(target)
    User.objects.select_for_update().get(pk=user.pk)  # two simultaneous requests count one after the other
    row = PushSubscription.objects.filter(user=user, digest=digest_of(target.endpoint)).first()
    if row is None:
        if PushSubscription.objects.filter(user=user).count() >= MAX_BROWSERS:
            raise Invalid(
                _("You get notifications in %(count)d browsers. Remove some that you don’t use.")
                % {"count": MAX_BROWSERS}
            )
        row = PushSubscription(user=user)
    row.name, row.language, row.failures = name[:MAX_NAME_LENGTH], language, 0
    return _save(row, target)


@limited("push_subscriptions", by="user")
@transaction.atomic
def refresh(*, user: User, target: PushTarget, before: str = "") -> PushSubscription | None:
    """Store a new endpoint or new keys of a registered browser. Return None if the browser is not registered.

    `before` is the digest of the endpoint in the browser's login. Raise ServiceError.
    """
    _check(target)
    digests = [digest_of(target.endpoint), before]
    rows = PushSubscription.objects.select_for_update().filter(user=user, digest__in=digests)
    found = {row.digest: row for row in rows}
    known = [found[digest] for digest in digests if digest in found]
    if not known:
        return None
    row, *others = known
    for other in others:
        other.delete()
    return _save(row, target)


def _save(row: PushSubscription, target: PushTarget) -> PushSubscription:
    row.endpoint, row.p256dh, row.auth = target.endpoint, target.p256dh.rstrip("="), target.auth.rstrip("=")
    row.digest, row.key, row.refreshed_at = digest_of(target.endpoint), web_push.key_id(), timezone.now()
    row.save()
    return row


def remove(*, user: User, subscription_id: int) -> None:
    """Stop sending notifications to one of the user's browsers. Raise ServiceError."""
    if not PushSubscription.objects.filter(user=user, pk=subscription_id).delete()[0]:
        raise ServiceError("no_such_browser", _("This browser no longer gets notifications."))


def forget(*, user: User, digests: Collection[str]) -> None:
    """Delete the subscriptions of logins that end, by the digests of their endpoints."""
    PushSubscription.objects.filter(user=user, digest__in=digests).delete()


@transaction.atomic
def record_delivery(*, delivered: Collection[int], failed: Collection[int], gone: Collection[int]) -> None:
    """Record the results of messages by the ids of their browsers. Delete browsers that are gone or fail too often."""
    rows = PushSubscription.objects
    if delivered:
        rows.filter(pk__in=delivered).update(last_success_at=timezone.now(), failures=0)
    if failed:
        rows.filter(pk__in=failed).update(failures=F("failures") + 1)
    rows.filter(pk__in=gone).delete()
    rows.filter(pk__in=failed, failures__gte=MAX_FAILURES).delete()


def delete_abandoned() -> int:
    """Delete browsers without a login that were not refreshed for a long time. Return their number."""
    return without_login().filter(refreshed_at__lt=timezone.now() - KEPT_WITHOUT_LOGIN).delete()[0]


def _check(target: PushTarget) -> None:
    """Raise Invalid if a browser's data cannot be used.

    A host name is resolved and checked when a message is sent, like every outside address.
    """
    try:
        web_push.check_target(target)
        is_valid = _may_be_sent_to(target.endpoint)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise Invalid(_("This browser’s push service can’t be used: its address or its keys are not valid."))


def _may_be_sent_to(endpoint: str) -> bool:
    """Return whether an address uses HTTPS, has no credentials, and is not internal. Raise ValueError."""
    if len(endpoint) > MAX_ENDPOINT_LENGTH or not endpoint.isascii() or not endpoint.isprintable():
        return False
    url = parse_address(endpoint)
    host = url.raw_host or ""
    if url.scheme != "https" or not host or url.port not in PORTS or (url.raw_user, url.raw_password) != (None, None):
        return False
    return not may_be_internal(host) and not is_misread(host)
