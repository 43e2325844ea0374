"""Staff who read another user's session are logged, once for each time that they open it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from chat.admin.audit_log import READ, SAME_VISIT
from chat.models import Session, SessionRole, User
from chat.services.people import api_tokens, sharing
from tests.admin.pages import add_page, do, form_in, message_page, page_of, said
from tests.support.filled import DONE, HI, START, fill
from tests.support.second_factors import give_app
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db


def readings() -> list[tuple[str, str]]:
    """Return (user, session) of each logged reading."""
    read = LogEntry.objects.filter(action_flag=READ).order_by("pk")
    return [(entry.user.username, entry.object_id or "") for entry in read]


def test_each_opening_is_written_down_once(admin: Client, session: Session) -> None:
    """ADM-01: moving within the session, and saving in it, are not logged again."""
    row = fill(session, START, HI, DONE)[1]
    page = admin.get(page_of(session))
    admin.get(page_of(session), {"p": "1"})
    admin.get(message_page(row))
    admin.get(add_page(session))
    saved = admin.post(page_of(session), {**form_in(page, "session_form"), "title": "New"})
    admin.get(saved["Location"])
    admin.get(do(admin, session, "exclude", row)["Location"])
    assert readings() == [("mia", session.pk)]
    admin.get(page_of(session))
    assert readings() == [("mia", session.pk)] * 2


@pytest.mark.parametrize("way", ["a page", "a message", "the removed ones"])
def test_no_way_in_leads_past_the_log(admin: Client, session: Session, way: str) -> None:
    """ADM-01: addresses that the user typed or saved earlier are logged as well."""
    row = fill(session, START, HI, DONE)[1]
    address = {"a page": f"{page_of(session)}?p=1", "a message": message_page(row)}.get(
        way, f"{page_of(session)}?removed="
    )
    admin.get(address)
    assert len(readings()) == 1
    LogEntry.objects.update(action_time=LogEntry.objects.get().action_time - SAME_VISIT - timedelta(seconds=1))
    admin.get(address)
    assert len(readings()) == 2


@pytest.mark.parametrize("way", ["the session's form", "a message's form", "a fork"])
def test_forms_lead_not_past_the_log(admin: Client, session: Session, way: str) -> None:
    """ADM-01: a refused form shows messages and is logged; a fork is a copy that its owner reads freely."""
    row = fill(session, START, HI, DONE)[1]
    text = str(row.text)
    match way:
        case "the session's form":
            shown = admin.post(page_of(session), {"max_rounds": "many"})
        case "a message's form":
            shown = admin.post(message_page(row), {"text": text, "revision": "none"})
        case _:
            answer = do(admin, session, "fork", row)
            LogEntry.objects.filter(action_flag=READ).exclude(object_id=session.pk).delete()
            shown = admin.get(answer["Location"])
    assert text in shown.content.decode()
    assert readings() == [("mia", session.pk)]


def test_superusers_are_no_exception(session: Session) -> None:
    """Reading by superusers is logged as well (ADM-01)."""
    signed_in(User.objects.create_superuser("root")).get(page_of(session))
    assert readings() == [("root", session.pk)]


def test_one_s_own_and_shared_sessions_are_read_freely(
    staff_with: Callable[..., User], session: Session, mia: User, admin: Client
) -> None:
    """ADM-01: a user with a share could read the session on its own page as well."""
    session.workspace.memberships.create(user=mia)
    sharing.share(session=session, author=session.owner, user=mia, role=SessionRole.VIEWER)
    admin.get(page_of(session))
    User.objects.filter(pk=session.owner_id).update(is_staff=True, is_superuser=True)
    signed_in(session.owner).get(page_of(session))
    assert readings() == []


def test_who_may_not_read_messages_sees_none(staff_with: Callable[..., User], session: Session) -> None:
    """ADM-01: messages have Django permissions of their own."""
    row = fill(session, START, {**HI, "text": "Secret"}, DONE)[1]
    keeper = signed_in(staff_with("view_session", "change_session", name="kim"))
    assert b"Secret" not in keeper.get(page_of(session)).content
    assert keeper.get(message_page(row)).status_code == 403
    assert do(keeper, session, "exclude", row).status_code == 403
    reader = signed_in(staff_with("view_session", "view_chatmessage", name="rob"))
    assert b"Secret" in reader.get(page_of(session)).content
    assert reader.post(page_of(session), {"title": "x"}).status_code == 403
    assert reader.post(message_page(row), {"text": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("action", "english", "chinese"),
    [
        ("sign_in_link", "Created a sign-in link.", "生成了登录链接。"),
        ("sign_out", "Signed out everywhere.", "在所有设备上退出了登录。"),
        ("reset_second_factor", "Reset two-step verification.", "重置了两步验证。"),
        ("revoke", "Changed revoked for API token “Backup”.", "API 令牌“Backup”"),
    ],
)
def test_actions_on_accounts_are_logged_in_the_language_of_the_reader(
    ana: User, action: str, english: str, chinese: str
) -> None:
    """UI-13: who reads the log, and not who acted, determines the language of an entry."""
    give_app(ana)
    token = api_tokens.create(user=ana, name="Backup", scope="read", days=0)[0]
    model, row = ("apitoken", token.pk) if action == "revoke" else ("user", ana.pk)
    root = signed_in(User.objects.create_superuser("root"))
    in_chinese = {"Accept-Language": "zh-hans"}

    values = {"action": action, "_selected_action": [row]}
    root.post(reverse(f"admin:chat_{model}_changelist"), values, headers=in_chinese)

    log = reverse("admin:admin_logentry_changelist")
    assert english in said(root.get(log))
    assert chinese in said(root.get(log, headers=in_chinese))
