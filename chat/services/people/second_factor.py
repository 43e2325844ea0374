"""Second factors: an authenticator app, passkeys and recovery codes, stored as allauth's Authenticator rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa import app_settings
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from chat.errors import Invalid, ServiceError
from chat.limits import rates
from chat.models import User
from chat.security.encryption import DecryptionError, decrypt
from chat.services.messages.validation import validate_characters, validate_json
from chat.services.people import accounts, login_throttle
from chat.services.people.security_log import Kind, record

logger = logging.getLogger(__name__)
Type = Authenticator.Type

# A browser session has this flag when its login passed, or set up, a second factor.
PASSED = "second_factor"
MAX_NAME_LENGTH = 80
MAX_PASSKEYS = 20
# The longest accepted answer of an authenticator, in characters. Usual answers have about 2,000.
MAX_CREDENTIAL_LENGTH = 100_000


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey, as the settings show it."""

    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(slots=True)
class SecondFactors:
    """A user's second factors. `codes_left` is None if there are no recovery codes."""

    app: Authenticator | None = None
    passkeys: list[Passkey] = field(default_factory=list)
    codes_left: int | None = None

    def __len__(self) -> int:
        """Return the number of second factors, without the recovery codes."""
        return len(self.passkeys) + (self.app is not None)


def is_required(user: User) -> bool:
    """Return whether REQUIRE_MFA requires a second factor of this user."""
    is_staff = user.is_staff or user.is_superuser
    return settings.REQUIRE_MFA == "all" or (settings.REQUIRE_MFA == "staff" and is_staff)


def is_missing(user: User, session: Mapping[str, Any]) -> bool:
    """Return whether a browser session needs a second factor that it has not passed. Without a query."""
    return is_required(user) and not session.get(PASSED)


def can_sign_in_again(user: User) -> bool:
    """Return whether a user could sign in again after signing out, with a password or a passkey."""
    return user.has_usable_password() or bool(factors_of(user).passkeys)


def factors_of(user: User) -> SecondFactors:
    """Return a user's second factors, with one query."""
    factors = SecondFactors()
    for row in Authenticator.objects.filter(user_id=user.pk).order_by("pk"):
        if row.type == Type.TOTP:
            factors.app = row
        elif row.type == Type.WEBAUTHN:
            factors.passkeys.append(Passkey(row.pk, row.data["name"], row.created_at, row.last_used_at))
        else:
            factors.codes_left = app_settings.RECOVERY_CODE_COUNT - int(row.data["used_mask"]).bit_count()
    return factors


def check_code(*, user: User, code: str) -> Authenticator:
    """Check and use a code of the authenticator app or a recovery code. Raise ServiceError."""
    login_throttle.begin_code(user=user)
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update().filter(user=user).exclude(type=Type.WEBAUTHN)
        accepted: Authenticator | None = next((row for row in rows if _accepts(row, code)), None)
        if accepted is not None:
            accepted.record_usage()
            login_throttle.code_was_right(user=user)
            return accepted
    raise _failure(user, "code", _("Invalid code. Codes change every 30 seconds."))


def check_passkey(*, user: User | None, credential: str) -> Authenticator:
    """Check a passkey's signature for this browser session; without `user`, find the passkey's user.

    Raise ServiceError.
    """
    from allauth.mfa.webauthn.internal import auth  # as in passkey_options

    if user is not None:
        rates.count("passkey_checks", user.pk).require()
    try:
        answer = _read(credential)
        owner = user or auth.extract_user_from_response(answer)
        row: Authenticator = auth.complete_authentication(owner, answer)
    except DatabaseError:
        raise
    except Exception as error:  # fido2 passes on the errors of its decoders
        logger.info("A passkey was refused: %r", error)
        words = _("Unknown passkey, or the page has expired. Try again.")
        raise _failure(user, "passkey", words) from error
    row.user = owner  # type: ignore[assignment]  # allauth's type is the abstract user
    row.record_usage()
    return row


def passkey_options(*, user: User | None) -> dict[str, Any]:
    """Begin a sign-in with a passkey: return the options for the browser's API, and store the challenge in the session.

    Without a user, any passkey of this site is accepted.
    """
    from allauth.mfa.webauthn.internal import (
        auth,
    )  # imported here, because fido2 takes memory that most processes do not need

    return _plain(auth.begin_authentication(user))


def new_passkey_options(*, user: User) -> dict[str, Any]:
    """Begin adding a passkey; see `passkey_options`."""
    from allauth.mfa.webauthn.internal import auth  # as above

    return _plain(auth.begin_registration(user, passwordless=True))


@transaction.atomic
def add_app(*, user: User, secret: str, code: str, session_key: str | None) -> list[str]:
    """Set up an authenticator app whose code proves that it has the secret.

    Return new recovery codes if this is the first factor. The login with `session_key` stays. Raise ServiceError.
    """
    login_throttle.begin_code(user=user)
    if not any(compare_user_code(actual=code, expected=each) for _counter, each in _codes(secret)):
        raise Invalid(_("Invalid code. Scan the QR code again and enter the current code."))
    login_throttle.code_was_right(user=user)
    before = _lock(user)
    if before.app is not None:
        raise ServiceError("second_factor_exists", _("You already have an authenticator app. Remove it first."))
    totp.TOTP.activate(user, secret)
    return _record_added(user, before, session_key, factor="app")


@transaction.atomic
def add_passkey(*, user: User, name: str, credential: str, session_key: str | None) -> list[str]:
    """Add a passkey that the browser created. Return new recovery codes, as `add_app` does. Raise ServiceError."""
    from allauth.mfa.webauthn.internal import auth  # as above

    name = _name(name)
    before = _lock(user)
    if len(before.passkeys) >= MAX_PASSKEYS:
        raise Invalid(_("You have %(count)d passkeys. Remove one that you don’t use.") % {"count": MAX_PASSKEYS})
    try:
        answer = _read(credential)
        auth.parse_registration_response(answer)
        auth.complete_registration(answer)
    except DatabaseError:
        raise
    except Exception as error:  # as in check_passkey
        logger.info("Could not add a passkey: %r", error)
        raise Invalid(_("Couldn’t add the passkey. Try again.")) from error
    auth.WebAuthn.add(user, name, answer)
    return _record_added(user, before, session_key, factor="passkey")


@transaction.atomic
def rename_passkey(*, user: User, passkey_id: int, name: str) -> None:
    """Rename a passkey. Raise ServiceError."""
    row = Authenticator.objects.select_for_update().filter(user=user, type=Type.WEBAUTHN, pk=passkey_id).first()
    if row is None:
        raise _no_such_factor()
    row.data["name"] = _name(name)
    row.save(update_fields=["data"])


@transaction.atomic
def remove(*, user: User, authenticator_id: int, session_key: str | None) -> str:
    """Remove the app or a passkey. Return which: "app" or "passkey". Raise ServiceError.

    If it was the last one, delete the recovery codes, and end other logins, because these count as having passed one.
    """
    _lock(user)
    rows = Authenticator.objects.filter(user=user)
    row = rows.exclude(type=Type.RECOVERY_CODES).filter(pk=authenticator_id).first()
    if row is None:
        raise _no_such_factor()
    if is_required(user) and rows.exclude(type=Type.RECOVERY_CODES).count() == 1:
        raise ServiceError("second_factor_required", _("Your account needs a second factor. Add another one first."))
    kind = "app" if row.type == Type.TOTP else "passkey"
    row.delete()
    record(Kind.SECOND_FACTOR_REMOVED, actor=user, person=user, factor=kind)
    if not rows.exclude(type=Type.RECOVERY_CODES).exists():
        rows.delete()
        accounts.sign_out_elsewhere(user=user, keep=session_key)
    return kind


@transaction.atomic
def make_recovery_codes(*, user: User) -> list[str]:
    """Replace a user's recovery codes, which are shown only once. Raise ServiceError."""
    if not _lock(user):
        raise ServiceError("no_second_factor", _("Set up an authenticator app or a passkey first."))
    Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
    record(Kind.RECOVERY_CODES_MADE, actor=user, person=user)
    codes: list[str] = RecoveryCodes.activate(user).generate_codes()
    return codes


@transaction.atomic
def reset(*, user: User, author: User | None) -> bool:
    """Remove all second factors of a user who lost them, and end their logins. Return whether there were any.

    `author` is the staff user who does it; None for the command. The user is notified on their next page.
    """
    _lock(user)
    removed, _kinds = Authenticator.objects.filter(user=user).delete()
    if not removed:
        return False
    record(Kind.SECOND_FACTOR_RESET, actor=author, person=user)
    accounts.sign_out_elsewhere(user=user, keep=None, author=author)
    accounts.add_notice(user=user, kind="second_factor_reset", author=author)
    return True


def _accepts(row: Authenticator, code: str) -> bool:
    """Return whether a code is valid for the app or is an unused recovery code, and use it."""
    try:
        if row.type == Type.RECOVERY_CODES:
            return RecoveryCodes(row).validate_code(code)
        return _accepts_once(row, code)
    except DecryptionError:
        logger.exception("Could not decrypt the second factor of user %s. Was SECRET_KEY changed?", row.user_id)
        return False


def _accepts_once(row: Authenticator, code: str) -> bool:
    """Check a code as allauth does, but store its time step in the row, because a cache may lose it or be down."""
    secret = decrypt(row.data["secret"])
    for counter, expected in _codes(secret):
        if counter > row.data.get("last_counter", 0) and compare_user_code(actual=code, expected=expected):
            row.data["last_counter"] = counter
            row.save(update_fields=["data"])
            return True
    return False


def _codes(secret: str) -> list[tuple[int, str]]:
    counters = totp.yield_hotp_counters_from_time()
    return [(each, totp.format_hotp_value(totp.hotp_value(secret, each))) for each in counters]


def _lock(user: User) -> SecondFactors:
    """Lock a user's factors until the transaction ends, and return them."""
    User.objects.select_for_update().get(pk=user.pk)
    return factors_of(user)


def _record_added(user: User, before: SecondFactors, session_key: str | None, *, factor: str) -> list[str]:
    """Record a new factor. The first one creates recovery codes and ends other logins, which have not passed it."""
    record(Kind.SECOND_FACTOR_ADDED, actor=user, person=user, factor=factor)
    if before:
        return []
    accounts.sign_out_elsewhere(user=user, keep=session_key)
    return make_recovery_codes(user=user)


def _name(name: str) -> str:
    name = validate_characters(" ".join(name.split()))
    if not name or len(name) > MAX_NAME_LENGTH:
        raise Invalid(_("Enter a name of up to %(count)d characters.") % {"count": MAX_NAME_LENGTH})
    return name


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(options, default=dict))
    return plain


def _read(credential: str) -> dict[str, Any]:
    answer = json.loads(credential) if len(credential) <= MAX_CREDENTIAL_LENGTH else None
    if not isinstance(answer, dict):
        raise TypeError("not an answer of WebAuthn")
    validate_json(answer)  # because it is stored
    return answer


def _no_such_factor() -> ServiceError:
    return ServiceError("no_such_second_factor", _("This was already removed."))


def _failure(user: User | None, method: str, message: str) -> ServiceError:
    if user is not None:
        record(Kind.SECOND_FACTOR_FAILED, actor=None, person=user, method=method)
    return ServiceError("wrong_code", message)
