"""The home page, the session list of the sidebar, new sessions, actions on sessions, and the palette's data."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from chat.models import ChatMessage, Membership, Session, SessionRun, User
from chat.services.messages.sending import send_message
from chat.services.sessions.actions import SessionAction, apply_action
from chat.services.sessions.lifecycle import create_session
from chat.services.sessions.user_state import state_of
from tests.support.rows import say
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
SCRIPT = {"Accept": "application/json"}


def session_list_of(client: Client, **asked: str) -> str:
    return unescape(client.get(reverse("sessions"), asked).content.decode())


def row_of(client: Client, title: str) -> str:
    return next(row for row in session_list_of(client).split("<li ") if title in row)


def test_session_list_lists_mine_and_what_is_shared_with_me(
    signed_in: SignIn, ana: User, bo: User, session: Session
) -> None:
    let_in(create_session(owner=bo, workspace=session.workspace, title="Shared"), ana, "viewer")
    create_session(owner=bo, workspace=session.workspace, title="Private")
    client = signed_in(ana)
    html = session_list_of(client)
    assert ["Plan" in html, "Shared" in html, "Private" in html] == [True, True, False]
    assert html.index(">Shared<") < html.index(">Plan<")  # the most recently active session first
    assert ["Shared by Bo" in row_of(client, title) for title in ("Shared", "Plan")] == [True, False]


def test_session_list_shows_which_agents_work_and_what_is_unread(
    signed_in: SignIn, ana: User, session: Session
) -> None:
    client = signed_in(ana)
    shown = [_marks(client)]
    send_message(session=session, author=ana, text="Go")
    shown.append(_marks(client))
    SessionRun.objects.update(state="idle", turn_id="")
    say(session, None, "Done")
    shown.append(_marks(client))
    assert shown == [(False, False), (True, False), (False, True)]


def _marks(client: Client) -> tuple[bool, bool]:
    row = row_of(client, "Plan")
    return "Agent working" in row, "Unread" in row


def test_session_list_marks_the_open_session(signed_in: SignIn, ana: User, session: Session) -> None:
    create_session(owner=ana, title="Other")
    rows = session_list_of(signed_in(ana), current=session.pk).split("<li ")[1:]
    assert [">Plan<" in row for row in rows if 'aria-current="page"' in row] == [True]


@pytest.mark.parametrize("asked", ["-1", "x", "9" * 50, "٣"])
def test_session_list_takes_any_count(signed_in: SignIn, ana: User, session: Session, asked: str) -> None:
    assert "Plan" in session_list_of(signed_in(ana), shown=asked)


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "Nowhere/Land", "../etc/passwd", "/etc/passwd", ""])
def test_session_list_takes_any_zone(signed_in: SignIn, ana: User, session: Session, zone: str) -> None:
    client = signed_in(ana)
    client.cookies["parley_zone"] = zone
    assert "Plan" in session_list_of(client)


def test_empty_lists_say_so(signed_in: SignIn, ana: User) -> None:
    client = signed_in(ana)
    assert "Your sessions and those shared with you" in session_list_of(client)
    assert "No archived sessions" in session_list_of(client, archived="yes")


def test_home_is_prefilled(signed_in: SignIn, ana: User) -> None:
    html = signed_in(ana).get(reverse("home"), {"q": "<Plan> it"}).content.decode()
    assert "&lt;Plan&gt; it</textarea>" in html


def test_a_session_begins_with_its_first_message_sent(signed_in: SignIn, ana: User) -> None:
    """RUN-01: the message's text becomes the title."""
    text = "Find out\nwhy the checkout is slow on Fridays, and what it would take to make it quick again"
    response = signed_in(ana).post(reverse("new-session"), {"text": text.replace("\n", "\r\n")}, headers=SCRIPT)
    session = Session.objects.get()
    assert (response.status_code, response.json()) == (201, {"address": reverse("session", args=[session.pk])})
    assert session.title == "Find out why the checkout is slow on Fridays, and what it…"
    assert ChatMessage.objects.get(role="user").text == text
    assert SessionRun.objects.get().state == "running"


def test_a_form_without_a_script_is_led_to_its_session(signed_in: SignIn, ana: User) -> None:
    response = signed_in(ana).post(reverse("new-session"), {"text": "Hi"})
    assert response.headers["Location"] == reverse("session", args=[Session.objects.get().pk])


def test_first_message_of_a_lost_response_is_sent_once(signed_in: SignIn, ana: User) -> None:
    """MSG-02: the form is sent again with its key. A text that was changed since becomes the session's draft."""
    client = signed_in(ana)
    form = {"text": "Order chairs", "key": "k"}
    addresses = {send(client, form), send(client, form), send(client, {**form, "text": "Order 100 chairs"})}
    session = Session.objects.get()
    assert addresses == {reverse("session", args=[session.pk])}
    assert ChatMessage.objects.get(role="user").text == "Order chairs"
    assert state_of(ana, session).draft == "Order 100 chairs"
    assert send(client, {**form, "key": "k1"}) not in addresses


@pytest.mark.usefixtures("own_files")
def test_first_message_with_a_file_is_sent_once(signed_in: SignIn, ana: User) -> None:
    """MSG-02: a message that was sent again before its session was known, or with a changed text, leads to it, too."""
    client = signed_in(ana)
    file = client.post(
        reverse("new-session-attachments"), {"key": "k", "file": SimpleUploadedFile("a.txt", b"a")}
    ).json()
    form = {"text": "Read it", "key": "k", "session": file["session"], "attachments": [file["id"]]}
    addresses = {send(client, form), send(client, form), send(client, {"text": "Read all of it", "key": "k"})}
    assert addresses == {reverse("session", args=[Session.objects.get().pk])}
    assert ChatMessage.objects.get(role="user").text == "Read it"
    assert state_of(ana, Session.objects.get()).draft == "Read all of it"


def test_first_message_can_be_sent_again_after_its_session_was_deleted(signed_in: SignIn, ana: User) -> None:
    client = signed_in(ana)
    first = send(client, {"text": "Hi", "key": "k"})
    apply_action(user=ana, action=SessionAction.DELETE, session_ids=[Session.objects.get().pk])
    second = send(client, {"text": "Hi", "key": "k"})
    assert second != first
    assert send(client, {"text": "Hi", "key": "k"}) == second


@pytest.mark.usefixtures("own_files")
def test_message_is_sent_while_the_session_of_its_removed_file_is_erased(signed_in: SignIn, ana: User) -> None:
    client, key = signed_in(ana), "k" * 200
    upload = {"key": key, "file": SimpleUploadedFile("a.txt", b"a")}
    file = client.post(reverse("new-session-attachments"), upload).json()
    client.post(reverse("attachment-remove", args=[file["id"]]), {"begun": "yes"})
    assert send(client, {"text": "Hi", "key": key}) != reverse("session", args=[file["session"]])


def send(client: Client, form: dict[str, Any]) -> str:
    response = client.post(reverse("new-session"), form, headers=SCRIPT)
    assert response.status_code == 201, response.content
    address: str = response.json()["address"]
    return address


def test_what_could_not_be_begun_is_not_lost(signed_in: SignIn, ana: User) -> None:
    client = signed_in(ana)
    asked = {"text": "Hi <b>", "model": "unknown/nothing"}
    refused = client.post(reverse("new-session"), asked, headers=SCRIPT)
    assert (refused.status_code, "nothing" in refused.json()["message"]) == (422, True)
    page = client.post(reverse("new-session"), asked)
    assert (page.status_code, "Hi &lt;b&gt;</textarea>" in page.content.decode()) == (422, True)
    assert not Session.objects.exists()


def test_action_reports_what_was_done_and_what_undoes_it(signed_in: SignIn, ana: User, session: Session) -> None:
    client = signed_in(ana)
    done = [_apply_action(client, action, session) for action in ("pin", "archive", "restore", "delete", "undelete")]
    assert done == [
        {"ids": [session.pk], "words": "", "undo": "unpin"},
        {"ids": [session.pk], "words": "Session archived", "undo": "restore"},
        {"ids": [session.pk], "words": "Session restored", "undo": "archive"},
        {"ids": [session.pk], "words": "Session deleted", "undo": "undelete"},
        {"ids": [session.pk], "words": "Session restored", "undo": "delete"},
    ]


def test_bulk_deletion_reports_that_sessions_of_others_are_left_out(
    signed_in: SignIn, ana: User, bo: User, session: Session
) -> None:
    let_in(theirs := create_session(owner=bo, workspace=session.workspace), ana, "editor")
    other = create_session(owner=ana)
    words = _apply_action(signed_in(ana), "delete", session, other, theirs)["words"]
    assert words == "2 sessions deleted. The rest belong to other people."


def _apply_action(client: Client, action: str, *sessions: Session) -> dict[str, object]:
    asked = {"action": action, "session": [session.pk for session in sessions]}
    answer: dict[str, object] = client.post(reverse("apply-action"), asked, headers=SCRIPT).json()
    return answer


def test_a_title_can_be_given_from_the_list(signed_in: SignIn, ana: User, session: Session) -> None:
    client = signed_in(ana)
    address = reverse("session-title", args=[session.pk])
    assert client.post(address, {"title": "  New\nname "}).status_code == 204
    assert Session.objects.get().title == "New name"
    assert "200 characters" in json.loads(client.post(address, {"title": "x" * 201}).content)["message"]


def test_the_palette_gets_recent_sessions_or_hits_with_marks(signed_in: SignIn, ana: User, session: Session) -> None:
    row = say(session, ana, "A <b>bold</b> plan")
    client = signed_in(ana)
    assert reverse("session", args=[session.pk]) in client.get(reverse("search")).content.decode()
    newer = create_session(owner=ana, title="Newer")
    # The open session is left out, so Enter opens the previous one.
    html = client.get(reverse("search"), {"current": newer.pk}).content.decode()
    assert (html.count('role="option"'), reverse("session", args=[session.pk]) in html) == (1, True)
    newer.delete()
    html = client.get(reverse("search"), {"q": "plan"}).content.decode()
    assert f'href="{reverse("session", args=[session.pk])}#{row.pk}"' in html
    assert "A &lt;b&gt;bold&lt;/b&gt; <mark>plan</mark>" in html
    assert "<mark>Plan</mark>" in html
    assert "role=" not in client.get(reverse("search"), {"q": "nowhere"}).content.decode()


def test_home_of_a_removed_member_lists_their_own_sessions(signed_in: SignIn, ana: User, session: Session) -> None:
    """LIVE-06: without a workspace, users keep their own sessions, which no one has shared with them."""
    Membership.objects.filter(user=ana).delete()
    User.objects.filter(pk=ana.pk).update(can_own_workspace=False)
    html = signed_in(ana).get(reverse("home")).content.decode()
    assert "You are no longer a member of the workspace, but you can still use your sessions." in html
    assert not any(words in html for words in ("You are a guest here", "Shared with you"))


def test_account_menu_is_named_in_the_way_of_the_language(signed_in: SignIn, ana: User) -> None:
    """UI-13: the colon of a Chinese name is Chinese, too."""
    html = signed_in(ana).get(reverse("home"), headers={"Accept-Language": "zh-hans"}).content.decode()
    assert 'aria-label="账户：Ana"' in html
