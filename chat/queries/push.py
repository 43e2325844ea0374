"""The browsers that get push messages."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from chat.models import LoginSession, PushSubscription, User
from chat.security import web_push


def subscriptions_of(user: User) -> QuerySet[PushSubscription]:
    """Return the browsers in which a user has turned on notifications and is still signed in."""
    return PushSubscription.objects.filter(_is_signed_in(), user=user)


def reachable(user_ids: Iterable[int]) -> QuerySet[PushSubscription]:
    """Return the browsers to which messages can be sent, of users who want notifications."""
    wanting = PushSubscription.objects.filter(user__in=list(user_ids), user__is_active=True, user__notify=True)
    return wanting.filter(_is_signed_in(), key=web_push.key_id()).select_related("user")


def without_login() -> QuerySet[PushSubscription]:
    """Return the browsers whose login has ended or expired."""
    return PushSubscription.objects.exclude(_is_signed_in())


def _is_signed_in() -> Exists:
    logins = LoginSession.objects.filter(user=OuterRef("user"), push=OuterRef("digest"))
    return Exists(logins.filter(expire_date__gt=timezone.now()))
