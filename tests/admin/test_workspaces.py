"""Workspaces in the admin: the form, and what cannot be deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from chat.bus import publisher
from chat.models import (
    AgentPreset,
    ApprovalRule,
    KnowledgeFile,
    KnowledgePassage,
    Membership,
    SecurityEvent,
    Session,
    User,
    Workspace,
)
from chat.services.people.security_log import Kind
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import form_in, said, soup_of
from tests.support.signed_in import signed_in
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db


def page_of(row: User | Workspace, action: str = "change") -> str:
    return reverse(f"admin:chat_{row._meta.model_name}_{action}", args=[row.pk])


def test_form_does_not_replace_a_newer_name_unseen(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01: the workspace has been renamed since staff opened the form. Saving again replaces the new name."""
    page = reverse("admin:chat_workspace_change", args=[workspace.pk])
    form = form_in(admin_client.get(page), "workspace_form") | {"name": "Ours"}
    Workspace.objects.filter(pk=workspace.pk).update(name="Theirs")
    refused = admin_client.post(page, form)
    assert "This has changed since you opened the form." in refused.content.decode()
    again = form_in(refused, "workspace_form")
    assert again["name"] == "Ours"
    workspace.refresh_from_db()
    assert workspace.name == "Theirs"
    assert admin_client.post(page, again).status_code == 302
    workspace.refresh_from_db()
    assert workspace.name == "Ours"


def test_new_name_is_cleaned_and_logged(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01: as on the workspace's own page."""
    form = form_in(admin_client.get(page_of(workspace)), "workspace_form")
    assert admin_client.post(page_of(workspace), form).status_code == 302
    assert not SecurityEvent.objects.filter(kind=Kind.WORKSPACE_RENAMED).exists()
    refused = admin_client.post(page_of(workspace), {**form, "name": "\u2060"})
    assert "Enter a name of up to 120 characters." in said(refused)
    assert admin_client.post(page_of(workspace), {**form, "name": "Our\u202e  crew"}).status_code == 302
    workspace.refresh_from_db()
    assert workspace.name == "Our crew"
    assert SecurityEvent.objects.get(kind=Kind.WORKSPACE_RENAMED).object_id == str(workspace.pk)


def test_many_members_are_listed_on_a_page_of_their_own(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01: a form with a row for each of a thousand members could not be sent."""
    people = User.objects.bulk_create(User(username=f"u{number}") for number in range(101))
    Membership.objects.bulk_create(Membership(workspace=workspace, user=each) for each in people)
    lea = person("Lea")
    page = admin_client.get(page_of(workspace))
    form = form_in(page, "workspace_form")
    assert form["memberships-INITIAL_FORMS"] == "0"
    assert "This form lists only new members" in said(page)
    added = {"memberships-TOTAL_FORMS": "1", "memberships-0-user": str(lea.pk), "memberships-0-role": "member"}
    assert admin_client.post(page_of(workspace), {**form, **added, "name": "Crew"}).status_code == 302
    assert (Workspace.objects.get(pk=workspace.pk).name, workspace.memberships.count()) == ("Crew", 102)
    form = form_in(admin_client.get(page_of(workspace)), "workspace_form")
    assert "Lea is already a member of “Crew”." in said(admin_client.post(page_of(workspace), {**form, **added}))
    link = soup_of(page).find("a", string="101 people")
    assert link is not None
    assert "102 people" in said(admin_client.get(str(link["href"])))


def test_members_are_listed_for_those_who_may_see_memberships(workspace: Workspace, ana: User) -> None:
    """LIVE-06: a condition in the address of the list of people does not show who is in which workspace."""
    clerk = User.objects.create_user("kim", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename="view_user"))
    address = f"{reverse('admin:chat_user_changelist')}?memberships__workspace={workspace.pk}"
    assert signed_in(clerk).get(address).status_code != 200
    clerk.user_permissions.add(Permission.objects.get(codename="view_membership"))
    clerk = User.objects.get(pk=clerk.pk)
    assert [user.username for user in signed_in(clerk).get(address).context["cl"].result_list] == ["ana"]


@pytest.mark.parametrize("of", ["workspace", "user"])
def test_last_owner_is_not_removed(admin_client: Client, ana: User, bo: User, workspace: Workspace, of: str) -> None:
    """ADM-01: the form of the workspace and that of the user refuse it, as the workspace's settings do."""
    mine = Membership.objects.filter(user=ana)
    mine.update(role=Membership.Role.OWNER)
    row = workspace if of == "workspace" else ana
    form = form_in(admin_client.get(page_of(row)), f"{of}_form")
    place = next(name[12] for name, value in form.items() if name.endswith("-id") and value == str(mine.get().pk))
    refused = admin_client.post(page_of(row), {**form, f"memberships-{place}-DELETE": "on"})
    assert "A workspace needs an owner." in said(refused)
    Membership.objects.filter(user=bo).update(role=Membership.Role.OWNER)
    again = admin_client.post(page_of(row), {**form, f"memberships-{place}-DELETE": "on"})
    assert (again.status_code, mine.exists()) == (302, False)


def test_last_owner_is_replaced_in_one_form(admin_client: Client, ana: User, workspace: Workspace) -> None:
    """ADM-01: the form adds and removes members, but changes no roles."""
    Membership.objects.filter(user=ana).update(role=Membership.Role.OWNER)
    lea = person("Lea")
    form = form_in(admin_client.get(page_of(workspace)), "workspace_form")
    count = int(form["memberships-TOTAL_FORMS"])
    mine = str(Membership.objects.get(user=ana).pk)
    place = next(name[12] for name, value in form.items() if name.endswith("-id") and value == mine)
    swap = {
        f"memberships-{place}-DELETE": "on",
        "memberships-TOTAL_FORMS": str(count + 1),
        f"memberships-{count}-user": str(lea.pk),
    }
    refused = admin_client.post(page_of(workspace), {**form, **swap, f"memberships-{count}-role": "member"})
    assert "A workspace needs an owner. Add another owner first." in said(refused)
    done = admin_client.post(page_of(workspace), {**form, **swap, f"memberships-{count}-role": "owner"})
    assert (done.status_code, workspace.memberships.get(role="owner").user) == (302, lea)


def test_only_member_is_removed(admin_client: Client, ana: User) -> None:
    """ADM-01: no one stays who would need an owner."""
    place = Workspace.objects.create(name="Old")
    mine = Membership.objects.create(workspace=place, user=ana, role=Membership.Role.OWNER)
    form = form_in(admin_client.get(page_of(place)), "workspace_form")
    assert admin_client.post(page_of(place), {**form, "memberships-0-DELETE": "on"}).status_code == 302
    assert not Membership.objects.filter(pk=mine.pk).exists()


def test_last_owner_is_not_deleted(admin_client: Client, ana: User, bo: User, workspace: Workspace) -> None:
    """ADM-01: the others in the workspace could no longer manage it. The last member is deleted."""
    Membership.objects.filter(user=ana).update(role=Membership.Role.OWNER)
    people = reverse("admin:chat_user_changelist")
    assert "Ana is the last owner of “Team”." in said(admin_client.post(page_of(ana, "delete"), {"post": "yes"}))
    both = {"action": "delete_selected", "_selected_action": [ana.pk, bo.pk], "post": "yes"}
    lea = person("Lea", workspace)
    assert "Ana is the last owner of “Team”." in said(admin_client.post(people, both))
    lea.delete()
    assert admin_client.post(people, both).status_code == 302
    assert not User.objects.filter(pk__in=[ana.pk, bo.pk]).exists()


def test_confirmation_counts_what_is_deleted_with_a_workspace(admin_client: Client, ana: User) -> None:
    """OPS-08, LIVE-06: it lists no passages of files, of which there can be thousands, and no private agents."""
    place = Workspace.objects.create(name="Old")
    AgentPreset.objects.create(name="secret", title="My private idea", workspace=place, user=ana)
    ApprovalRule.objects.create(workspace=place, rule="bash", verdict="deny")
    name = default_storage.save("knowledge/old", ContentFile(b"x"))
    file = KnowledgeFile.objects.create(
        workspace=place,
        name="a.txt",
        kind="text",
        media_type="text/plain",
        size=1,
        characters=1,
        passage_count=3,
        file=name,
    )
    KnowledgePassage.objects.bulk_create(KnowledgePassage(file=file, number=n, text="t", words="w") for n in range(3))
    page = said(admin_client.get(page_of(place, "delete")))
    assert "My private idea" not in page
    assert "Passage" not in page
    assert "Agents: 1" in page
    clerk = User.objects.create_user("kim", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=("view_workspace", "delete_workspace")))
    assert signed_in(clerk).post(page_of(place, "delete"), {"post": "yes"}).status_code == 403
    assert admin_client.post(page_of(place, "delete"), {"post": "yes"}).status_code == 302
    assert not KnowledgePassage.objects.exists()
    assert not Workspace.objects.filter(pk=place.pk).exists()


def test_picture_and_private_agents_are_deleted_with_a_user(
    admin_client: Client, ana: User, workspace: Workspace, django_capture_on_commit_callbacks: Any
) -> None:
    """OPS-08: no one could see or delete them later. Shared agents belong to the workspace."""
    for name, is_shared in (("mine", False), ("ours", True)):
        AgentPreset.objects.create(name=name, workspace=workspace, user=ana, is_shared=is_shared)
    ana.picture.save("ana.png", ContentFile(b"x"))
    with django_capture_on_commit_callbacks(execute=True):
        assert admin_client.post(page_of(ana, "delete"), {"post": "yes"}).status_code == 302
    assert list(AgentPreset.objects.values_list("name", flat=True)) == ["ours"]
    assert not default_storage.exists(str(ana.picture.name))


@pytest.mark.both_databases
def test_workspace_with_sessions_is_not_deleted(admin_client: Client, ana: User, workspace: Workspace) -> None:
    session = create_session(owner=ana, workspace=workspace)
    answer = admin_client.post(page_of(workspace, "delete"), {"post": "yes"})
    assert "“Team” contains 1 session." in said(answer)
    Session.objects.filter(pk=session.pk).delete()
    assert admin_client.post(page_of(workspace, "delete"), {"post": "yes"}).status_code == 302
    assert not Workspace.objects.filter(pk=workspace.pk).exists()


def test_member_is_added_and_removed_with_the_workspace(
    admin_client: Client,
    ana: User,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    """LIVE-06: open pages of an added member show it."""
    notified: set[tuple[int, int | None]] = set()
    monkeypatch.setattr(publisher, "notify_access_changed", lambda *changed: notified.add(changed))
    lea = person("Lea")
    rows = {"memberships-TOTAL_FORMS": "2", "memberships-INITIAL_FORMS": "1", "memberships-0-DELETE": "on"}
    first = {"memberships-0-id": str(Membership.objects.get(user=ana).pk), "memberships-0-user": str(ana.pk)}
    data = {"name": "Crew", **rows, **first, "memberships-0-workspace": "", "memberships-1-user": str(lea.pk)}
    first["memberships-0-role"] = data["memberships-0-role"] = data["memberships-1-role"] = "member"
    first["memberships-0-workspace"] = data["memberships-0-workspace"] = data["memberships-1-workspace"] = str(
        workspace.pk
    )
    with django_capture_on_commit_callbacks(execute=True):
        assert admin_client.post(page_of(workspace), data).status_code == 302
    assert list(workspace.members.values_list("username", flat=True)) == ["lea"]
    assert (lea.pk, workspace.pk) in notified
