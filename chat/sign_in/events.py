"""Reactions to every sign-in and sign-out, including those in other libraries: the security log and push messages."""

from __future__ import annotations

from typing import Any

from allauth.account.authentication import get_authentication_records
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from chat.models import User
from chat.security.session_store import PUSH
from chat.services.people import push
from chat.services.people.security_log import Kind, record


def connect() -> None:
    """Connect the handlers of this module to Django's signals."""
    user_logged_in.connect(_signed_in, dispatch_uid="security log")
    user_logged_out.connect(_signed_out, dispatch_uid="security log")
    user_login_failed.connect(_failed, dispatch_uid="security log")


def _signed_in(sender: Any, request: HttpRequest, user: User, **signal: Any) -> None:
    records = get_authentication_records(request, user)
    record(Kind.SIGN_IN, actor=user, person=user, method=" + ".join(map(_method, records)) or "unknown")


def _method(step: dict[str, Any]) -> str:
    """Return the name of a step: password, link, invitation, passkey, totp, recovery_codes …"""
    if step["method"] != "mfa":
        return str(step["method"])
    return "passkey" if step["type"] == "webauthn" else str(step["type"])


def _signed_out(sender: Any, request: HttpRequest, user: User | None, **signal: Any) -> None:
    request.signs_out = True  # type: ignore[attr-defined]  # for LoginSessions
    if user is not None:
        record(Kind.SIGN_OUT, actor=user, person=user)
        if digest := request.session.get(PUSH):
            push.forget(user=user, digests=[digest])


def _failed(sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **signal: Any) -> None:
    """Log a failed sign-in. An unknown user name is not logged, because it may be a password in the wrong field."""
    name = str(credentials.get("username") or "")
    person = None if "\0" in name else User.objects.filter(username=name).first()
    record(Kind.SIGN_IN_FAILED, actor=None, person=person, method="password")
