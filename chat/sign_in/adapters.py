"""Adapters that configure allauth: the steps and the end of a sign-in, and the storage and names of second factors."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from chat.models import User
from chat.origin import address_of
from chat.security import encryption
from chat.services.people import login_throttle
from chat.services.people.second_factor import PASSED

# A session key. Its value is the time when the user last confirmed their identity, in seconds since the epoch.
CONFIRMED_AT = "confirmed_at"


class AccountAdapter(DefaultAccountAdapter):
    """The sign-in: the stages after the first step, and the values stored in the session at the end."""

    def get_login_stages(self) -> list[str]:
        return ["allauth.mfa.stages.AuthenticateStage"]

    def login(self, request: HttpRequest, user: User) -> None:  # type: ignore[override]  # there are no other users
        super().login(request, user)
        records = get_authentication_records(request, user)
        request.session[PASSED] = any(record["method"] == "mfa" for record in records)
        request.session[CONFIRMED_AT] = time.time()
        request.session.set_expiry(None)  # passkey_sign_in sets a short expiry

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        response: HttpResponse = super().post_login(request, user, **kwargs)
        login_throttle.remember_browser(request, response, user)
        return response

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        messages.error(request, _("This account is deactivated."))
        return redirect("sign-in")

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Ignore allauth's messages: Parley's views add their own."""

    def get_client_ip(self, request: HttpRequest) -> str:
        return address_of(request)


class MFAAdapter(DefaultMFAAdapter):
    """Second factors, which are stored encrypted and named after this server and the user."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text)

    def get_totp_issuer(self) -> str:
        """Return a name of this server, without a colon, which separates it from the user name in labels."""
        address = urlsplit(settings.PUBLIC_URL or f"//{context.request.get_host()}")
        return f"Parley {address.netloc.replace(':', ' ')}"

    def get_totp_label(self, user: User) -> str:  # type: ignore[override]  # as above
        # Some apps ignore the issuer, and an entry replaces another one with the same label.
        return f"{self.get_totp_issuer()}:{user.username}"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {**super().get_public_key_credential_rp_entity(), "name": "Parley"}

    def get_public_key_credential_user_entity(self, user: User) -> dict[str, Any]:  # type: ignore[override]  # as above
        entity: dict[str, Any] = super().get_public_key_credential_user_entity(user)
        return {**entity, "display_name": user.sender, "name": user.username}
