"""The security log: which user did what to which object, and from where, without content or secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.models import Invitation, SecurityEvent, Session, SessionRole, SessionRun, User
from chat.origin import Interface, Origin, current_origin, origin_of_socket, using_origin
from chat.runs import lease
from chat.runs.changes import InsertMessage, UpdateMessage
from chat.services.messages.sending import send_message
from chat.services.people import accounts, api_tokens, security_log, sharing
from chat.services.people.security_log import Kind
from chat.services.runs import recording
from chat.services.sessions import actions
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse"
TITLE = "Private plan"


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, workspace=ana.workspaces.get(), title=TITLE)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The lines that are written to the logger."""
    written: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]  # all that it does
    security_log.logger.addHandler(handler)
    yield written
    security_log.logger.removeHandler(handler)


def new_entries() -> list[tuple[str, int | None, int | None, str, dict[str, Any]]]:
    """Return (kind, user, affected user, object, details) of the entries since the last call, in order."""
    rows = SecurityEvent.objects.order_by("pk")
    found = [
        (row.kind, row.actor_id, row.person_id, f"{row.object_type} {row.object_id}".strip(), row.details)
        for row in rows
    ]
    rows.delete()
    return found


def test_shares_and_invitations(session: Session, ana: User, bo: User) -> None:
    """Each entry has the session, the affected user and role, and the user who granted it."""
    where, guest = f"session {session.pk}", person("Cy")
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.VIEWER)
    sharing.share(session=session, author=ana, user=bo, role=SessionRole.EDITOR)
    assert new_entries() == [
        (Kind.SHARED, ana.pk, bo.pk, where, {"role": "viewer"}),
        (Kind.SHARED, ana.pk, bo.pk, where, {"role": "editor"}),
    ]
    token = sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)[1]
    number = Invitation.objects.get().pk
    sharing.accept(token=token, user=guest)
    sharing.end_invitation(session=session, author=ana, invitation_id=number)
    sharing.end_invitation(session=session, author=ana, invitation_id=number)
    about = {"invitation": number, "role": "viewer"}
    assert new_entries() == [
        (Kind.INVITATION_MADE, ana.pk, ana.pk, where, about),
        (Kind.INVITATION_USED, guest.pk, guest.pk, where, about),
        (Kind.INVITATION_ENDED, ana.pk, ana.pk, where, {"invitation": number}),
    ]
    sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)
    new_entries()
    sharing.unshare(session=session, author=ana, user=guest)
    sharing.unshare(session=session, author=ana, user=guest)
    actions.leave(user=bo, session_id=session.pk)
    assert new_entries() == [
        (Kind.UNSHARED, ana.pk, guest.pk, where, {}),
        (Kind.INVITATION_ENDED, ana.pk, ana.pk, where, {"count": 1}),
        (Kind.UNSHARED, bo.pk, bo.pk, where, {}),
    ]


def test_deletion_and_restoring(session: Session, ana: User) -> None:
    actions.delete(user=ana, session_id=session.pk)
    actions.undelete(user=ana, session_id=session.pk)
    where = f"session {session.pk}"
    assert new_entries() == [
        (Kind.SESSION_DELETED, ana.pk, ana.pk, where, {}),
        (Kind.SESSION_RESTORED, ana.pk, ana.pk, where, {}),
    ]


def test_use_of_tokens_is_logged(session: Session, ana: User) -> None:
    """An entry of a program has the token's id, which distinguishes it from its user, and the program's own address."""
    token, secret = api_tokens.create(user=ana, name="Nightly", scope="read", days=30)
    program = Client(headers={"Authorization": f"Bearer {secret}"}, REMOTE_ADDR="192.0.2.9")
    exported = program.get(f"/api/sessions/{session.pk}/export")
    assert TITLE.encode() in exported.getvalue()
    event = SecurityEvent.objects.get(kind=Kind.EXPORTED)
    assert (event.face, event.address, event.token_id) == (Interface.API, "192.0.2.9", token.pk)
    api_tokens.revoke(user=ana, token_id=token.pk)
    assert new_entries() == [
        (Kind.TOKEN_MADE, ana.pk, ana.pk, f"apitoken {token.pk}", {"scope": "read", "days": 30}),
        (Kind.EXPORTED, ana.pk, ana.pk, f"session {session.pk}", {"form": "json"}),
        (Kind.TOKEN_REVOKED, ana.pk, ana.pk, f"apitoken {token.pk}", {}),
    ]
    assert current_origin() == Origin(Interface.COMMAND)


def test_signing_in_and_out_and_failing(ana: User, settings: Settings) -> None:
    """A failed sign-in is logged with its user if the name is known; other input is not logged, because it may be a
    password.
    The proxy's header gives the address.
    """
    settings.HTTPS = True
    client = Client(headers={"X-Forwarded-For": "10.0.0.1, 203.0.113.9"})
    for name, password in (("ana", "no"), ("my secret", "no"), ("ana", PASSWORD)):
        client.post(reverse("sign-in"), {"username": name, "password": password})
    client.post(reverse("sign-out"))
    events = SecurityEvent.objects.order_by("pk")
    assert {(event.face, event.address) for event in events} == {(Interface.PAGE, "203.0.113.9")}
    assert new_entries() == [
        (Kind.SIGN_IN_FAILED, None, ana.pk, "", {"method": "password"}),
        (Kind.SIGN_IN_FAILED, None, None, "", {"method": "password"}),
        (Kind.SIGN_IN, ana.pk, ana.pk, "", {"method": "password"}),
        (Kind.SIGN_OUT, ana.pk, ana.pk, "", {}),
    ]


def test_new_account_by_invitation(session: Session, ana: User) -> None:
    token = sharing.invite(session=session, author=ana, role=SessionRole.EDITOR)[1]
    new_entries()
    values = {"display_name": "Cleo", "username": "cleo", "password": "nine lives 9"}
    Client().post(reverse("join", args=[token]), values)
    cleo = User.objects.get(username="cleo")
    assert [(kind, who, details.get("method")) for kind, who, _whose, _object, details in new_entries()] == [
        (Kind.ACCOUNT_MADE, cleo.pk, None),
        (Kind.INVITATION_USED, cleo.pk, None),
        (Kind.SIGN_IN, cleo.pk, "invitation"),
    ]


def test_password_in_the_settings(client: Client, ana: User) -> None:
    client.force_login(ana)
    Client().force_login(ana)
    new_entries()
    new = {"new_password1": "quite another 1", "new_password2": "quite another 1"}
    client.post(reverse("settings"), {"part": "password", "old_password": "wrong", **new})
    failed = {"method": "password", "step": "password change"}
    assert new_entries() == [(Kind.SIGN_IN_FAILED, None, ana.pk, "", failed)]
    client.post(reverse("settings"), {"part": "password", "old_password": PASSWORD, **new})
    assert new_entries() == [
        (Kind.PASSWORD_CHANGED, ana.pk, ana.pk, "", {}),
        (Kind.SIGNED_OUT_ELSEWHERE, ana.pk, ana.pk, "", {"count": 1}),
    ]


@pytest.mark.parametrize(
    ("arguments", "host"),
    [
        ({"url": " https://user:pass@Docs.Example.org:8443/a/b?key=4711-secret#x"}, "docs.example.org"),
        ({"url": "http://[::1]:80/"}, "::1"),
        ({"url": "http://[oops"}, None),
        ({"url": 7}, None),
        ({"expression": "6 * 7"}, None),
    ],
)
def test_tool_that_reaches_a_host(session: Session, ana: User, arguments: dict[str, Any], host: str | None) -> None:
    """A tool's call with an address is logged with the tool's name and the host before it runs, without the rest of the
    address."""
    worker = lease.register_worker()
    send_message(session=session, author=ana, text="Read it")
    claim = next(claim for claim in lease.claim(worker, 100) if claim.session_id == session.pk)
    new_entries()
    call = {"type": "tool_group", "role": "assistant", "tool_name": "web_fetch", "arguments": arguments}
    begun = InsertMessage("m_tool", "message_updated", {**call, "status": "pending"})
    running = UpdateMessage("m_tool", "tool_exec_start", {"status": "running"})
    recording.record([recording.Job(claim, 1, [begun])], [])
    assert new_entries() == []
    recording.record([recording.Job(claim, 2, [running])], [])
    details = {"tool": "web_fetch", "host": host}
    assert new_entries() == ([(Kind.TOOL_CALLED, None, ana.pk, f"session {session.pk}", details)] if host else [])
    SessionRun.objects.filter(pk=session.pk).update(owner=None)


def test_line_is_written_when_it_is_true(lines: list[str], ana: User, django_capture_on_commit_callbacks: Any) -> None:
    """Each line is a JSON object that is written after the commit. A rolled back action leaves no line and no row."""
    with django_capture_on_commit_callbacks(execute=True), using_origin(Origin(Interface.ADMIN, "192.0.2.1")):
        security_log.record(Kind.SHARED, actor=ana, person=ana, role="viewer")
        assert lines == []
        with transaction.atomic():
            security_log.record(Kind.UNSHARED, actor=ana)
            transaction.set_rollback(True)
    [line] = map(json.loads, lines)
    assert line.pop("at").startswith("20")
    assert line == {
        "kind": "shared",
        "actor": ana.pk,
        "actor_name": "ana",
        "person": ana.pk,
        "person_name": "ana",
        "face": "admin",
        "address": "192.0.2.1",
        "role": "viewer",
    }
    assert [event.kind for event in SecurityEvent.objects.all()] == [Kind.SHARED]


def test_nothing_that_people_wrote_or_must_hide_is_kept(
    lines: list[str], session: Session, ana: User, bo: User, django_capture_on_commit_callbacks: Any
) -> None:
    """Titles, names of tokens, links, passwords and secrets are not logged."""
    with django_capture_on_commit_callbacks(execute=True):
        _token, secret = api_tokens.create(user=ana, name="Nightly", scope="read", days=30)
        link = accounts.sign_in_link(user=ana, author=bo)
        invitation = sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)[1]
        Client().post(reverse("sign-in"), {"username": "ana", "password": PASSWORD})
        Client().post(reverse("sign-in"), {"username": "4711-typed-here", "password": "4711-typed-there"})
        actions.delete(user=ana, session_id=session.pk)
    kept = "\n".join([*lines, *(str(vars(event)) for event in SecurityEvent.objects.all())])
    for hidden in (secret, "Nightly", link, invitation, PASSWORD, "4711", TITLE):
        assert hidden not in kept
    assert len(lines) == SecurityEvent.objects.count() == 6


@pytest.mark.parametrize(("https", "address"), [(False, "198.51.100.7"), (True, "203.0.113.9")])
def test_address_of_a_socket_is_found_as_that_of_a_request(settings: Settings, https: bool, address: str) -> None:
    settings.HTTPS = https
    scope = {"client": ["198.51.100.7", 5000], "headers": [(b"x-forwarded-for", b"10.0.0.1, 203.0.113.9")]}
    assert origin_of_socket(scope) == Origin(Interface.SOCKET, address)


def test_address_of_a_socket_behind_two_proxies_is_found(settings: Settings) -> None:
    """Each proxy may add a line of its own."""
    settings.HTTPS, settings.PROXIES = True, 2
    lines = [(b"x-forwarded-for", b"10.0.0.1, 203.0.113.9"), (b"x-forwarded-for", b"192.0.2.1")]
    scope = {"client": ["198.51.100.7", 5000], "headers": lines}
    assert origin_of_socket(scope) == Origin(Interface.SOCKET, "203.0.113.9")
