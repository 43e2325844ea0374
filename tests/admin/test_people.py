"""Users in the admin: permissions, and what cannot be deleted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.models import (
    Invitation,
    Membership,
    Schedule,
    SecurityEvent,
    SessionRole,
    SignInLink,
    User,
    Workspace,
    WorkspaceInvitation,
)
from chat.services.people import sharing, staff, workspace_invitations
from chat.services.people.security_log import Kind
from chat.services.sessions import schedules
from chat.services.sessions.lifecycle import begin_session, create_session
from tests.admin.pages import form_in, said
from tests.support.second_factors import give_app
from tests.support.signed_in import signed_in
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db
PEOPLE = reverse("admin:chat_user_changelist")
WORKSPACES = reverse("admin:chat_workspace_changelist")


@pytest.fixture
def root(db: None) -> Client:
    """A superuser's client."""
    return signed_in(User.objects.create_superuser("root", display_name="Root", password="correct horse"))


def page_of(row: User | Workspace, action: str = "change") -> str:
    return reverse(f"admin:chat_{row._meta.model_name}_{action}", args=[row.pk])


def values_of(user: User, **changed: Any) -> dict[str, Any]:
    """Return the values that a user's form sends."""
    flags = {
        name: "on" for name in ("is_active", "is_staff", "is_superuser", "can_own_workspace") if getattr(user, name)
    }
    rows = {f"memberships-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS")}
    values = {"username": user.username, "display_name": user.display_name, **flags, **rows, **changed}
    return {name: value for name, value in values.items() if value is not None}


def test_group_of_session_managers_may_do_nothing_else() -> None:
    """ADM-01: the group is created once; later changes by operators are kept."""
    group = Group.objects.get(name=staff.MANAGERS)
    names = group.permissions.order_by("codename").values_list("codename", flat=True)
    assert list(names) == ["change_chatmessage", "change_session", "view_chatmessage", "view_session"]
    group.permissions.add(Permission.objects.get(codename="view_user"))
    staff.make_managers(apps.get_app_config("chat"), using="default", apps=apps, verbosity=0)
    assert (Group.objects.count(), group.permissions.count()) == (1, 5)


def test_admin_s_first_page_shows_what_one_may_do(staff_with: Callable[..., User], ana: User, root: Client) -> None:
    """ADM-01: staff without rights see nothing, session managers only sessions; other users cannot enter."""
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
    """LIVE-06: a form with another hash changes nothing."""
    html = root.get(page_of(ana)).content.decode()
    assert ana.password.rpartition("$")[2] not in html
    assert root.post(page_of(ana), values_of(ana, password="md5$a$b", display_name="Anna")).status_code == 302
    assert User.objects.get(pk=ana.pk).password == ana.password
    assert User.objects.get(pk=ana.pk).display_name == "Anna"


def test_person_is_made_without_a_password_and_let_in_by_a_link(root: Client) -> None:
    """ADM-01: the page shows the link once; the log has its creation."""
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
    assert "Sign in as Mei" in Client().get(link[1]).content.decode()
    assert SignInLink.objects.get().user == mei
    assert LogEntry.objects.filter(object_id=mei.pk, change_message="Created a sign-in link.").count() == 1


def test_staff_who_may_change_users_cannot_change_rights_or_accounts_with_rights(
    staff_with: Callable[..., User], ana: User, root: Client
) -> None:
    """LIVE-06: staff who may change users can neither change rights nor change accounts that have some."""
    clerk = staff_with("view_user", "change_user", "delete_user")
    client = signed_in(clerk)
    rights = {
        "groups": [Group.objects.get(name=staff.MANAGERS).pk],
        "user_permissions": [Permission.objects.get(codename="view_chatmessage").pk],
    }
    client.post(page_of(ana), values_of(ana, is_superuser="on", is_staff="on", display_name="Anna", **rights))
    changed = User.objects.get(pk=ana.pk)
    assert (changed.display_name, changed.is_staff, changed.is_superuser) == ("Anna", False, False)
    assert not changed.groups.exists()
    assert not changed.user_permissions.exists()
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


BECOMING = ("view_user", "change_user", "change_session", "view_chatmessage")


def make_link(client: Client, user: User) -> str:
    return said(client.post(PEOPLE, {"action": "sign_in_link", "_selected_action": [user.pk]}, follow=True))


def set_password(client: Client, user: User) -> int:
    address = reverse("admin:auth_user_password_change", args=[user.pk])
    values = {"password1": "correct horse 2", "password2": "correct horse 2", "usable_password": "true"}
    return int(client.post(address, values).status_code)


@pytest.mark.parametrize("missing", ["change_session", "view_chatmessage"])
def test_who_looks_after_people_cannot_become_them(staff_with: Callable[..., User], ana: User, missing: str) -> None:
    """LIVE-06: a link or a new password would give access to what needs a separate permission to read."""
    clerk = signed_in(staff_with(*(each for each in BECOMING if each != missing)))
    assert "sign_in_link" not in clerk.get(PEOPLE).content.decode()
    make_link(clerk, ana)
    assert set_password(clerk, ana) == 403
    # "+7", which the admin quotes like this, is parsed as the id 7 as well.
    address = reverse("admin:auth_user_password_change", args=[f"_2B{ana.pk}"])
    values = {"password1": "correct horse 2", "password2": "correct horse 2", "usable_password": "true"}
    assert clerk.post(address, values).status_code == 403
    assert not SignInLink.objects.exists()
    assert User.objects.get(pk=ana.pk).check_password("correct horse")


def test_user_is_notified_of_a_sign_in_link_and_a_new_password_from_staff(
    staff_with: Callable[..., User], ana: User
) -> None:
    """LIVE-06: the user sees it on the next page and in the security log; a new password ends their sign-ins."""
    mia = staff_with(*BECOMING)
    client, hers = signed_in(mia), signed_in(ana)
    assert "signs Ana in, once" in make_link(client, ana)
    assert "Mia created a sign-in link for your account" in said(hers.get("/"))
    assert set_password(client, ana) == 302
    assert hers.get("/").status_code == 302
    assert "Mia changed your password on" in said(signed_in(User.objects.get(pk=ana.pk)).get("/"))
    events = SecurityEvent.objects.filter(actor=mia, person=ana).order_by("pk")
    assert [event.kind for event in events] == [
        Kind.SIGN_IN_LINK_MADE,
        Kind.PASSWORD_CHANGED,
        Kind.SIGNED_OUT_ELSEWHERE,
    ]


def test_groups_are_changed_by_superusers(staff_with: Callable[..., User], root: Client) -> None:
    """LIVE-06: staff who could change a group of their own could give themselves every right."""
    clerk = staff_with()
    clerk.user_permissions.set(Permission.objects.filter(codename__endswith="_group"))
    group = Group.objects.get(name=staff.MANAGERS)
    clerk.groups.add(group)
    page = reverse("admin:auth_group_change", args=[group.pk])
    form = {"name": group.name, "permissions": [Permission.objects.get(codename="change_user").pk]}
    assert signed_in(clerk).get(page).status_code == 200
    assert signed_in(clerk).post(page, form).status_code == 403
    assert signed_in(clerk).get(reverse("admin:auth_group_add")).status_code == 403
    assert root.post(page, form).status_code == 302
    assert [each.codename for each in group.permissions.all()] == ["change_user"]


def test_second_factor_is_reset_by_those_who_were_given_the_right(
    staff_with: Callable[..., User], ana: User, root: Client
) -> None:
    """LIVE-06: the permission covers users, not other staff; the user's sign-ins end, and the user is notified."""
    hers = signed_in(ana)
    give_app(ana)
    boss = User.objects.get(username="root")
    give_app(boss)
    reset = {"action": "reset_second_factor", "_selected_action": [ana.pk, boss.pk]}
    clerk = signed_in(staff_with("view_user", "change_user"))
    clerk.post(PEOPLE, reset)
    assert Authenticator.objects.count() == 2
    assert "authenticator app" in said(clerk.get(page_of(ana)))
    assert [user.username for user in clerk.get(PEOPLE, {"two_step": "yes"}).context["cl"].result_list] == [
        "ana",
        "root",
    ]

    helper = staff_with("view_user", "reset_second_factor", name="hal")
    notices = said(signed_in(helper).post(PEOPLE, reset, follow=True))

    assert "Two-step verification of Ana was reset." in notices
    assert "Items that you can’t change were skipped." in notices
    assert [row.user for row in Authenticator.objects.all()] == [boss]
    assert hers.get("/").status_code == 302
    assert "Hal removed your two-step verification" in said(signed_in(User.objects.get(pk=ana.pk)).get("/"))
    assert SecurityEvent.objects.get(kind=Kind.SECOND_FACTOR_RESET).actor == helper
    assert "has no two-step verification" in said(
        root.post(PEOPLE, reset | {"_selected_action": [ana.pk]}, follow=True)
    )


def test_changes_of_accounts_are_events(root: Client, ana: User, workspace: Workspace) -> None:
    """Events have the names of changed fields, never their values, and who joined or left a workspace."""
    SecurityEvent.objects.all().delete()
    boss, lea = User.objects.get(username="root"), person("Lea")
    root.post(page_of(ana), values_of(ana, is_staff="on", display_name="Anna"))
    rows = {"memberships-TOTAL_FORMS": "2", "memberships-INITIAL_FORMS": "1", "memberships-0-DELETE": "on"}
    rows |= {"memberships-0-id": str(Membership.objects.get(user=ana).pk), "memberships-0-user": str(ana.pk)}
    rows |= {"memberships-0-workspace": str(workspace.pk), "memberships-1-workspace": str(workspace.pk)}
    rows |= {"memberships-1-role": "member"}
    root.post(page_of(workspace), {"name": "Crew", "memberships-1-user": str(lea.pk), **rows})
    root.post(page_of(ana, "delete"), {"post": "yes"})
    events = SecurityEvent.objects.filter(actor=boss).order_by("pk")
    assert [(event.kind, event.person_id, event.details) for event in events] == [
        (Kind.ACCOUNT_CHANGED, ana.pk, {"fields": ["display_name", "is_staff"]}),
        (Kind.WORKSPACE_RENAMED, None, {}),
        (Kind.MEMBER_ADDED, lea.pk, {}),
        (Kind.MEMBER_REMOVED, ana.pk, {}),
        (Kind.ACCOUNT_DELETED, ana.pk, {}),
    ]


def test_form_of_a_second_tab_gives_no_access_back(root: Client, ana: User) -> None:
    """ADM-01, LIVE-06: it keeps its input, and says that it would replace a newer change."""
    group = Group.objects.get(name=staff.MANAGERS)
    User.objects.filter(pk=ana.pk).update(is_superuser=True, is_staff=True)
    ana.groups.add(group)
    first = form_in(root.get(page_of(ana)), "user_form")
    second = {**first, "groups": str(group.pk)}
    assert root.post(page_of(ana), {**second, "email": "a@example.org"}).status_code == 302
    first = {**form_in(root.get(page_of(ana)), "user_form"), "groups": str(group.pk)}
    User.objects.filter(pk=ana.pk).update(is_active=False, is_superuser=False, is_staff=False)
    refused = root.post(page_of(ana), {**first, "email": "b@example.org"})
    assert "This has changed since you opened the form." in said(refused)
    assert User.objects.get(pk=ana.pk).is_active is False
    assert root.post(page_of(ana), form_in(refused, "user_form")).status_code == 302
    assert User.objects.get(pk=ana.pk).email == "b@example.org"
    stale = form_in(root.get(page_of(ana)), "user_form")
    ana.groups.clear()
    assert root.post(page_of(ana), {**stale, "groups": str(group.pk)}).status_code == 200
    assert not ana.groups.exists()


def test_agent_answers_all_messages_after_a_deactivation(
    root: Client, ana: User, bo: User, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    """RUN-17: a deactivated user no longer counts as one who can write, until the user is activated."""
    session = begin_session(owner=ana, replies="auto")
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    for is_active, replies in ((None, "all"), ("on", "mentions")):
        with django_capture_on_commit_callbacks(execute=True):
            assert root.post(page_of(bo), values_of(bo, is_active=is_active)).status_code == 302
        session.refresh_from_db()
        assert session.replies == replies


def test_last_administrator_stays(root: Client) -> None:
    boss = User.objects.get(username="root")
    for lost in ("is_active", "is_staff", "is_superuser"):
        answer = root.post(page_of(boss), values_of(boss, **{lost: None}))
        assert "You can’t remove the last administrator" in said(answer)
    assert root.post(page_of(boss, "delete"), {"post": "yes"}).status_code == 403
    User.objects.create_superuser("second")
    assert root.post(page_of(boss), values_of(boss, is_superuser=None)).status_code == 302


@pytest.mark.both_databases
def test_who_owns_sessions_is_not_deleted(root: Client, ana: User, bo: User) -> None:
    """MSG-11: the error names no session, for one user or several; a user without sessions is deleted."""
    create_session(owner=ana, title="Private plan")
    before = root.post(page_of(ana, "delete"), {"post": "yes"})
    assert before.status_code == 200
    assert "This can’t be deleted: Ana owns 1 session." in said(before)
    several = {"action": "delete_selected", "_selected_action": [ana.pk, bo.pk], "post": "yes"}
    answer = root.post(PEOPLE, several)
    assert (answer.status_code, "Ana owns 1 session." in said(answer)) == (200, True)
    assert b"Private plan" not in before.content + answer.content
    assert User.objects.filter(pk__in=[ana.pk, bo.pk]).count() == 2
    assert root.post(page_of(bo, "delete"), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=bo.pk).exists()


def test_who_has_a_schedule_is_deleted_with_it(staff_with: Callable[..., User], ana: User, bo: User) -> None:
    """ADM-01: staff who may delete users need no permission for the rows that go with the account."""
    session = create_session(owner=ana)
    let_in(session, bo, SessionRole.EDITOR)
    schedules.add(author=bo, session_id=session.pk, text="Hi", cron="0 9 * * *", zone="UTC")
    Membership.objects.filter(user=bo).update(role="admin")
    workspace_invitations.invite(author=bo, workspace_id=session.workspace_id)
    clerk = signed_in(staff_with("view_user", "delete_user"))
    assert clerk.post(page_of(bo, "delete"), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=bo.pk).exists()
    assert not Schedule.objects.exists()


@pytest.mark.both_databases
def test_user_with_entries_in_the_audit_log_is_not_deleted(root: Client, staff_with: Callable[..., User]) -> None:
    """MSG-11: deleting such a user would delete their log entries."""
    clerk = staff_with()
    LogEntry.objects.create(user=clerk, action_flag=2, object_id="1", object_repr="x")
    assert "Mia appears in the audit log." in said(root.post(page_of(clerk, "delete"), {"post": "yes"}))
    assert LogEntry.objects.filter(user=clerk).exists()


def test_links_end_with_a_membership_that_staff_remove(root: Client, bo: User, workspace: Workspace) -> None:
    """LIVE-06: links end as if an admin of the workspace had removed the guest, who could otherwise return by them."""
    Membership.objects.update_or_create(user=bo, workspace=workspace, defaults={"role": "owner"})
    session = create_session(owner=bo, workspace=workspace)
    link = sharing.invite(session=session, author=bo, role="viewer", uses=5)[1]
    workspace_invitations.invite(author=bo, workspace_id=workspace.pk)
    guest = User.objects.create_user("gil")
    sharing.accept(token=link, user=guest)
    row = Membership.objects.get(user=guest)
    data = {"memberships-TOTAL_FORMS": "1", "memberships-INITIAL_FORMS": "1", "memberships-0-DELETE": "on"}
    data |= {"memberships-0-id": str(row.pk), "memberships-0-user": str(guest.pk)}
    data |= {"memberships-0-workspace": str(workspace.pk), "memberships-0-role": "guest"}
    assert root.post(page_of(guest), values_of(guest, **data)).status_code == 302
    assert not Membership.objects.filter(user=guest).exists()
    assert not Invitation.objects.exists()
    assert not WorkspaceInvitation.objects.exists()
    assert SecurityEvent.objects.filter(kind=Kind.INVITATION_ENDED).count() == 2


@pytest.mark.both_databases
def test_pages_cost_the_same_for_one_and_for_thirty(root: Client, workspace: Workspace) -> None:
    """ADM-01: the lists, and the members of a workspace, take a constant number of queries."""

    def counts() -> list[int]:
        found = []
        for address in (PEOPLE, WORKSPACES, page_of(workspace)):
            with CaptureQueriesContext(connection) as queries:
                assert root.get(address).status_code == 200
            found.append(len(queries))
        return found

    create_session(owner=person("First", workspace), workspace=workspace)
    counts()  # content types are cached from here on
    at_one = counts()
    for number in range(30):
        create_session(owner=person(f"P{number}"))
        person(f"Q{number}", workspace)
    assert counts() == at_one


def test_roles_have_names_in_the_language_of_the_page(root: Client, workspace: Workspace) -> None:
    """UI-13: the list of a workspace's members has translated roles, too."""
    answer = root.get(page_of(workspace), headers={"accept-language": "zh-CN"})
    assert "所有者" in answer.content.decode()


@pytest.mark.parametrize("language", ["zh-hans", "zh-hant"])
def test_account_is_active_in_the_words_of_django(root: Client, ana: User, language: str) -> None:
    """UI-13: the text for links and tokens, which “still work”, does not replace Django’s text for accounts."""
    shown = said(root.get(reverse("admin:chat_user_change", args=[ana.pk]), headers={"Accept-Language": language}))
    assert ("有效" in shown, "仍然有效" in shown) == (True, False)


@pytest.mark.parametrize("page", ["admin:chat_user_change", "admin:auth_group_add"])
def test_permissions_are_named_in_the_language_of_staff(root: Client, ana: User, page: str) -> None:
    """UI-13: the database has the names in English."""
    address = reverse(page, args=[ana.pk] if page.endswith("change") else [])

    shown = said(root.get(address, headers={"Accept-Language": "zh-Hans"}))

    assert "Parley | 消息 | 可以查看" in shown
    assert "Parley | 会话 | 可以永久抹除" in shown
    assert "Can " not in shown
