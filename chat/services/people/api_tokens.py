"""API tokens: create, list, revoke and authenticate them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.errors import Invalid, ServiceError
from chat.limits.rates import limited
from chat.models import ApiToken, User
from chat.services.messages.validation import validate_characters
from chat.services.people.secrets import hash_token
from chat.services.people.security_log import Kind, record
from chat.services.transaction import notify_access_changed

# A prefix that identifies a token found in a log or a repository.
PREFIX = "parley_"
SHAPE = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")
MAX_NAME_LENGTH = 80
MAX_TOKENS = 50
# The lifetimes in days that users can choose; 0 means no end.
LIVES = (30, 90, 365, 0)
SCOPES = {ApiToken.Scope.READ: gettext_lazy("read only"), ApiToken.Scope.WRITE: gettext_lazy("read and write")}
# The shortest time between two updates of a token's last use, so that not every request writes.
NOTED_EVERY = timedelta(minutes=1)


@limited("tokens", by="user")
@transaction.atomic
def create(*, user: User, name: str, scope: str, days: int) -> tuple[ApiToken, str]:
    """Create a token. Return it with its secret, which is not stored. Raise ServiceError."""
    name = validate_characters(" ".join(name.split()))
    if not name or len(name) > MAX_NAME_LENGTH:
        raise Invalid(_("Enter a name of up to %(count)d characters.") % {"count": MAX_NAME_LENGTH})
    if scope not in ApiToken.Scope.values or days not in LIVES:
        raise Invalid(_("That’s not one of the options."))
    User.objects.select_for_update().get(
        pk=user.pk
    )  # the lock makes two simultaneous requests count one after the other
    if tokens_of(user).count() >= MAX_TOKENS:
        raise Invalid(_("You have %(count)d tokens. Revoke some that you don’t use.") % {"count": MAX_TOKENS})
    secret = PREFIX + secrets.token_urlsafe(32)
    expires_at = timezone.now() + timedelta(days=days) if days else None
    token = ApiToken.objects.create(user=user, name=name, scope=scope, digest=hash_token(secret), expires_at=expires_at)
    record(Kind.TOKEN_MADE, actor=user, person=user, target=token, scope=scope, days=days)
    return token, secret


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Return a user's tokens that were not revoked, the newest first, including expired ones."""
    return ApiToken.objects.filter(user=user, revoked_at=None)


def revoke(*, user: User, token_id: int, author: User | None = None) -> ApiToken:
    """Revoke a token of `user`. `author` is the staff user who does it for another user. Raise ServiceError."""
    token = tokens_of(user).filter(pk=token_id).first()
    if token is None or not tokens_of(user).filter(pk=token_id).update(revoked_at=timezone.now()):
        raise ServiceError("no_such_token", _("This token no longer exists."))
    record(Kind.TOKEN_REVOKED, actor=author or user, person=user, target=token)
    notify_access_changed(user.pk)
    return token


def alive(token_ids: Iterable[int]) -> set[int]:
    """Return which of these tokens are still valid, in one query."""
    return set(_valid().filter(pk__in=list(token_ids)).values_list("pk", flat=True))


def _valid() -> QuerySet[ApiToken]:
    """Return the valid tokens of active users."""
    holds = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiToken.objects.filter(holds, revoked_at=None, user__is_active=True)


def find_valid(secret: str) -> ApiToken | None:
    """Return the token with this secret, or None if it is unknown, revoked or expired, or its user is inactive."""
    if not SHAPE.fullmatch(secret):
        return None
    now = timezone.now()
    token = _valid().filter(digest=hash_token(secret)).select_related("user").first()
    if token is not None and (token.last_used_at is None or now - token.last_used_at >= NOTED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
