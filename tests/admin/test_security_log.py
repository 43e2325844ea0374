"""The security log and the admin's own log, as staff see them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from django.contrib import admin as django_admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from chat.admin.security import KINDS
from chat.models import SecurityEvent, Session, User
from chat.origin import Interface, Origin, using_origin
from chat.services.people import security_log
from chat.services.people.security_log import Kind, record
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import page_of, said
from tests.support.agreement import agree
from tests.support.signed_in import signed_in
from tests.support.testing_node import let_in, person

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
EVENTS = reverse("admin:chat_securityevent_changelist")
ENTRIES = reverse("admin:admin_logentry_changelist")


@pytest.fixture
def watcher(staff_with: Callable[..., User]) -> Client:
    """A client of a staff user who may only read the security log."""
    client = signed_in(staff_with("view_securityevent", name="wat"))
    SecurityEvent.objects.all().delete()
    return client


def test_log_is_read_and_never_written(watcher: Client, ana: User, bo: User, session: Session) -> None:
    with using_origin(Origin(Interface.PAGE, "192.0.2.1")):
        record(Kind.SHARED, actor=ana, person=bo, target=session, role="viewer")
    event = SecurityEvent.objects.get()
    shown = said(watcher.get(EVENTS))
    for words in ("Shared a session", "ana", "bo", session.pk[-8:], "viewer", "192.0.2.1", "page"):
        assert words in shown
    page = reverse("admin:chat_securityevent_change", args=[event.pk])
    assert "Shared a session" in said(watcher.get(page))
    assert watcher.post(page, {"kind": "sign_in"}).status_code == 403
    assert watcher.get(reverse("admin:chat_securityevent_add")).status_code == 403
    assert watcher.post(reverse("admin:chat_securityevent_delete", args=[event.pk])).status_code == 403
    watcher.post(EVENTS, {"action": "delete_selected", "_selected_action": [event.pk], "post": "yes"})
    assert SecurityEvent.objects.exists()


def test_log_is_for_those_who_were_given_the_right(staff_with: Callable[..., User], mia: User) -> None:
    """Session managers have no access; the right to read the log gives no other access."""
    assert signed_in(mia).get(EVENTS).status_code == 403
    watcher = signed_in(staff_with("view_securityevent", name="wat"))
    assert (watcher.get(EVENTS).status_code, watcher.get(ENTRIES).status_code) == (200, 403)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "sign_in"}, {1}),
        ({"face": "api"}, {2}),
        ({"q": "192.0.2.1"}, {1}),
        ({"q": "192.0.2"}, set()),
        ({"q": "Bo"}, {2, 3}),
        ({"kind": "nonsense"}, set()),
        ({"about": "{bo}"}, {2, 3}),
        ({"about": "x"}, {1, 2, 3}),
        ({"at__year": "1999"}, set()),
    ],
)
def test_events_are_found(watcher: Client, ana: User, bo: User, query: dict[str, str], found: set[int]) -> None:
    """The log can be filtered by kind, interface, user, address and time."""
    with using_origin(Origin(Interface.PAGE, "192.0.2.1")):
        record(Kind.SIGN_IN, actor=ana, person=ana)
    with using_origin(Origin(Interface.API, "192.0.2.2", token_id=7)):
        record(Kind.EXPORTED, actor=bo, person=ana)
    with using_origin(Origin(Interface.ADMIN, "192.0.2.3")):
        record(Kind.SHARED, actor=ana, person=bo)
    ids = list(SecurityEvent.objects.order_by("pk").values_list("pk", flat=True))
    answer = watcher.get(EVENTS, {name: value.format(bo=bo.pk) for name, value in query.items()})
    listed = {ids.index(event.pk) + 1 for event in answer.context["cl"].result_list}
    assert listed == found


def test_event_outlives_the_account(watcher: Client, bo: User) -> None:
    """MSG-11: deleting an account keeps its events."""
    record(Kind.SIGN_IN, actor=bo, person=bo)
    number = bo.pk
    bo.delete()
    assert SecurityEvent.objects.get().actor_id == number
    assert "Signed in" in said(watcher.get(EVENTS))


def test_list_costs_the_same_for_one_and_for_thirty(watcher: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert watcher.get(EVENTS).status_code == 200
        return len(queries)

    record(Kind.SIGN_IN, actor=person("First"))
    at_one = count()
    for number in range(30):
        record(Kind.SHARED, actor=person(f"P{number}"), person=person(f"Q{number}"))
    assert count() == at_one


def test_every_kind_and_way_has_a_name() -> None:
    from chat.admin.security import INTERFACES, KINDS

    for name, listed, actual in (("KINDS", KINDS, Kind), ("INTERFACES", INTERFACES, Interface)):
        agree(
            listed,
            actual,
            missing=f"Add a name for {{}} to {name} in chat/admin/security.py.",
            extra=f"Remove {{}} from {name} in chat/admin/security.py: no event has it.",
        )


def test_secrets_of_second_factors_have_no_page() -> None:
    """allauth would register a page that shows them."""
    assert Authenticator not in django_admin.site._registry


def test_reading_and_searching_of_staff_are_events(admin: Client, mia: User, session: Session) -> None:
    """ADM-01: each opening is an event, and so is each search with its terms, but not its further pages."""
    SecurityEvent.objects.all().delete()
    admin.get(page_of(session))
    admin.get(page_of(session), {"p": "1"})
    sessions = reverse("admin:chat_session_changelist")
    admin.get(sessions)
    admin.get(sessions, {"q": "salary"})
    admin.get(sessions, {"q": "salary", "p": "2"})
    read, searched = SecurityEvent.objects.order_by("pk")
    assert (read.kind, read.actor, read.person, read.object_id) == (Kind.ADMIN_READ, mia, session.owner, session.pk)
    assert (searched.kind, searched.details) == (Kind.ADMIN_SEARCH, {"words": "salary", "of": "messages"})
    assert (read.face, searched.face) == (Interface.ADMIN, Interface.ADMIN)


@pytest.mark.parametrize("paging", [{"p": "1"}, {"p": "2"}, {"p": "2", "all": ""}])
def test_search_that_begins_at_a_page_is_an_event_too(admin: Client, session: Session, paging: dict[str, str]) -> None:
    """ADM-01: such a search is one event, whatever page the address requests first."""
    SecurityEvent.objects.all().delete()
    sessions = reverse("admin:chat_session_changelist")
    for _ in range(2):
        admin.get(sessions, {"q": "salary", **paging})
    [searched] = SecurityEvent.objects.all()
    assert (searched.kind, searched.details) == (Kind.ADMIN_SEARCH, {"words": "salary", "of": "messages"})


def test_each_session_of_an_archive_is_an_event_of_the_admin(admin: Client, ana: User, session: Session) -> None:
    """ADM-03: the archive is written while it is sent, after the request has ended."""
    other = create_session(owner=ana, title="Other")
    SecurityEvent.objects.all().delete()
    fields = {"action": "export_json", "_selected_action": [session.pk, other.pk]}
    answer = admin.post(reverse("admin:chat_session_changelist"), fields, REMOTE_ADDR="192.0.2.1")
    assert answer.getvalue()
    events = SecurityEvent.objects.filter(kind=Kind.EXPORTED)
    assert {event.object_id for event in events} == {session.pk, other.pk}
    assert {(event.face, event.address) for event in events} == {(Interface.ADMIN, "192.0.2.1")}


def test_own_sessions_and_shared_ones_are_no_reading(admin: Client, mia: User, session: Session) -> None:
    let_in(session, mia, "viewer")
    mia.memberships.create(workspace=session.workspace)
    SecurityEvent.objects.all().delete()
    admin.get(page_of(session))
    assert not SecurityEvent.objects.exists()


def test_admin_log_is_seen_across_sessions_and_by_person(
    admin: Client, mia: User, session: Session, staff_with: Callable[..., User]
) -> None:
    """ADM-01: the log has all actions of staff on any object."""
    admin.get(page_of(session))
    auditor = staff_with(name="aud")
    auditor.user_permissions.add(Permission.objects.get(codename="view_logentry"))
    client = signed_in(auditor)
    shown = said(client.get(ENTRIES, {"user__id__exact": str(mia.pk), "action_flag": "4"}))
    assert all(words in shown for words in ("mia", "Read the session.", session.pk))
    entry = LogEntry.objects.get()
    assert client.post(reverse("admin:admin_logentry_delete", args=[entry.pk])).status_code == 403
    assert client.get(reverse("admin:admin_logentry_change", args=[entry.pk])).status_code == 200


def test_search_with_odd_characters_is_kept_as_far_as_it_can_be(admin: Client) -> None:
    """MSG-12: PostgreSQL cannot store NUL."""
    SecurityEvent.objects.all().delete()
    assert admin.get(reverse("admin:chat_session_changelist"), {"q": "a\0b" + "x" * 500}).status_code == 200
    assert [len(event.details["words"]) for event in SecurityEvent.objects.all()] in ([], [200])
    assert security_log.logger.level <= 20


@pytest.mark.parametrize("language", ["zh-hans", "zh-hant"])
def test_kinds_have_one_form_in_chinese(language: str) -> None:
    """UI-13: in the list of the filter, all name what was done, and none reports that it is done."""
    with translation.override(language):
        assert [str(name) for name in KINDS.values() if "了" in str(name) or str(name).startswith("已")] == []
