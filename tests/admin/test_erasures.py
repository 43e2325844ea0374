"""Erase rows in the admin: choose them in a list, confirm what is lost, and find it in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from chat.admin import erasures
from chat.models import ChatMessage, Erasure, Invitation, Membership, Session, Share, User, Workspace
from chat.services.deletion import requests
from chat.services.maintenance import jobs
from chat.services.people import sharing
from chat.services.sessions.lifecycle import create_session
from tests.admin.pages import page_of, said, soup_of
from tests.support.filled import DONE, HI, START, fill
from tests.support.signed_in import signed_in
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
SESSIONS = reverse("admin:chat_session_changelist")
PEOPLE = reverse("admin:chat_user_changelist")
SECRET = "xyzzyplugh"


def ask(client: Client, *rows: Session | User, sure: bool = False) -> Any:
    """Choose rows in their list with the action, and confirm it."""
    address, action = (SESSIONS, "erase_sessions") if isinstance(rows[0], Session) else (PEOPLE, "erase_users")
    data = {"action": action, "_selected_action": [str(row.pk) for row in rows], **({"sure": "yes"} if sure else {})}
    return client.post(address, data, follow=True)


@pytest.mark.both_databases
def test_session_is_erased_when_that_is_confirmed(staff_with: Callable[..., User], ana: User) -> None:
    """ADM-03: the page says how much is erased, and that it cannot be undone."""
    eve = staff_with("view_session", "view_chatmessage", "erase_session", name="eve")
    session = create_session(owner=ana, title="Plan")
    fill(session, START, {**HI, "text": SECRET}, DONE)
    Session.objects.filter(pk=create_session(owner=ana, title="Fork").pk).update(parent_session=session)
    client = signed_in(eve)
    page = ask(client, session)
    for words in ("Plan", "This can’t be undone", "3 messages", "0 files", "1 fork is kept", "Owner: Ana"):
        assert words in said(page)
    assert soup_of(page).select_one("#erase_form input[name=sure][required]")
    assert ChatMessage.objects.count() == 3
    assert "Erased 1 item." in said(ask(client, session, sure=True))
    assert [row.title for row in Session.objects.all()] == ["Fork"]
    record = Erasure.objects.get()
    assert (record.target, record.requested_by, record.counts["messages"]) == (session.pk, eve, 3)
    assert LogEntry.objects.get(object_id=session.pk).object_repr == session.pk


def test_session_page_leads_to_erasing(staff_with: Callable[..., User], session: Session) -> None:
    """ADM-03: only staff with the permission see the link and can erase."""
    eve = signed_in(staff_with("view_session", "erase_session", name="eve"))
    form = soup_of(eve.get(page_of(session))).select_one("form#erase")
    assert form is not None
    fields = {field["name"]: field["value"] for field in form.select("input") if field["name"] != "csrfmiddlewaretoken"}
    assert "Erase permanently?" in said(eve.post(str(form["action"]), fields))
    kim = signed_in(staff_with("view_session", "change_session", name="kim"))
    assert soup_of(kim.get(page_of(session))).select_one("form#erase") is None
    ask(kim, session, sure=True)
    assert Session.objects.filter(pk=session.pk).exists()


def test_what_takes_long_is_done_by_the_job(
    staff_with: Callable[..., User], ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session closes immediately, and the page reports that a job deletes the rest."""
    monkeypatch.setattr(erasures, "MAX_SECONDS", 0.0)
    monkeypatch.setattr(
        "chat.services.deletion.overwriting.overwrite_deleted", lambda deadline: True
    )  # it works only without an open transaction
    eve = staff_with("view_session", "erase_session", name="eve")
    session = create_session(owner=ana)
    fill(session, START, HI, DONE)
    page = ask(signed_in(eve), session, sure=True)
    assert "1 item is closed now and will be erased within minutes." in said(page)
    assert session.pk not in said(page)
    assert [each.target for each in requests.unfinished()] == [session.pk]
    jobs.run()
    assert not Session.objects.exists()


@pytest.mark.both_databases
def test_people_are_erased_by_those_who_may(staff_with: Callable[..., User], ana: User, bo: User) -> None:
    """ADM-01: only superusers erase staff, and no one erases themselves."""
    theirs = create_session(owner=ana)
    fill(theirs, START, {**HI, "text": SECRET, "user": bo}, DONE)
    create_session(owner=bo)
    bo.memberships.update(role="owner")
    eve = staff_with("view_user", "change_user", "erase_user", name="eve")
    page = said(ask(signed_in(eve), bo))
    for words in (
        "Bo (bo)",
        "1 of their sessions is erased",
        "1 message in other sessions is replaced",
        "Ana becomes an owner of the workspace “Team”",
    ):
        assert words in page
    ask(signed_in(eve), bo, sure=True)
    assert not User.objects.filter(pk=bo.pk).exists()
    assert ChatMessage.objects.get(role="user").text == "[erased]"
    root = User.objects.create_superuser("root")
    assert "skipped" in said(ask(signed_in(eve), root, sure=True))
    assert "Ask another administrator to erase your account." in said(ask(signed_in(root), root, sure=True))
    kim = staff_with("view_user", "change_user", name="kim")
    ask(signed_in(kim), ana, sure=True)
    assert User.objects.filter(pk__in=[root.pk, ana.pk]).count() == 2


def test_no_user_who_is_erased_too_becomes_an_owner(
    staff_with: Callable[..., User], ana: User, bo: User, workspace: Workspace
) -> None:
    """ADM-03: of several chosen users, the page names none as the next owner of a workspace."""
    cy = person("Cy", workspace)
    ana.memberships.update(role="admin")
    bo.memberships.update(role="owner")
    eve = staff_with("view_user", "change_user", "erase_user", name="eve")
    page = said(ask(signed_in(eve), ana, bo))
    assert "Ana becomes an owner" not in page
    assert "Cy becomes an owner of the workspace “Team”" in page
    ask(signed_in(eve), ana, bo, sure=True)
    assert list(workspace.memberships.filter(role="owner").values_list("user", flat=True)) == [cy.pk]


def test_records_stay(staff_with: Callable[..., User], ana: User) -> None:
    """ADM-02: records say who erased what and when; they can be neither changed nor deleted."""
    erasure = requests.request_user(user=ana, author=User.objects.create_superuser("root"))
    requests.carry_out(erasure)
    client = signed_in(User.objects.get(username="root"))
    page = said(client.get(reverse("admin:chat_erasure_changelist")))
    assert (str(erasure.target) in page, "accounts 1" in page) == (True, True)
    chinese = said(client.get(reverse("admin:chat_erasure_changelist"), headers={"Accept-Language": "zh-hans"}))
    assert "账户 1" in chinese
    assert client.get(reverse("admin:chat_erasure_delete", args=[erasure.pk])).status_code == 403
    assert client.get(reverse("admin:chat_erasure_add")).status_code == 403


def test_titles_are_for_those_who_may_read(staff_with: Callable[..., User], ana: User, bo: User) -> None:
    """ADM-01: titles derive from the first message, and system prompts contain users' text."""
    session = create_session(owner=ana, title=SECRET, system_prompt=SECRET)
    sharing.share(session=session, author=ana, user=bo, role="viewer")
    sharing.invite(session=session, author=ana, role="viewer")
    rights = ("view_session", "change_session", "view_share", "delete_share", "view_invitation")
    addresses = [
        SESSIONS,
        page_of(session),
        reverse("admin:chat_session_history", args=[session.pk]),
        *(reverse(f"admin:chat_{name}_changelist") for name in ("share", "invitation")),
        reverse("admin:chat_share_change", args=[Share.objects.get().pk]),
        reverse("admin:chat_share_delete", args=[Share.objects.get().pk]),
        reverse("admin:chat_invitation_change", args=[Invitation.objects.get().pk]),
        "/admin/",
    ]
    kim = signed_in(staff_with(*rights, name="kim"))
    rob = signed_in(staff_with(*rights, "view_chatmessage", name="rob"))
    shown = {each: [SECRET in client.get(each).content.decode() for client in (kim, rob)] for each in addresses}
    assert {address for address, (hidden, _open) in shown.items() if hidden} == set()
    assert shown[SESSIONS] == shown[page_of(session)] == [False, True]
    share_list = reverse("admin:chat_share_changelist")
    assert "bo" not in soup_of(kim.get(share_list, {"q": SECRET})).select_one("#changelist-form, .paginator").get_text()  # type: ignore[union-attr]  # it is there
    form = soup_of(kim.get(page_of(session))).select("#session_form [name]")
    assert {field["name"] for field in form} & {"title", "system_prompt"} == set()


def test_admin_ends_memberships_of_guests(ana: User, session: Session) -> None:
    """LIVE-06: a guest whose last share is deleted here leaves the workspace."""
    cy = person("Cy")
    sharing.accept(token=sharing.invite(session=session, author=ana, role="viewer")[1], user=cy)
    root = signed_in(User.objects.create_superuser("root"))
    address = reverse("admin:chat_share_delete", args=[Share.objects.get(user=cy).pk])
    assert root.post(address, {"post": "yes"}).status_code == 302
    assert not Membership.objects.filter(user=cy, workspace=session.workspace).exists()
