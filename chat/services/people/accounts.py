"""Accounts: the first administrator, sign-in links, registration, passwords, and ending logins."""

from __future__ import annotations

import secrets
from datetime import timedelta
from itertools import chain

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import (
    ApiToken,
    Invitation,
    LoginSession,
    PushSubscription,
    Session,
    SignInLink,
    User,
    Workspace,
    WorkspaceInvitation,
)
from chat.names import lookalike_key
from chat.origin import current_origin, network_of
from chat.security.session_store import hash_key
from chat.services.people import joining, push
from chat.services.people.secrets import hash_token
from chat.services.people.security_log import Kind, record
from chat.services.people.workspaces import current_workspace
from chat.services.transaction import notify_login_ended

LINK_LIFE = timedelta(hours=24)
FIRST_NAME = "admin"
MAX_NOTICES = 5
# An arbitrary number for PostgreSQL's advisory lock.
_NAMES_LOCK = 7_295_044_318


@transaction.atomic
def first_administrator() -> User:
    """Return the first administrator; create one without a password if there are no users.

    Raise ServiceError if there are users but no active administrator. Creating one then would give the installation to
    anyone who can read the server's output.
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
def sign_in_link(*, user: User, author: User | None = None, keeps_last: bool = False) -> str:
    """Return a new token that signs `user` in once, within a day. Their earlier links stop working.

    `author` is the staff user who creates it for another user; that user gets a notice on their next page. With
    `keeps_last` the newest earlier link stays valid, because it may have been created on purpose a moment before. Using
    one of the two ends the other.
    """
    if author is not None:
        spend("sign_in_links", author.pk)
    unused = SignInLink.objects.filter(user=user, used_at=None)
    unused.exclude(pk__in=list(unused.order_by("-pk").values_list("pk", flat=True)[: int(keeps_last)])).delete()
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, token_hash=hash_token(token), expires_at=timezone.now() + LINK_LIFE)
    record(Kind.SIGN_IN_LINK_MADE, actor=author, person=user)
    if author not in (None, user):
        add_notice(user=user, kind="sign_in_link", author=author)
    return token


def link_owner(token: str) -> User | None:
    """Return the user of a sign-in token without using it, or None if it is invalid."""
    links = SignInLink.objects.filter(token_hash=hash_token(token), used_at=None, expires_at__gt=timezone.now())
    return User.objects.filter(pk__in=links.values("user"), is_active=True).first()


def redeem(token: str) -> User | None:
    """Use a sign-in token. Return its user, or None if it is unknown, used, replaced or expired."""
    now = timezone.now()
    # The condition uses only the link's own columns, so that only one of two simultaneous requests succeeds.
    link = SignInLink.objects.filter(token_hash=hash_token(token))
    if not link.filter(used_at=None, expires_at__gt=now).update(used_at=now):
        return None
    user = User.objects.filter(pk__in=link.values("user"), is_active=True).first()
    SignInLink.objects.filter(user=user, used_at=None).delete()
    return user


@transaction.atomic
def add_notice(*, user: User, kind: str, author: User | None) -> None:
    """Add a notice for a user's next page, of what staff or an operator did with their account."""
    locked = User.objects.select_for_update().get(pk=user.pk)
    by = author.sender if author else ""
    notice = {"kind": kind, "by": by, "at": timezone.now().isoformat(timespec="seconds")}
    locked.account_notices = [*(locked.account_notices or []), notice][-MAX_NOTICES:]
    locked.save(update_fields=["account_notices"])


def dismiss_notices(*, user: User) -> None:
    """Delete the notices that a user has seen."""
    user.account_notices = None
    user.save(update_fields=["account_notices"])


def set_password(*, user: User, password: str, keep: str | None) -> None:
    """Change the user's own password, and end all their logins except the one with the session key `keep`."""
    user.set_password(password)  # before the transaction, because hashing waits for a free slot
    with transaction.atomic():
        user.save(update_fields=["password"])
        record(Kind.PASSWORD_CHANGED, actor=user, person=user)
        sign_out_elsewhere(user=user, keep=keep)


def problems_of_account(*, username: str, display_name: str, password: str) -> dict[str, list[str]]:
    """Return all problems with the values of a new account, by the argument's name."""
    return _new_guest(username, display_name, password)[1]


def _new_guest(username: str, display_name: str, password: str) -> tuple[User, dict[str, list[str]]]:
    name = User.normalize_username(username.strip())
    user = User(username=name, display_name=display_name.strip(), can_own_workspace=False)
    problems: dict[str, list[str]] = {}
    try:
        user.full_clean(exclude={"password"}, validate_unique=False)
    except ValidationError as error:
        problems.update(error.message_dict)
    if _is_taken(user.username):
        problems["username"] = [_taken(user.username)]
    try:
        validate_password(password, user)
    except ValidationError as error:
        problems["password"] = error.messages
    return user, problems


def _is_taken(username: str) -> bool:
    """Return whether a user has this name or one that looks like it."""
    key, taken = lookalike_key(username), User.objects.values_list("username", flat=True)
    return any(lookalike_key(name) == key for name in taken.iterator())


def _taken(username: str) -> str:
    return _("The user name “%(name)s” is taken.") % {"name": username}


def register(*, token: str, username: str, display_name: str, password: str) -> tuple[User, Session | Workspace]:
    """Create an account with an invitation: as a guest in its session, or a member of its workspace. Return both.

    The account gets no workspace. Raise ServiceError if the invitation is not valid, the name is taken or invalid, the
    password is too weak, or too many accounts were created with the invitation or from this network.
    """
    invitation = joining.invitation_for(token)
    user, problems = _new_guest(username, display_name, password)
    if problems:
        raise Invalid(" ".join(chain.from_iterable(problems.values())))
    spend("joins", network_of(current_origin().address))
    spend("joins_of_invitation", invitation.token_hash)
    user.set_password(password)  # before the transaction, because hashing waits for a free slot
    with transaction.atomic():
        _save_new(user)
        record(Kind.ACCOUNT_MADE, actor=user, person=user, by="invitation")
        return user, joining.accept(token=token, user=user)


def _save_new(user: User) -> None:
    """Insert a user. Raise Invalid if another request has taken the name since it was checked, before the hashing."""
    _wait_for_other_names()
    if _is_taken(user.username):
        raise Invalid(_taken(user.username))
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise Invalid(_taken(user.username)) from None


def _wait_for_other_names() -> None:
    """Wait until no other transaction adds a user, because the index does not compare names by their looks.

    On SQLite, all transactions of services wait for each other.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_NAMES_LOCK])


@transaction.atomic
def password_was_changed(*, user: User, author: User | None, keep: str | None = None) -> None:
    """Record a password that was set in the admin or by the command, and end the user's logins.

    `author` is the staff user; None for the command. Staff who change their own password keep the login with the
    session key `keep`. Other users are notified on their next page.
    """
    record(Kind.PASSWORD_CHANGED, actor=author, person=user)
    sign_out_elsewhere(user=user, keep=keep if author == user else None, author=author)
    if author not in (None, user):
        add_notice(user=user, kind="password", author=author)


@transaction.atomic
def sign_out_elsewhere(*, user: User, keep: str | None, author: User | None = None) -> int:
    """End all logins of `user` except the one with the key `keep`, and close their open pages (LIVE-06).

    If the user keeps a login, unused sign-in links end, too, because another person may have one. Links stay if staff
    or an operator ends the logins, because they may have created one a moment before. `author` is the staff user who
    does it for another user. Return how many logins had not expired.
    """
    if keep and author in (None, user):
        SignInLink.objects.filter(user=user, used_at=None).delete()
    logins = LoginSession.objects.filter(user=user)
    if keep:
        logins = logins.exclude(session_key=hash_key(keep))
    ended = list(logins.values_list("session_key", "expire_date", "push"))
    logins.delete()
    push.forget(user=user, digests=[digest for _key_hash, _expires, digest in ended if digest])
    for key_hash, _expires, _digest in ended:
        notify_login_ended(key_hash)
    now = timezone.now()
    count = sum(expires > now for _key_hash, expires, _digest in ended)
    if count:
        record(Kind.SIGNED_OUT_ELSEWHERE, actor=author or user, person=user, count=count)
    return count


@transaction.atomic
def end_all_logins(*, with_tokens: bool) -> dict[str, int]:
    """End all users' logins and sign-in links. With `with_tokens`, end API tokens and invitation links, too.

    Open pages close within seconds. Return the numbers of ended logins and tokens, as "logins" and "tokens".
    """
    now = timezone.now()
    SignInLink.objects.filter(used_at=None).delete()
    logins, _kinds = LoginSession.objects.all().delete()
    PushSubscription.objects.all().delete()
    tokens = 0
    if with_tokens:
        tokens = ApiToken.objects.filter(revoked_at=None).update(revoked_at=now)
        Invitation.objects.filter(expires_at__gt=now).update(expires_at=now)
        WorkspaceInvitation.objects.filter(expires_at__gt=now).update(expires_at=now)
    record(Kind.ALL_LOGINS_ENDED, actor=None, logins=logins, tokens=tokens)
    return {"logins": logins, "tokens": tokens}
