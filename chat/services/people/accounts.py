"""People and how they come in and go: the first administrator, one-time links, registration, ending other logins."""

from __future__ import annotations

import secrets
from datetime import timedelta
from functools import partial

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.bus.publisher import sign_out
from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import ApiToken, Invitation, LoginSession, Session, SignInLink, User
from chat.names import look
from chat.origin import current_origin, network_of
from chat.security.session_store import hash_key
from chat.services.people import sharing
from chat.services.people.secrets import hashed
from chat.services.people.security_log import Kind, record
from chat.services.people.workspaces import current_workspace

LINK_LIFE = timedelta(hours=24)
FIRST_NAME = "admin"
MOST_NOTICES = 5


@transaction.atomic
def first_administrator() -> User:
    """Return the first administrator; create one without a password if there are no users.

    Raises ServiceError where there are people but none of them is an active administrator: making another one
    would give the installation to anyone who reads the server's output.
    """
    administrator = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if administrator is None:
        if User.objects.exists():
            raise ServiceError(
                "no_administrator", _("There is no active administrator. Create one: manage.py createsuperuser")
            )
        administrator = User.objects.create_superuser(FIRST_NAME, display_name="Admin")
    current_workspace(administrator)
    return administrator


def an_administrator_can_sign_in() -> bool:
    """Return whether an administrator has a way to sign in other than a link."""
    administrators = User.objects.filter(is_superuser=True, is_active=True)
    return any(user.password and user.has_usable_password() for user in administrators)


@transaction.atomic
def sign_in_link(*, user: User, author: User | None = None) -> str:
    """Return a new token that signs `user` in, once, within a day. Their earlier links stop working.

    `author` is the member of staff who creates it for another user, who is notified on their next page.
    """
    if author is not None:
        spend("sign_in_links", author.pk)
    SignInLink.objects.filter(user=user, used_at=None).delete()
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, token_hash=hashed(token), expires_at=timezone.now() + LINK_LIFE)
    record(Kind.SIGN_IN_LINK_MADE, actor=author, person=user)
    if author not in (None, user):
        add_notice(user=user, kind="sign_in_link", author=author)
    return token


def link_owner(token: str) -> User | None:
    """Return the user whom a sign-in token would sign in, without using it up; None if it is invalid."""
    links = SignInLink.objects.filter(token_hash=hashed(token), used_at=None, expires_at__gt=timezone.now())
    return User.objects.filter(pk__in=links.values("user"), is_active=True).first()


def redeem(token: str) -> User | None:
    """Use a sign-in token up. Return whom it signs in; None if it is unknown, used, replaced or too old."""
    now = timezone.now()
    # The condition stands on the link's own columns alone, so that of two requests at once only one can win.
    link = SignInLink.objects.filter(token_hash=hashed(token))
    if not link.filter(used_at=None, expires_at__gt=now).update(used_at=now):
        return None
    return User.objects.filter(pk__in=link.values("user"), is_active=True).first()


@transaction.atomic
def add_notice(*, user: User, kind: str, author: User | None) -> None:
    """Tell a person on their next page what staff, or an operator, did with their account."""
    locked = User.objects.select_for_update().get(pk=user.pk)
    by = author.sender if author else ""
    notice = {"kind": kind, "by": by, "at": timezone.now().isoformat(timespec="seconds")}
    locked.account_notices = [*(locked.account_notices or []), notice][-MOST_NOTICES:]
    locked.save(update_fields=["account_notices"])


def dismiss_notices(*, user: User) -> None:
    """Forget the notices that a person has seen."""
    user.account_notices = None
    user.save(update_fields=["account_notices"])


def set_password(*, user: User, password: str, keep: str | None) -> None:
    """Change a person's own password; all their logins end but that of the browser with the session key `keep`."""
    user.set_password(password)  # before the transaction: hashing waits for its turn
    with transaction.atomic():
        user.save(update_fields=["password"])
        record(Kind.PASSWORD_CHANGED, actor=user, person=user)
        sign_out_elsewhere(user=user, keep=keep)


def register(*, token: str, username: str, display_name: str, password: str) -> tuple[User, Session]:
    """Create an account by an invitation and let it into the session of that, as a guest; returns both.

    It gets no workspace of its own. Raises ServiceError: the invitation is not valid (any more), the name is taken or
    odd, the password too weak, too many accounts were made by the invitation or from this network.
    """
    invitation = sharing.invitation_for(token)
    user = User(
        username=User.normalize_username(username.strip()),
        display_name=display_name.strip(),
        can_own_workspace=False,
    )
    taken = User.objects.values_list("username", flat=True)
    if any(look(name) == look(user.username) for name in taken.iterator()):
        raise Invalid(_("The name “%(name)s” is taken.") % {"name": user.username})
    try:
        validate_password(password, user)
        user.full_clean(exclude={"password"})
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from error
    spend("joins", network_of(current_origin().address))
    spend("joins_of_invitation", invitation.pk)
    user.set_password(password)  # before the transaction: hashing waits for its turn
    with transaction.atomic():
        user.save()
        record(Kind.ACCOUNT_MADE, actor=user, person=user, by="invitation")
        return user, sharing.accept(token=token, user=user)


@transaction.atomic
def password_was_changed(*, user: User, author: User | None, keep: str | None = None) -> None:
    """Record a password that was set in the admin or by the command, and end the user's logins.

    `author` is the member of staff; None for the command. Staff who change their own password stay signed in in the
    browser with the session key `keep`. Other users are notified on their next page.
    """
    record(Kind.PASSWORD_CHANGED, actor=author, person=user)
    sign_out_elsewhere(user=user, keep=keep if author == user else None, author=author)
    if author not in (None, user):
        add_notice(user=user, kind="password", author=author)


@transaction.atomic
def sign_out_elsewhere(*, user: User, keep: str | None, author: User | None = None) -> int:
    """End all logins of `user` but the one with the key `keep`, with their open pages (LIVE-06); return how many.

    `author` is the member of staff who does it, if that is not the person.
    """
    logins = LoginSession.objects.filter(user=user)
    if keep:
        logins = logins.exclude(session_key=hash_key(keep))
    ended = list(logins.values_list("session_key", "expire_date"))
    logins.delete()
    for key_hash, _expires in ended:
        transaction.on_commit(partial(sign_out, key_hash))
    now = timezone.now()
    count = sum(expires > now for _key_hash, expires in ended)
    if count:
        record(Kind.SIGNED_OUT_ELSEWHERE, actor=author or user, person=user, count=count)
    return count


@transaction.atomic
def end_all_logins(*, with_tokens: bool) -> dict[str, int]:
    """Sign every user out and end their sign-in links; `with_tokens` also API tokens and invitation links.

    Open pages notice it within seconds. Returns how many logins and tokens there were.
    """
    now = timezone.now()
    SignInLink.objects.filter(used_at=None).delete()
    logins, _kinds = LoginSession.objects.all().delete()
    tokens = 0
    if with_tokens:
        tokens = ApiToken.objects.filter(revoked_at=None).update(revoked_at=now)
        Invitation.objects.filter(expires_at__gt=now).update(expires_at=now)
    record(Kind.ALL_LOGINS_ENDED, actor=None, logins=logins, tokens=tokens)
    return {"logins": logins, "tokens": tokens}
