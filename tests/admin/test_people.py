"""People and workspaces in the admin: who may look after them, and what cannot be lost there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.models import Membership, Session, SignInLink, User, Workspace
from chat.services import staff
from chat.services.sessions import create_session
from tests.admin.conftest import signed_in
from tests.admin.pages import said
from tests.support.house import person

pytestmark = pytest.mark.django_db
PEOPLE = reverse("admin:chat_user_changelist")
WORKSPACES = reverse("admin:chat_workspace_changelist")


@pytest.fixture
def root(db: None) -> Client:
    """An administrator's browser."""
    return signed_in(User.objects.create_superuser("root", display_name="Root", password="correct horse"))


def page_of(row: User | Workspace, deed: str = "change") -> str:
    return reverse(f"admin:chat_{row._meta.model_name}_{deed}", args=[row.pk])


def values_of(user: User, **changed: Any) -> dict[str, Any]:
    """What the form of a person sends."""
    flags = {name: "on" for name in ("is_active", "is_staff", "is_superuser") if getattr(user, name)}
    rows = {f"memberships-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS")}
    values = {"username": user.username, "display_name": user.display_name, **flags, **rows, **changed}
    return {name: value for name, value in values.items() if value is not None}


def test_group_of_session_managers_may_do_nothing_else() -> None:
    """ADM-01: made once; what operators make of it stays."""
    group = Group.objects.get(name=staff.MANAGERS)
    names = group.permissions.order_by("codename").values_list("codename", flat=True)
    assert list(names) == ["change_chatmessage", "change_session", "view_chatmessage", "view_session"]
    group.permissions.add(Permission.objects.get(codename="view_user"))
    staff.make_managers(apps.get_app_config("chat"), using="default", apps=apps, verbosity=0)
    assert (Group.objects.count(), group.permissions.count()) == (1, 5)


def test_admin_s_first_page_shows_what_one_may_do(staff_with: Callable[..., User], ana: User, root: Client) -> None:
    """ADM-01: staff without rights see nothing, session managers sessions alone; others do not come in."""
    manager = staff_with(name="max")
    manager.groups.add(Group.objects.get(name=staff.MANAGERS))
    clients = {"staff": signed_in(staff_with()), "manager": signed_in(manager), "root": root}
    seen = {}
    for name, client in clients.items():
        for address in (PEOPLE, WORKSPACES, reverse("admin:chat_agentpreset_changelist"), page_of(ana)):
            seen[name, address] = client.get(address).status_code
        seen[name, "sessions"] = client.get(reverse("admin:chat_session_changelist")).status_code
        assert client.get(reverse("admin:index")).status_code == 200
    assert {status for (name, _), status in seen.items() if name == "staff"} == {403}
    assert {at for (name, at), status in seen.items() if name == "manager" and status == 200} == {"sessions"}
    assert {status for (name, _), status in seen.items() if name == "root"} == {200}
    answer = signed_in(ana).get(PEOPLE)
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, reverse("admin:login"))


def test_password_s_hash_is_neither_shown_nor_written(root: Client, ana: User) -> None:
    """LIVE-06: a form that names another one changes nothing."""
    html = root.get(page_of(ana)).content.decode()
    assert ana.password.rpartition("$")[2] not in html
    assert root.post(page_of(ana), values_of(ana, password="md5$a$b", display_name="Anna")).status_code == 302
    assert User.objects.get(pk=ana.pk).password == ana.password
    assert User.objects.get(pk=ana.pk).display_name == "Anna"


def test_person_is_made_without_a_password_and_let_in_by_a_link(root: Client) -> None:
    """ADM-01: the link stands on the page, once, and in the log that it was made."""
    made = root.post(
        reverse("admin:chat_user_add"),
        values_of(User(username="mei", display_name="Mei"), usable_password="false"),
    )
    mei = User.objects.get(username="mei") if made.status_code == 302 else None
    assert mei is not None
    assert (mei.has_usable_password(), mei.display_name) == (False, "Mei")
    answer = root.post(PEOPLE, {"action": "sign_in_link", "_selected_action": [mei.pk]}, follow=True)
    link = re.search(r"http://testserver(/accounts/link/[\w-]+)", answer.content.decode())
    assert link is not None
    Client().get(link[1])
    assert SignInLink.objects.get().user == mei
    assert LogEntry.objects.filter(object_id=mei.pk, change_message="Made a sign-in link.").count() == 1


def test_nobody_takes_more_rights_than_they_were_given(
    staff_with: Callable[..., User], ana: User, root: Client
) -> None:
    """LIVE-06: who may change people changes no rights, and no account that has any."""
    clerk = staff_with("view_user", "change_user", "delete_user")
    client = signed_in(clerk)
    client.post(page_of(ana), values_of(ana, is_superuser="on", is_staff="on", display_name="Anna"))
    changed = User.objects.get(pk=ana.pk)
    assert (changed.display_name, changed.is_staff, changed.is_superuser) == ("Anna", False, False)
    boss = User.objects.get(username="root")
    password = reverse("admin:auth_user_password_change", args=[boss.pk])
    for other in (boss, clerk):
        assert client.post(page_of(other), values_of(other, is_superuser="on")).status_code == 403
    assert client.post(password, {"password1": "correct horse 2", "password2": "correct horse 2"}).status_code == 403
    assert client.post(page_of(boss, "delete"), {"post": "yes"}).status_code == 403
    client.post(PEOPLE, {"action": "sign_in_link", "_selected_action": [boss.pk]})
    client.post(PEOPLE, {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"})
    assert not SignInLink.objects.exists()
    assert User.objects.get(username="root").check_password("correct horse")


def test_last_administrator_stays(root: Client) -> None:
    boss = User.objects.get(username="root")
    for lost in ("is_active", "is_staff", "is_superuser"):
        answer = root.post(page_of(boss), values_of(boss, **{lost: None}))
        assert "This is the last active administrator" in said(answer)
    assert root.post(page_of(boss, "delete"), {"post": "yes"}).status_code == 403
    User.objects.create_superuser("second")
    assert root.post(page_of(boss), values_of(boss, is_superuser=None)).status_code == 302


def test_who_owns_sessions_is_not_deleted(root: Client, ana: User, bo: User) -> None:
    """MSG-11: said in words that name no session; alone and with others; who has nothing goes."""
    create_session(owner=ana, title="Private plan")
    before = root.post(page_of(ana, "delete"), {"post": "yes"})
    assert before.status_code == 200
    assert "This cannot be deleted: Ana owns 1 session." in said(before)
    several = {"action": "delete_selected", "_selected_action": [ana.pk, bo.pk], "post": "yes"}
    answer = root.post(PEOPLE, several)
    assert (answer.status_code, "Ana owns 1 session." in said(answer)) == (200, True)
    assert b"Private plan" not in before.content + answer.content
    assert User.objects.filter(pk__in=[ana.pk, bo.pk]).count() == 2
    assert root.post(page_of(bo, "delete"), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=bo.pk).exists()


def test_who_stands_in_the_audit_log_is_not_deleted(root: Client, staff_with: Callable[..., User]) -> None:
    """MSG-11: with them their entries would go."""
    clerk = staff_with()
    LogEntry.objects.create(user=clerk, action_flag=2, object_id="1", object_repr="x")
    assert "Mia stands in the audit log." in said(root.post(page_of(clerk, "delete"), {"post": "yes"}))
    assert LogEntry.objects.filter(user=clerk).exists()


def test_workspace_with_sessions_is_not_deleted(root: Client, ana: User, workspace: Workspace) -> None:
    session = create_session(owner=ana, workspace=workspace)
    answer = root.post(page_of(workspace, "delete"), {"post": "yes"})
    assert "“Team” holds 1 session." in said(answer)
    Session.objects.filter(pk=session.pk).delete()
    assert root.post(page_of(workspace, "delete"), {"post": "yes"}).status_code == 302
    assert not Workspace.objects.filter(pk=workspace.pk).exists()


def test_member_is_added_and_removed_with_the_workspace(root: Client, ana: User, workspace: Workspace) -> None:
    lea = person("Lea")
    rows = {"memberships-TOTAL_FORMS": "2", "memberships-INITIAL_FORMS": "1", "memberships-0-DELETE": "on"}
    first = {"memberships-0-id": str(Membership.objects.get(user=ana).pk), "memberships-0-user": str(ana.pk)}
    data = {"name": "Crew", **rows, **first, "memberships-0-workspace": "", "memberships-1-user": str(lea.pk)}
    first["memberships-0-role"] = data["memberships-0-role"] = data["memberships-1-role"] = "member"
    first["memberships-0-workspace"] = data["memberships-0-workspace"] = data["memberships-1-workspace"] = str(
        workspace.pk
    )
    assert root.post(page_of(workspace), data).status_code == 302
    assert list(workspace.members.values_list("username", flat=True)) == ["lea"]


def test_pages_cost_the_same_for_one_and_for_thirty(root: Client, workspace: Workspace) -> None:
    """ADM-01: lists, and who is in a workspace."""

    def counts() -> list[int]:
        found = []
        for address in (PEOPLE, WORKSPACES, page_of(workspace)):
            with CaptureQueriesContext(connection) as queries:
                assert root.get(address).status_code == 200
            found.append(len(queries))
        return found

    create_session(owner=person("First", workspace), workspace=workspace)
    at_one = counts()
    for number in range(30):
        create_session(owner=person(f"P{number}"))
        person(f"Q{number}", workspace)
    assert counts() == at_one
