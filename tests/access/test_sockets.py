"""The access matrix of sockets and commands: each route and each command needs a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from django.conf import settings as configured
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat import routing
from chat.bus.events import AccessChanged
from chat.bus.publisher import publish
from chat.dispatch import HANDLERS
from chat.live import hub as hubs
from chat.models import ApiToken, LoginSession, Membership, MessageRevision, Session, SessionRole, Share, User
from chat.services.deletion import requests
from chat.services.deletion.users import close_account
from chat.services.people import api_tokens, members, sharing
from chat.services.sessions.lifecycle import create_session
from config.asgi import application
from tests.access.people import (
    ADMIN,
    ANONYMOUS,
    EDITOR,
    EVERYONE,
    GUEST,
    MESSAGE,
    OWNER,
    STRANGER,
    STRANGERS,
    VIEWER,
    People,
)
from tests.support.agreement import agree
from tests.support.socket import Application, Socket, path_of
from tests.support.testing_node import TestNode

# The sockets as the server serves them, without startup and shutdown.
SERVED: Application = application.application_mapping["websocket"]
PROTOCOLS = ("events", "page")
ROUTES = {"ws/sessions/<str:session_id>/": "events", "ws/sessions/<str:session_id>/page": "page", "ws/me": "me"}
OPEN = None
CODES: dict[str, int | None] = {
    OWNER: OPEN,
    EDITOR: OPEN,
    VIEWER: OPEN,
    GUEST: OPEN,
    **dict.fromkeys(STRANGERS, 4404),
    ANONYMOUS: 4401,
}
# Each command with its required fields and unknown ids. The lists below name the actors who may use it.
COMMANDS: dict[str, dict[str, Any]] = {
    "send": {"text": "Hi"},
    "edit_queued": {"id": "m_none", "text": "Hi"},
    "answer": {"id": "m_none", "value": {}},
    "withdraw": {"id": "m_none"},
    "send_now": {},
    "typing": {},
    "editing": {"id": "m_none"},
    "cancel": {},
    "retry": {"id": "m_none"},
    "run_tools": {"id": "m_none"},
    "continue": {},
    "restore_attempt": {"attempt": "v_none"},
    "switch_attempt": {"id": "m_none", "number": 1},
    "edit": {"id": "m_none", "text": "Hi"},
    "suggest_edit": {"id": "m_none", "text": "Hi"},
    "accept_suggestion": {"id": "e_none"},
    "dismiss_suggestion": {"id": "e_none"},
    "exclude": {"id": "m_none"},
    "include": {"id": "m_none"},
    "exclude_before": {"id": "m_none"},
    "include_before": {"id": "m_none", "since": 1},
    "remove": {"id": "m_none"},
    "restore": {"id": "m_none"},
    "fork": {"id": "m_none"},
    "set_model": {"provider": "scripted", "model": "two"},
    "set_agent": {"agent": "agent"},
    "add_agent": {"agent": "agent"},
    "remove_agent": {"agent": "agent"},
    "configure": {"mode": "chat", "tools": [], "max_rounds": 1, "reasoning_effort": ""},
    "rename": {"title": "New"},
    "set_system_prompt": {"system_prompt": "New"},
    "read": {"revision": 0},
    "draft": {"text": "Hm"},
    "compact": {},
}
FOR_VIEWERS = {"read", "fork"}
NOT_FOR_GUESTS = ("fork", "set_model", "set_agent", "add_agent", "remove_agent", "configure")
OF_A_MESSAGE = [
    *("answer", "edit_queued", "withdraw", "edit", "remove", "restore", "fork"),
    *("exclude", "include", "exclude_before", "include_before", "suggest_edit"),
    *("switch_attempt", "editing"),
]
OF_A_SUGGESTION = ["accept_suggestion", "dismiss_suggestion"]


def cookie_of(user: User | None) -> tuple[bytes, bytes]:
    if user is None:
        return b"cookie", b""
    client = Client()
    client.force_login(user)
    value = client.cookies[configured.SESSION_COOKIE_NAME].value
    return b"cookie", f"{configured.SESSION_COOKIE_NAME}={value}".encode()


def key_in(cookie: tuple[bytes, bytes]) -> str:
    return cookie[1].decode().partition("=")[2]


async def signed_in(node: TestNode, user: User | None, session: Session | str, protocol: str) -> Socket:
    """Return a socket with a browser's cookie, through the whole ASGI application."""
    cookie = await node.do(cookie_of, user)
    headers = [cookie, (b"origin", b"http://localhost:8000"), (b"host", b"localhost:8000")]
    return Socket(path_of(session, protocol), headers=headers, app=SERVED)


def test_every_socket_has_a_row() -> None:
    """Each socket route has a row in the access matrix (LIVE-06)."""
    *routes, others = routing.websocket_urlpatterns
    agree(
        ROUTES,
        [route.pattern for route in routes],
        missing="Add {} to ROUTES in this file, and test here whom it lets in.",
        extra="Remove {} from ROUTES in this file: there is no such socket.",
    )
    assert others.callback is routing.none


async def test_socket_leaves_a_login_of_an_earlier_key_as_it_is(node: TestNode, ana: User, settings: Settings) -> None:
    """LIVE-06: the socket does not change the login's key, because only the response to a page could send the new
    key."""
    session = await node.session(ana)
    cookie = await node.do(cookie_of, ana)
    headers = [cookie, (b"origin", b"http://localhost:8000"), (b"host", b"localhost:8000")]
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "the new key"
    for _ in range(2):
        async with Socket(path_of(session), headers=headers, app=SERVED) as socket:
            await socket.let_in()
            assert socket.close_code is None


def test_every_command_has_a_row() -> None:
    """Each command has a row in the access matrix (LIVE-06)."""
    agree(
        COMMANDS,
        [get_args(kind.model_fields["type"].annotation)[0] for kind in HANDLERS],
        missing="Add {} to COMMANDS in this file with its required fields, and to the lists below where it belongs.",
        extra="Remove {} from COMMANDS in this file: there is no such command.",
    )


@pytest.mark.parametrize("actor", EVERYONE)
async def test_sockets_open_to_those_in_the_session(node: TestNode, people: People, actor: str) -> None:
    """LIVE-06: other users are refused by the same close code as for unknown sessions."""
    unknown = "s_" + "0" * 24
    for protocol in PROTOCOLS:
        async with await signed_in(node, people.users[actor], people.session, protocol) as socket:
            if CODES[actor] is OPEN:
                await socket.let_in()
                assert socket.close_code is None
            else:
                assert await socket.closed() == CODES[actor]
                assert socket.frames == []
        async with await signed_in(node, people.users[actor], unknown, protocol) as socket:
            assert await socket.closed() == (4401 if actor == ANONYMOUS else 4404)


@pytest.mark.parametrize("actor", EVERYONE)
async def test_own_socket_is_for_those_who_are_signed_in(node: TestNode, people: People, actor: str) -> None:
    """LIVE-06: the user's own socket belongs to no session and accepts no commands."""
    cookie = await node.do(cookie_of, people.users[actor])
    headers = [cookie, (b"origin", b"http://localhost:8000"), (b"host", b"localhost:8000")]
    async with Socket("/ws/me", headers=headers, app=SERVED) as socket:
        user = people.users[actor]
        if user is None or not user.is_active:
            assert await socket.closed() == 4401
            return
        await socket.let_in()
        answers = [await socket.ask(type=kind, **fields) for kind, fields in COMMANDS.items()]
        assert {answer["code"] for answer in answers} == {"no_such_session"}
        assert socket.close_code is None


@pytest.mark.parametrize("session_id", ["x", "%00", "s_\0", "😀", "s_" + "0" * 500])
@pytest.mark.both_databases
async def test_odd_ids_lead_nowhere(node: TestNode, people: People, session_id: str) -> None:
    """Malformed ids are refused like unknown ones (MSG-12)."""
    async with Socket(path_of(session_id), people[OWNER]) as socket:
        assert await socket.closed() == 4404


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("actor", [OWNER, EDITOR, VIEWER, GUEST])
async def test_commands_are_for_editors(node: TestNode, people: People, actor: str, protocol: str) -> None:
    """LIVE-06: a viewer's commands are refused. A guest may write, but not configure the session."""
    node.script(lambda request: ["Yes."])
    async with Socket(path_of(people.session, protocol), people[actor]) as socket:
        answers = {kind: await socket.ask(type=kind, **fields) for kind, fields in COMMANDS.items()}
    codes = {kind: answer.get("code", "ack") for kind, answer in answers.items()}
    if actor == VIEWER:
        allowed = {kind: "no_such_message" if kind in OF_A_MESSAGE else "ack" for kind in FOR_VIEWERS}
        assert codes == dict.fromkeys(COMMANDS, "forbidden") | allowed
        assert [message.pk for message in await node.rows(people.session)] == [MESSAGE]
        assert await node.do(MessageRevision.objects.count) == 0
        assert await node.do(lambda: Session.objects.get().revision) == 0
    else:
        missing = dict.fromkeys(OF_A_MESSAGE, "no_such_message")
        missing["remove_agent"] = "no_such_agent"
        missing |= dict.fromkeys(OF_A_SUGGESTION, "no_such_suggestion")
        missing |= dict.fromkeys(NOT_FOR_GUESTS if actor == GUEST else (), "forbidden")
        at_rest_only = dict.fromkeys(("retry", "continue", "run_tools", "restore_attempt", "compact"), "")
        assert {**codes, **at_rest_only} == {**dict.fromkeys(COMMANDS, "ack"), **missing, **at_rest_only}
        assert {codes[kind] for kind in at_rest_only} <= {
            "busy",
            "no_such_message",
            "no_such_attempt",
            "nothing_to_continue",
            "nothing_to_compact",
            "ack",
        }
    await node.idle(people.session)


@pytest.mark.parametrize("actor", [OWNER, EDITOR, VIEWER])
async def test_all_users_who_may_read_may_fork(node: TestNode, people: People, actor: str) -> None:
    """RUN-13: a fork belongs to the user who made it, also to a viewer, in the same workspace. The original does not
    change."""
    async with Socket(path_of(people.session), people[actor]) as socket:
        answer = await socket.ask(type="fork", id=MESSAGE)
    made = await node.do(Session.objects.get, pk=answer["session"])
    assert answer["url"] == f"/sessions/{made.pk}/"
    assert (made.owner_id, made.workspace_id) == (people[actor].pk, people.session.workspace_id)
    assert await node.do(lambda: Session.objects.get(pk=people.session.pk).revision) == 0


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"http://localhost.evil.example",
        b"http://localhost",
        b"http://localhost:3000",
        b"https://localhost:8000",
        b"http://127.0.0.1:8000",
        b"http://trusted.example",
        b"https://trusted.example:8443",
        b"null",
        b"",
        None,
    ],
)
async def test_other_origins_cannot_open_a_socket(
    node: TestNode, people: People, origin: bytes | None, settings: Settings
) -> None:
    """LIVE-06: other origins are refused, because a browser sends the cookie from any page, and to each port of a
    host."""
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]
    cookie = await node.do(cookie_of, people[OWNER])
    headers = [cookie, (b"host", b"localhost:8000"), *([(b"origin", origin)] if origin is not None else [])]
    async with Socket(path_of(people.session), headers=headers, app=SERVED) as socket:
        assert await socket.closed() is not None
        assert not socket.accepted


@pytest.mark.parametrize(
    ("host", "origin", "more"),
    [
        (b"localhost:8000", b"http://localhost:8000", []),
        (b"localhost", b"https://trusted.example", []),
        (b"localhost", b"https://a.wild.example", []),
        (b"localhost", b"https://localhost", [(b"x-forwarded-proto", b"https")]),
        (b"localhost", b"https://localhost", [(b"x-forwarded-proto", b"wss")]),  # from Traefik
    ],
)
async def test_own_and_trusted_origins_open_sockets_as_they_send_forms(
    node: TestNode, people: People, host: bytes, origin: bytes, more: list[tuple[bytes, bytes]], settings: Settings
) -> None:
    """Sockets and forms accept the same origins (LIVE-06)."""
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example", "https://*.wild.example"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    cookie = await node.do(cookie_of, people[OWNER])
    headers = [cookie, (b"host", host), (b"origin", origin), *more]
    async with Socket(path_of(people.session), headers=headers, app=SERVED) as socket:
        await socket.let_in()


@pytest.mark.parametrize("origin", [b"http://evil.example", b"https://trusted.example"])
async def test_foreign_host_opens_no_socket(node: TestNode, people: People, origin: bytes, settings: Settings) -> None:
    """LIVE-06: unknown hosts are refused, because a browser treats another name for this server as a separate
    origin."""
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]
    cookie = await node.do(cookie_of, people[OWNER])
    headers = [cookie, (b"host", b"evil.example"), (b"origin", origin)]
    async with Socket(path_of(people.session), headers=headers, app=SERVED) as socket:
        assert await socket.closed() is not None
        assert not socket.accepted


async def by_token(
    node: TestNode, user: User, session: Session, scope: str, protocol: str = "events", **more: bytes
) -> Socket:
    """Return a socket with an API token, through the whole ASGI application."""
    _token, secret = await node.do(api_tokens.create, user=user, name="Script", scope=scope, days=0)
    headers = [(b"authorization", f"Bearer {secret}".encode()), (b"host", b"localhost:8000")]
    headers += [(name.encode(), value) for name, value in more.items()]
    return Socket(path_of(session, protocol), headers=headers, app=SERVED)


@pytest.mark.parametrize("actor", [actor for actor in EVERYONE if actor != ANONYMOUS])
async def test_token_opens_the_events_socket(node: TestNode, people: People, actor: str) -> None:
    """LIVE-06: a token opens the events socket with its user's role, without an Origin, but not the page's socket."""
    async with await by_token(node, people[actor], people.session, "write") as socket:
        if CODES[actor] is OPEN:
            answer = await socket.ask(type="rename", title="New")
            assert answer.get("code", "ack") == ("forbidden" if actor == VIEWER else "ack")
        else:
            assert await socket.closed() == CODES[actor]
    async with await by_token(node, people[actor], people.session, "write", "page") as socket:
        assert await socket.closed() == 4401


async def test_token_that_may_only_read_sends_no_commands(node: TestNode, people: People) -> None:
    """LIVE-06: a read-only token gets the session's changes, and all its commands are refused."""
    async with await by_token(node, people[OWNER], people.session, "read") as socket:
        socket.send(type="sync")
        await socket.next(type="changes")
        answers = {kind: await socket.ask(type=kind, **fields) for kind, fields in COMMANDS.items()}
        assert {answer.get("code") for answer in answers.values()} == {"read_only_token"}
        await socket.let_in()
    assert [message.pk for message in await node.rows(people.session)] == [MESSAGE]


@pytest.mark.parametrize(
    ("origin", "is_open"), [(b"http://localhost:8000", True), (b"http://evil.example", False), (b"null", False)]
)
async def test_origin_beside_a_token_is_checked(node: TestNode, people: People, origin: bytes, is_open: bool) -> None:
    """LIVE-06: the Origin is checked beside a token as beside a cookie."""
    async with await by_token(node, people[OWNER], people.session, "write", origin=origin) as socket:
        if is_open:
            await socket.let_in()
        else:
            assert await socket.closed() is not None
        assert socket.accepted is is_open


@pytest.mark.parametrize("secret", ["", "parley_" + "a" * 43, "x", "parley_\udcff"])
async def test_cookie_does_not_make_good_a_wrong_token(node: TestNode, people: People, secret: str) -> None:
    """LIVE-06: if a token is sent, only the token counts."""
    cookie = await node.do(cookie_of, people[OWNER])
    value = f"Bearer {secret}".encode("utf-8", "surrogateescape")
    origin = (b"origin", b"http://localhost:8000")
    headers = [cookie, origin, (b"host", b"localhost:8000"), (b"authorization", value)]
    async with Socket(path_of(people.session), headers=headers, app=SERVED) as socket:
        assert await socket.closed() == 4401


async def unshared(node: TestNode, people: People) -> None:
    await node.do(sharing.unshare, session=people.session, author=people[OWNER], user=people[EDITOR])


async def deactivated(node: TestNode, people: People) -> None:
    people[EDITOR].is_active = False
    await node.do(people[EDITOR].save)


async def left_workspace(node: TestNode, people: People) -> None:
    await node.do(Membership.objects.filter(user=people[EDITOR]).delete)


async def share_deleted(node: TestNode, people: People) -> None:
    await node.do(Share.objects.filter(user=people[EDITOR]).delete)


async def removed(node: TestNode, people: People) -> None:
    await node.do(people[EDITOR].delete)


async def erased(node: TestNode, people: People) -> None:
    await node.do(requests.request_user, user=people[EDITOR], author=None)


async def told_by_another_process(node: TestNode, people: People) -> None:
    """Report the change through the service, as in a process without a hub, where no signal does."""
    await node.do(User.objects.filter(pk=people[EDITOR].pk).update, is_active=False)
    publish(people.session.pk, [AccessChanged()])


Loss = Callable[[TestNode, People], Any]


@pytest.fixture
def _no_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A beacon that is too slow to cause what is tested here."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 3600.0)


@pytest.fixture
def _quick_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.05)


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "lose", [unshared, deactivated, left_workspace, share_deleted, removed, erased, told_by_another_process]
)
async def test_lost_access_closes_the_socket_at_once(node: TestNode, people: People, lose: Loss, protocol: str) -> None:
    """LIVE-06: any loss of access closes the user's sockets with 4403 immediately. Other users' sockets stay."""
    async with (
        Socket(path_of(people.session, protocol), people[EDITOR]) as socket,
        Socket(path_of(people.session, protocol), people[VIEWER]) as other,
    ):
        for each in (socket, other):
            each.send(type="sync")
            await each.let_in()
        await lose(node, people)
        assert await socket.closed() == 4403
        assert (await other.ask(type="rename", title="x"))["code"] == "forbidden"
        assert other.close_code is None


@pytest.mark.usefixtures("_no_beacon")
async def test_erasing_a_session_closes_its_sockets_at_once(node: TestNode, people: People) -> None:
    """LIVE-06: all sockets of a session are closed before its rows are erased."""
    async with (
        Socket(path_of(people.session), people[OWNER]) as one,
        Socket(path_of(people.session), people[GUEST]) as two,
    ):
        for each in (one, two):
            each.send(type="sync")
            await each.let_in()
        await node.do(requests.request_session, session_id=people.session.pk, author=None)
        assert [await each.closed() for each in (one, two)] == [4403, 4403]
    assert await node.do(Session.objects.filter(pk=people.session.pk).exists)


@pytest.mark.usefixtures("_quick_beacon")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_access_lost_without_a_word_closes_the_socket_soon(node: TestNode, people: People, protocol: str) -> None:
    """LIVE-06: the beacon finds access that was lost by SQL, in another process, or while the layer is down."""
    async with Socket(path_of(people.session, protocol), people[EDITOR]) as socket:
        await socket.let_in()
        await node.do(User.objects.filter(pk=people[EDITOR].pk).update, is_active=False)
        assert await socket.closed() == 4403


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize("actor", [OWNER, EDITOR])
async def test_commands_of_a_user_who_has_lost_access_are_refused(node: TestNode, people: People, actor: str) -> None:
    """LIVE-06: commands are refused even before the socket has learned of the lost access."""
    sockets = [await Socket(path_of(people.session), people[actor]).open() for _ in range(2)]
    for socket in sockets:
        await socket.let_in()
    await node.do(User.objects.filter(pk=people[actor].pk).update, is_active=False)
    sockets[0].send(type="rename", title="Mine")
    sockets[1].send(type="sync")
    for socket in sockets:
        assert await socket.closed() == 4403
        assert socket.frames == [{"type": "pong"}]
        await socket.leave()
    assert await node.do(lambda: Session.objects.get().title) == "Plan"


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_lowered_role_ends_commands_at_once(node: TestNode, people: People, protocol: str) -> None:
    """LIVE-06: an editor who becomes a viewer still gets events, but can give no commands."""
    async with Socket(path_of(people.session, protocol), people[EDITOR]) as socket:
        assert (await socket.ask(type="rename", title="Before"))["type"] == "ack"
        await node.do(
            sharing.share, session=people.session, author=people[OWNER], user=people[EDITOR], role=SessionRole.VIEWER
        )
        assert (await socket.ask(type="rename", title="After"))["code"] == "forbidden"
        assert socket.close_code is None


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_signing_out_closes_that_browser_s_sockets(node: TestNode, people: People, protocol: str) -> None:
    """LIVE-06: signing out closes the browser's sockets with 4401. Another browser of the user stays connected."""
    async with (
        await signed_in(node, people[EDITOR], people.session, protocol) as here,
        await signed_in(node, people[EDITOR], people.session, protocol) as there,
    ):
        for socket in (here, there):
            await socket.let_in()
        browser = Client()
        browser.cookies[configured.SESSION_COOKIE_NAME] = key_in(here.scope["headers"][0])
        response = await node.do(browser.post, "/accounts/sign-out")
        assert response.status_code == 302
        assert await here.closed() == 4401
        await there.let_in()
        assert there.close_code is None


@pytest.mark.parametrize("path", ["me", *PROTOCOLS])
async def test_who_owes_a_second_factor_is_not_let_in(
    node: TestNode, people: People, settings: Settings, path: str
) -> None:
    """LIVE-06: any client without the required second factor is refused, even if it opened no page."""
    settings.REQUIRE_MFA = "all"
    cookie = await node.do(cookie_of, people[OWNER])
    headers = [cookie, (b"origin", b"http://localhost:8000"), (b"host", b"localhost:8000")]
    address = "/ws/me" if path == "me" else path_of(people.session, path)
    async with Socket(address, headers=headers, app=SERVED) as socket:
        assert await socket.closed() == 4401
        assert socket.frames == []


@pytest.mark.usefixtures("_quick_beacon")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_expired_login_closes_the_socket(node: TestNode, people: People, protocol: str) -> None:
    """LIVE-06: a login that expires closes the socket with 4401."""
    async with await signed_in(node, people[EDITOR], people.session, protocol) as socket:
        await socket.let_in()
        await node.do(LoginSession.objects.update, expire_date=timezone.now())
        assert await socket.closed() == 4401


@pytest.mark.usefixtures("_quick_beacon")
async def test_deleted_session_closes_its_sockets(node: TestNode, people: People) -> None:
    """LIVE-06: deleting a session closes its sockets."""
    async with Socket(path_of(people.session), people[OWNER]) as socket:
        await socket.let_in()
        await node.do(people.session.delete)
        assert await socket.closed() == 4403


@pytest.mark.usefixtures("_no_beacon")
async def test_changed_role_reaches_open_pages(node: TestNode, people: People) -> None:
    """LIVE-06: pages of this user in this session reload after any change of the role.

    Other users' pages and event sockets do not.
    """
    async with (
        Socket(path_of(people.session, "page"), people[EDITOR]) as page,
        Socket(path_of(people.session), people[EDITOR]) as events,
        Socket(path_of(people.session, "page"), people[VIEWER]) as other,
    ):
        for socket in (page, events, other):
            await socket.let_in()
        for role, count in ((SessionRole.VIEWER, 1), (SessionRole.EDITOR, 2)):
            await node.do(sharing.share, session=people.session, author=people[OWNER], user=people[EDITOR], role=role)
            await page.until(lambda: page.frames.count({"op": "reload"}) == count)  # noqa: B023  # within the round
        for socket in (events, other):
            await socket.let_in()
            assert all(frame == {"type": "pong"} or frame == {"op": "pong"} for frame in socket.frames)


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize(
    ("actor", "role"),
    [(EDITOR, Membership.Role.ADMIN), (GUEST, Membership.Role.MEMBER), (OWNER, Membership.Role.OWNER)],
)
async def test_changed_workspace_role_reaches_open_pages(
    node: TestNode, people: People, actor: str, role: Membership.Role
) -> None:
    """LIVE-06: pages of sessions in this workspace reload after a change of the user's role in it.

    Other users' pages read again who can approve calls.
    """
    workspace_id = people.session.workspace_id
    boss = await node.do(lambda: Membership.objects.get(workspace=workspace_id, user=people[ADMIN]))
    boss.role = Membership.Role.OWNER
    await node.do(boss.save)
    async with (
        Socket(path_of(people.session, "page"), people[actor]) as page,
        Socket(path_of(people.session), people[actor]) as events,
        Socket(path_of(people.session, "page"), people[VIEWER]) as other,
    ):
        for socket in (page, events, other):
            socket.send(type="sync")
            await socket.let_in()
        await node.do(
            members.change_role,
            author=people[ADMIN],
            workspace_id=workspace_id,
            user_id=people[actor].pk,
            role=role,
        )
        await page.until(lambda: {"op": "reload"} in page.frames)
        await other.until(lambda: {"op": "people"} in other.frames)
        await events.let_in()
        for socket in (other, events):
            assert {"op": "reload"} not in socket.frames
            assert socket.close_code is None


@pytest.mark.usefixtures("_no_beacon")
async def test_changed_workspace_roles_are_shown_together_and_only_where_they_count(
    node: TestNode, people: People
) -> None:
    """LIVE-06: changes at once reload a page once, and reach no session that none of the users can open."""
    workspace_id = people.session.workspace_id
    private = await node.do(lambda: create_session(owner=people[OWNER], workspace=people.session.workspace))

    def change_roles() -> None:
        with transaction.atomic():
            for actor, role in ((STRANGER, "admin"), (STRANGER, "member"), (GUEST, "admin")):
                user_id = people[actor].pk
                members.change_role(author=people[ADMIN], workspace_id=workspace_id, user_id=user_id, role=role)

    async with (
        Socket(path_of(people.session, "page"), people[GUEST]) as page,
        Socket(path_of(people.session, "page"), people[VIEWER]) as other,
        Socket(path_of(private, "page"), people[OWNER]) as untouched,
    ):
        for socket in (page, other, untouched):
            socket.send(type="sync")
            await socket.let_in()
        await node.do(change_roles)
        await page.until(lambda: {"op": "people"} in page.frames)
        await other.until(lambda: {"op": "people"} in other.frames)
        await untouched.let_in()
        assert page.frames.count({"op": "reload"}) == 1
        assert other.frames.count({"op": "people"}) == 1
        assert {"op": "people"} not in untouched.frames


@pytest.mark.usefixtures("_no_beacon")
async def test_pages_show_that_an_account_was_closed(node: TestNode, people: People) -> None:
    """LIVE-06: other users' pages read again who has access, before the erasure deletes the user's shares."""
    async with Socket(path_of(people.session, "page"), people[VIEWER]) as other:
        other.send(type="sync")
        await other.let_in()
        await node.do(close_account, people[EDITOR], None)
        await other.until(lambda: {"op": "people"} in other.frames)


@pytest.mark.usefixtures("_no_beacon")
async def test_pages_show_that_a_guest_was_removed_from_the_workspace(node: TestNode, people: People) -> None:
    """LIVE-06: other users' pages read again who has access, although the guest's shares are gone."""
    async with Socket(path_of(people.session, "page"), people[VIEWER]) as other:
        other.send(type="sync")
        await other.let_in()
        workspace_id, guest = people.session.workspace_id, people[GUEST]
        await node.do(members.remove, author=people[ADMIN], workspace_id=workspace_id, user_id=guest.pk)
        await other.until(lambda: {"op": "people"} in other.frames)


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize(("drawn_for", "again"), [("owner", True), ("editor", False), ("viewer", True), ("", False)])
async def test_page_that_was_rendered_for_another_role_reloads(
    node: TestNode, people: People, drawn_for: str, again: bool
) -> None:
    """LIVE-06: a page that was rendered for another role, and disconnected while the role changed, reloads."""
    async with Socket(path_of(people.session, "page"), people[EDITOR], query=f"role={drawn_for}") as socket:
        await socket.let_in()
        assert ({"op": "reload"} in socket.frames) == again


def new_password(user: User) -> None:
    user.set_password("battery staple")
    user.save()


@pytest.mark.usefixtures("_no_beacon")
@pytest.mark.parametrize("path", ["events", "page", "me"])
async def test_new_password_ends_all_logins_at_once(node: TestNode, people: People, path: str) -> None:
    """LIVE-06: a new password closes the sockets of all other browsers of the user, and of no one else."""
    sockets = []
    for actor in (EDITOR, VIEWER):
        cookie = await node.do(cookie_of, people[actor])
        headers = [cookie, (b"origin", b"http://localhost:8000"), (b"host", b"localhost:8000")]
        address = "/ws/me" if path == "me" else path_of(people.session, path)
        sockets.append(await Socket(address, headers=headers, app=SERVED).open())
        await sockets[-1].let_in()
    await node.do(new_password, people[EDITOR])
    assert await sockets[0].closed() == 4401
    await sockets[1].let_in()
    assert sockets[1].close_code is None
    for socket in sockets:
        await socket.leave()


@pytest.mark.usefixtures("_quick_beacon")
async def test_new_password_without_a_word_ends_logins_soon(node: TestNode, people: People) -> None:
    """LIVE-06: the beacon finds a password changed by SQL or in a process without a hub."""
    async with await signed_in(node, people[EDITOR], people.session, "page") as socket:
        await socket.let_in()
        await node.do(User.objects.filter(pk=people[EDITOR].pk).update, password="!")
        assert await socket.closed() == 4401


@pytest.mark.usefixtures("_no_beacon")
async def test_revoked_token_closes_its_sockets_at_once(node: TestNode, people: People) -> None:
    """LIVE-06: sockets of a revoked token close with 4401, and those of another token stay."""
    async with (
        await by_token(node, people[EDITOR], people.session, "write") as here,
        await by_token(node, people[EDITOR], people.session, "write") as there,
    ):
        for socket in (here, there):
            await socket.let_in()
        first = await node.do(lambda: ApiToken.objects.order_by("pk")[0].pk)
        await node.do(api_tokens.revoke, user=people[EDITOR], token_id=first)
        assert await here.closed() == 4401
        await there.let_in()


@pytest.mark.usefixtures("_quick_beacon")
async def test_expired_token_closes_its_sockets(node: TestNode, people: People) -> None:
    """LIVE-06: an expiring token closes its sockets."""
    async with await by_token(node, people[EDITOR], people.session, "write") as socket:
        await socket.let_in()
        await node.do(ApiToken.objects.update, expires_at=timezone.now())
        assert await socket.closed() == 4401
