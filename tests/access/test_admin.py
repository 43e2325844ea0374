"""The access matrix of the admin's pages: each page of Parley's own needs a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.test import Client
from django.urls import get_resolver
from pytest_django.fixtures import Settings

from chat.models import User
from chat.services.people import staff
from tests.access.people import ANONYMOUS, EVERYONE, MESSAGE, STAFF, People
from tests.access.test_pages import routes
from tests.support.agreement import agree

pytestmark = pytest.mark.django_db
MANAGER = "manager"  # a member of the ready-made group
KEEPER = "keeper"  # may see sessions, but not their messages
CLERK = "clerk"  # staff without permissions
OTHERS = [actor for actor in EVERYONE if actor != STAFF]
INSIDERS = (STAFF, MANAGER, KEEPER, CLERK)
# Pages of the admin itself, for everyone and for all staff.
FOR_ALL = ("admin/login/", "admin/logout/")
SEARCH = "admin/autocomplete/"
FOR_STAFF = (
    "admin/",
    "admin/password_change/",
    "admin/password_change/done/",
    "admin/jsi18n/",
    SEARCH,
    "admin/r/<path:content_type_id>/<path:object_id>/",
)
OF_MODELS = re.compile(r"admin/(\w+)/(\w+)/(add/|<path:object_id>/((change|delete|history)/)?)?")
SESSIONS = "admin/chat/session/"
SESSION = f"{SESSIONS}<str:session_id>/"
VALUES = {"message_id": MESSAGE, "form": "json", "content_type_id": "1"}


@dataclass(frozen=True)
class Row:
    """The answers to a request, in the order of INSIDERS."""

    method: str
    route: str
    expected: tuple[int, ...]
    data: dict[str, str] = field(default_factory=dict, hash=False)


# Parley's pages, beside those that the admin makes for each model.
MATRIX = [
    Row("GET", f"{SESSION}state/", (200, 200, 200, 403)),
    Row("GET", f"{SESSION}messages/add/", (200, 200, 403, 403)),
    Row("GET", f"{SESSION}messages/<str:message_id>/", (200, 200, 403, 403)),
    Row("POST", f"{SESSION}do/", (302, 302, 403, 403), {"action": "stop"}),
    Row("GET", f"{SESSION}do/", (405, 405, 405, 405)),
    Row("GET", f"{SESSION}export/<str:form>/", (200, 200, 403, 403)),
    Row("GET", "admin/chat/user/<id>/password/", (200, 403, 403, 403)),
]
# The models that staff with some permissions see; they see no others.
SEEN = {
    (MANAGER, "chat.session"): {"": 200, "<path:object_id>/change/": 200, "<path:object_id>/history/": 200},
    (KEEPER, "chat.session"): {"": 200, "<path:object_id>/change/": 200, "<path:object_id>/history/": 200},
}


def addresses() -> list[str]:
    """Return all addresses of the admin except its catch-all."""
    found = [path for path in routes(get_resolver().url_patterns) if path.startswith("admin/")]
    return [path for path in found if "(" not in path] + ["admin/chat/"]


def of_models() -> Iterator[tuple[str, str, str]]:
    """Return (address, model, rest) of the pages that the admin makes for each model."""
    for path in addresses():
        match = OF_MODELS.fullmatch(path)
        if match is not None and path not in FOR_STAFF:
            yield path, f"{match[1]}.{match[2]}", match[3] or ""


def address(people: People, route: str, model: str = "") -> str:
    """Return an address with its parameters filled in."""
    values = {**VALUES, "session_id": people.session.pk, "object_id": "1", "id": str(people[STAFF].pk)}
    if model:
        first = apps.get_model(model)._default_manager.order_by("pk").first()
        values["object_id"] = str(quote(first.pk if first else 1))
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: values[match[1]], route)


def client_of(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def insider(people: People, actor: str) -> User:
    if actor == STAFF:
        return people[STAFF]
    user = User.objects.create_user(actor, is_staff=True)
    if actor == MANAGER:
        user.groups.add(Group.objects.get(name=staff.MANAGERS))
    if actor == KEEPER:
        user.user_permissions.add(Permission.objects.get(codename="view_session", content_type__app_label="chat"))
    return user


def test_every_page_has_a_row() -> None:
    """ADM-01: a new page needs a row, so that its access is decided."""
    made = {path for path, _model, _rest in of_models()}
    known = {*FOR_ALL, *FOR_STAFF, "admin/chat/", *(row.route for row in MATRIX), *made}
    agree(
        known,
        addresses(),
        missing="Add a Row for {} to MATRIX in this file: it says what each kind of staff gets.",
        extra="Remove {} from this file: the admin has no such page.",
    )
    managed = {model._meta.label_lower for model in admin.site._registry}
    assert {model for _path, model, _rest in of_models()} == managed


@pytest.mark.parametrize("actor", OTHERS)
def test_admin_is_for_staff(people: People, actor: str) -> None:
    """LIVE-06: every page of the admin sends users who are not staff to its sign-in, even editors of the session.

    The search of a field gets 401, because its script would follow the redirect.
    """
    client = client_of(people.users[actor])
    for route in addresses():
        for method in ("get", "post") if route not in FOR_ALL else ():
            answer = getattr(client, method)(address(people, route))
            refusal = (answer.status_code, answer.headers.get("Location", "").partition("?")[0])
            assert refusal == ((401, "") if route == SEARCH else (302, "/admin/login/")), route


def test_staff_who_owe_a_second_factor_see_nothing(people: People, settings: Settings) -> None:
    """LIVE-06: staff without the required second factor have no access to the admin."""
    settings.REQUIRE_MFA = "staff"
    client = client_of(people[STAFF])
    for route in addresses():
        if route != "admin/logout/":
            answer = client.get(address(people, route))
            assert (answer.status_code, answer.headers.get("Location")) == (302, "/settings/two-step/"), route


@pytest.mark.parametrize("actor", INSIDERS)
def test_staff_get_what_the_matrix_says(people: People, actor: str) -> None:
    """ADM-01: each kind of staff gets the answers of the matrix; a session's texts are for staff who may read
    messages."""
    client = client_of(insider(people, actor))
    got = {}
    for row in MATRIX:
        with transaction.atomic():
            got[row] = getattr(client, row.method.lower())(address(people, row.route), row.data).status_code
            transaction.set_rollback(True)
    assert got == {row: row.expected[INSIDERS.index(actor)] for row in MATRIX}


@pytest.mark.parametrize("actor", [MANAGER, KEEPER, CLERK])
def test_staff_see_what_they_may(people: People, actor: str) -> None:
    """ADM-01: a model is shown only to staff with its permission, also if the model is new."""
    client = client_of(insider(people, actor))
    for route, model, rest in of_models():
        if rest == "<path:object_id>/":
            continue  # redirects to the object's page
        answer = client.get(address(people, route, model))
        if answer.get("Location") == "/admin/":
            continue  # the admin's answer for an unknown object
        assert answer.status_code == SEEN.get((actor, model), {}).get(rest, 403), route


def test_all_pages_open_for_those_who_may_everything(people: People) -> None:
    """ADM-01: a superuser can open all pages, except those that no one may use, such as adding a session."""
    client = client_of(people[STAFF])
    for route, model, _rest in of_models():
        assert client.get(address(people, route, model), follow=True).status_code in (200, 403), route


def test_owning_a_session_gives_staff_no_access_to_it_in_the_admin(people: People) -> None:
    """LIVE-06: owning a session gives staff no further access to it in the admin."""
    people.session.owner = insider(people, CLERK)
    people.session.save()
    answer = client_of(people.session.owner).get(address(people, f"{SESSIONS}<path:object_id>/change/", "chat.session"))
    assert answer.status_code == 403


def test_anonymous_learn_nothing(people: People) -> None:
    """LIVE-06: anonymous users get the same answer for existing and for unknown objects."""
    client = client_of(people.users[ANONYMOUS])
    route = f"{SESSIONS}<path:object_id>/change/"
    known, unknown = client.get(address(people, route, "chat.session")), client.get(f"/{SESSIONS}s_unknown/change/")
    assert (known.status_code, known.content) == (unknown.status_code, unknown.content)
