"""Settings and steps of the startup that prevent access to the process and its files."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from chat.api.api import api
from config.descriptors import descriptor_limit, raise_descriptor_limit
from tests.commands.process import manage

BEHIND_HTTPS = """
from django.conf import settings
from django.core.management import call_command
call_command("check", deploy=True, fail_level="WARNING")
print(settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, settings.SECURE_HSTS_SECONDS)
"""


@pytest.fixture
def _few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("_few_descriptors")
def test_descriptors_are_as_many_as_the_system_allows() -> None:
    """A thousand and twenty-four, the usual, were held by one stranger."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    raise_descriptor_limit()

    assert descriptor_limit() == (65_536 if hard == resource.RLIM_INFINITY else hard)


@pytest.mark.server
def test_installation_behind_https_passes_django_s_own_review(tmp_path: Path) -> None:
    """HSTS, redirects, and cookies that no other host of the domain can set."""
    secured = manage("shell", "-c", BEHIND_HTTPS, data=tmp_path, HTTPS="1", PUBLIC_URL="https://chat.example.org")

    assert secured.returncode == 0, secured.stderr
    assert secured.stdout.splitlines()[-1] == "__Host-parley_session __Host-parley_csrf 31536000"


def test_every_answer_carries_the_policies(client: Client) -> None:
    answer = client.get("/favicon.ico")

    assert "camera=()" in answer["Permissions-Policy"]
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer["Location"].endswith("/favicon.svg")


@pytest.mark.django_db
def test_description_of_the_api_is_not_the_first_stranger_s(client: Client) -> None:
    """Daphne takes a prefix of all paths from a header of the request, and the description is made once."""
    vars(api).pop("_described", None)

    described = client.get(reverse("api:openapi-json"), SCRIPT_NAME="/evil").json()

    assert "/api/sessions" in described["paths"]
    assert "evil" not in str(described["paths"].keys())
