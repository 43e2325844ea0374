"""The pages of sandboxed frames: without network access, and shown only inside Parley's own pages."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from chat.middleware import POLICY


def directives(policy: str) -> dict[str, str]:
    parts = [part.strip().partition(" ") for part in policy.split(";")]
    return {name: value for name, _space, value in parts}


CLOSED = {
    "default-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'self'",
    "style-src": "'unsafe-inline'",
    "img-src": "data:",
}
DRAWN = {"script-src": "'self'", "sandbox": "allow-scripts"}
SHOWN = {
    "script-src": "'unsafe-inline'",
    "sandbox": "allow-scripts allow-forms",
    "require-trusted-types-for": "'script'",
    "trusted-types": "default",
}


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "scripts"), [("diagram-frame", DRAWN), ("preview-frame", SHOWN)])
def test_frame_has_a_policy_of_its_own(client: Client, name: str, scripts: dict[str, str]) -> None:
    """MSG-12: a frame's page has its own origin, no connections, and only scripts of Parley or of the answer."""
    answer = client.get(reverse(name))
    assert directives(answer["Content-Security-Policy"]) == CLOSED | scripts
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    assert answer["X-DNS-Prefetch-Control"] == "off"


@pytest.mark.django_db
def test_preview_page_loads_nothing(client: Client) -> None:
    """MSG-12: the page contains its script, so its policy allows no address."""
    html = client.get(reverse("preview-frame")).content.decode()
    assert "src=" not in html
    assert "href=" not in html


def test_other_pages_have_no_frames() -> None:
    """MSG-12: only a session's page allows frames."""
    assert "frame-src" not in POLICY
