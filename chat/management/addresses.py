"""The addresses that Parley's commands print."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse

ANYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104  # these are recognised, not bound


def home_url(port: int | None = None) -> str:
    """Return the address of the home page; `port`: where the server really listens."""
    return _base(settings.PORT if port is None else port) + reverse("home")


def link_url(token: str, port: int | None = None) -> str:
    """Return the address that signs in by `token`."""
    return _base(settings.PORT if port is None else port) + reverse("sign-in-link", args=[token])


def _base(port: int) -> str:
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL)
    host = "127.0.0.1" if settings.HOST in ANYWHERE else settings.HOST
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
