"""Refuse API tokens that were sent without encryption to a server that requires HTTPS (HTTPS=1)."""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.utils.translation import gettext as _

from chat.asgi.refusals import ASGIApplication, Receive, Scope, Send, refuse_connection, request_of
from chat.asgi.socket_credentials import bearer_token
from chat.errors import ServiceError


class EncryptedTokens:
    """ASGI middleware for requests and sockets, which refuses those with an unencrypted token.

    The refusal shows the client that others may have read the token. A redirect to HTTPS would hide this. Browsers send
    no tokens, and cookies over HTTPS only.
    """

    def __init__(self, application: ASGIApplication) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_token = bearer_token(scope["headers"]) is not None
        if not settings.HTTPS or not has_token or request_of(scope).is_secure():
            await self._application(scope, receive, send)
        else:
            await refuse_connection(scope, receive, send, HTTPStatus.FORBIDDEN, _unencrypted)


def _unencrypted() -> ServiceError:
    message = _("Use HTTPS. This request was not encrypted, so revoke its token and create a new one.")
    return ServiceError("https_required", message)
