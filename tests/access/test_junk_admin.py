"""Invalid input in every field of every form, list and action of the admin, which never causes a server error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, urlencode, urljoin

import pytest
from bs4 import BeautifulSoup, Tag
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote
from django.db import models, transaction
from django.forms import formsets
from django.test import Client
from django.urls import reverse

from chat.models import ApprovalRule, McpServer
from chat.services.people import workspace_invitations
from chat.services.sessions import schedules
from tests.access.people import ADMIN, MESSAGE, OWNER, STAFF, People
from tests.support.effort import one_of, share_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.both_databases]
# In addition to the values for other pages: numbers beyond 64 bits, dates, JSON, and lists that name no row.
JUNK = (
    b"",
    b"a\0b",
    b"\xed\xa0\x80\xff",
    b"../../etc/passwd",
    b"'\"><script>alert(1)</script>%s%(count)s{0.__class__}",
    b"-1",
    b"9223372036854775808",
    b"99999999999999999999999",
    b"9" * 5000,
    b"nan",
    b"9999-99-99",
    b'{"a": "\\u0000"}',
    b"1,b\0,99999999999999999999999",
)
LIST_NAMES = ("p", "o", "q", "all", "e", "_facets", "_to_field", "_popup", "_changelist_filters", "unknown", "pk__in")
LOOKUPS = ("", "__exact", "__id__exact", "__in", "__gte", "__lt", "__isnull", "__year", "__contains", "__pk__in")
AUTOCOMPLETE = {"app_label": "chat", "model_name": "approvalrule", "field_name": "workspace", "term": "", "page": "1"}


class Form(NamedTuple):
    address: str
    values: dict[str, list[str]]


@pytest.fixture(autouse=True)
def _short_formsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a formset with an enormous count to ten rows. By default Django renders two thousand, in seconds."""
    monkeypatch.setattr(formsets, "DEFAULT_MAX_NUM", 5)


@pytest.fixture
def root(people: People) -> Client:
    """A client of an administrator, with a row of each kind."""
    owner, workspace = people[OWNER], people.session.workspace
    rule = ApprovalRule.objects.create(workspace=workspace, rule="bash", verdict="ask", user=owner)
    McpServer.objects.create(workspace=workspace, name="books", url="https://mcp.example/")
    schedules.add(author=owner, session_id=people.session.pk, text="Hi", cron="0 9 * * *", zone="UTC")
    workspace_invitations.invite(author=people[ADMIN], workspace_id=workspace.pk)
    LogEntry.objects.log_actions(people[STAFF].pk, [rule], CHANGE, change_message="x", single_object=True)
    client = Client()
    client.force_login(people[STAFF])
    return client


def managed() -> list[type[models.Model]]:
    return sorted(admin.site._registry, key=lambda model: model._meta.label_lower)


def page_of(model: type[models.Model], name: str, *args: str) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def first_of(model: type[models.Model]) -> str:
    row = model._default_manager.order_by("pk").first()
    return quote(row.pk) if row else "1"


def throw(client: Client, method: str, path: str, values: Any = None) -> int:
    """Send a request and undo its changes. Django's client raises an exception of a view."""
    with transaction.atomic():
        if method == "GET":
            answer = client.get(f"{path}?{urlencode(values or {}, doseq=True)}")
        else:
            body = urlencode(values or {}, doseq=True).encode()
            answer = client.post(path, body, content_type="application/x-www-form-urlencoded")
        transaction.set_rollback(True)
    assert answer.status_code < 500, (method, path[:200], values)
    return answer.status_code


def forms_in(client: Client, path: str) -> Iterator[Form]:
    """Return a page's POST forms as a browser would send them, with one more row in each formset."""
    answer = client.get(path, follow=True)
    for form in BeautifulSoup(answer.content, "html.parser").find_all("form", method=lambda name: name == "post"):
        address = urljoin(answer.request["PATH_INFO"], str(form.get("action") or ""))
        if address == reverse("admin:logout"):
            continue
        values: dict[str, list[str]] = {}
        for field in form.find_all(["input", "textarea", "select", "button"]):
            if field.get("name") and field.get("type") != "file":
                values.setdefault(str(field["name"]), []).extend(values_of(field))
        add_row(values)
        yield Form(address, values)


def add_row(values: dict[str, list[str]]) -> None:
    """Add a row to each formset from the template in the page."""
    for name in [name for name in values if "-__prefix__-" in name]:
        prefix = name.partition("-__prefix__-")[0]
        count = int(values[f"{prefix}-INITIAL_FORMS"][0])
        values[f"{prefix}-TOTAL_FORMS"] = [str(count + 1)]
        values[name.replace("__prefix__", str(count))] = values.pop(name)


def distinct(form: Form) -> list[str]:
    """Return the fields of a form, with those of one existing row of a formset, because its other rows have the
    same."""
    added = {f"-{int(count[0]) - 1}-" for name, count in form.values.items() if name.endswith("-TOTAL_FORMS")}
    rows = {name: match[0] for name in form.values if (match := re.search(r"-\d+-", name))}
    return [name for name in form.values if rows.get(name, "-0-") in {"-0-", *added}]


def values_of(field: Tag) -> list[str]:
    if field.name == "select":
        return [str(option.get("value", "")) for option in field.find_all("option", selected=True)]
    if field.get("type") in ("checkbox", "radio") and not field.has_attr("checked"):
        return []
    return [field.get_text() if field.name == "textarea" else str(field.get("value", ""))]


def throw_in_each_field(client: Client, forms: Iterable[Form]) -> int:
    count = 0
    for form in forms:
        for name in distinct(form):
            count += 1
            for junk in one_of(JUNK, count):
                throw(client, "POST", form.address, {**form.values, name: junk})
        for junk in share_of(JUNK, count):
            throw(client, "POST", form.address, dict.fromkeys(form.values, junk))
    assert client.get("/admin/").status_code == 200
    return count


@pytest.mark.parametrize("model", managed(), ids=lambda model: model.__name__)
def test_junk_in_forms(root: Client, model: type[models.Model]) -> None:
    """MSG-12: one field is invalid and the others valid, and then all are invalid."""
    for path in (page_of(model, "add"), page_of(model, "change", first_of(model))):
        throw_in_each_field(root, forms_in(root, path))


def test_junk_in_forms_of_single_pages(root: Client, people: People) -> None:
    """MSG-12: the forms for messages and for passwords are covered too."""
    session = people.session.pk
    for path in (
        reverse("admin:chat_session_message", args=[session, MESSAGE]),
        reverse("admin:chat_session_add_message", args=[session]),
        reverse("admin:auth_user_password_change", args=[people[OWNER].pk]),
    ):
        assert throw_in_each_field(root, forms_in(root, path)) > 2


@pytest.mark.parametrize("model", managed(), ids=lambda model: model.__name__)
def test_junk_in_lists(root: Client, model: type[models.Model]) -> None:
    """MSG-12: each parameter of a list, each of its filters, and unknown parameters get invalid values."""
    path = page_of(model, "changelist")
    names = set(LIST_NAMES)
    for number, field in enumerate(model._meta.fields):
        names.update(f"{field.name}{lookup}" for lookup in share_of(LOOKUPS, number))
    for link in BeautifulSoup(root.get(path).content, "html.parser").select("a[href^='?']"):
        names.update(pair.partition("=")[0] for pair in str(link["href"])[1:].split("&"))
    for number, name in enumerate(sorted(names), len(model.__name__)):
        for junk in one_of(JUNK, number):
            throw(root, "GET", path, {name: junk})


@pytest.mark.parametrize("model", managed(), ids=lambda model: model.__name__)
def test_junk_in_actions(root: Client, model: type[models.Model]) -> None:
    """MSG-12: the selection of an action and its parameters get invalid values."""
    path = page_of(model, "changelist")
    options = BeautifulSoup(root.get(path).content, "html.parser").select("select[name=action] option")
    actions = [str(option["value"]) for option in options if option.get("value")]
    for number, action in enumerate([*actions, "unknown"]):
        base = {"action": action, "_selected_action": [first_of(model)], "index": "0", "select_across": "0"}
        for junk in share_of(JUNK, number):
            for sure in ({}, {"sure": "yes", "post": "yes"}):
                throw(root, "POST", path, {**base, **sure, "_selected_action": [junk, b"1"]})
        for name in base:
            for junk in share_of(JUNK, number):
                throw(root, "POST", path, {**base, name: junk})


@pytest.mark.parametrize("model", managed(), ids=lambda model: model.__name__)
def test_junk_where_an_id_should_be(root: Client, model: type[models.Model]) -> None:
    """MSG-12: the addresses of objects and their parameters get invalid values."""
    for name in ("change", "delete", "history"):
        path = page_of(model, name, "0")
        for junk in share_of(JUNK, len(model.__name__)):
            odd = path.replace("/0/", f"/{quote_from_bytes(junk, safe='')}/")
            throw(root, "GET", odd)
            throw(root, "POST", odd, {"post": "yes"})
            throw(root, "GET", page_of(model, name, first_of(model)), {"_to_field": junk, "_changelist_filters": junk})
            throw(root, "GET", page_of(model, name, first_of(model)), {"p": junk, "_popup": junk})


def test_junk_in_what_the_site_is_asked(root: Client, people: People) -> None:
    """MSG-12: the search for a field's choices, and the links to an object, get invalid values."""
    for name in AUTOCOMPLETE:
        for junk in JUNK:
            throw(root, "GET", reverse("admin:autocomplete"), {**AUTOCOMPLETE, name: junk})
    for junk in JUNK:
        text = quote_from_bytes(junk, safe="") or "x"
        for path in (f"/admin/r/{text}/1/", f"/admin/r/1/{text}/", f"/admin/{text}/", f"/admin/jsi18n/?{text}"):
            throw(root, "GET", path)
