"""A showcase: six users, thirty sessions, and one session with everything that a session can contain.

`PARLEY_DATA=… python -m tests.support.showcase` writes it to a database, and prints each user's cookie and the
addresses to visit as JSON. Screenshots, accessibility checks and page measurements use it.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import django

from agents.messages import Json
from tests.support.showcase_questions import fill_answered, fill_waiting
from tests.support.showcase_talk import Writer, fill, fill_shared, fill_small

if TYPE_CHECKING:
    from chat.models import Session, User, Workspace


PEOPLE = {
    "ana": "Ana Kovač",
    "mei": "梅雪",
    "jonas": "Jonas-Maximilian Lindqvist-Överkalix von Hohenstein",
    "fatima": "فاطمة الزهراء",
    "priya": "Priya Raghunathan",
    "kenta": "田中 健太",
}
WORKSPACES = [
    "Payments and reconciliation platform, Europe, Middle East and Africa",
    "顧客サポート・品質保証チーム（東日本）",
    "Ops",
]
TITLES = [
    "Release notes for 4.2",
    "为什么周五结账很慢？",
    "A title that goes on and on, because somebody has put the whole question into it and then some more",
    "خطة الإطلاق للربع القادم",
    "Migrate the billing cron to the new scheduler",
    "顧客からの問い合わせの分類",
    "Flaky test: test_two_people_see_the_same",
    "Pricing page copy",
    "🚀 Launch checklist",
    "SQL: top customers by region",
]


def create_showcase(now: datetime) -> Json:
    """Create the whole showcase. Return the cookies by user, and the addresses to visit."""
    from bench.rows import cookie
    from chat.models import AgentPreset, Membership, User
    from chat.services.people.accounts import first_administrator
    from chat.services.people.workspaces import current_workspace

    first = first_administrator()
    workspace = current_workspace(first)
    people = {name: _person(name, shown, first) for name, shown in PEOPLE.items()}
    for user in people.values():
        Membership.objects.get_or_create(workspace=workspace, user=user)
    guest = _person("gil", "Gil Amsalem", first)
    User.objects.filter(pk=guest.pk).update(can_own_workspace=False)
    Membership.objects.create(workspace=workspace, user=guest, role=Membership.Role.GUEST)
    AgentPreset.objects.create(name="reviewer", title="审校 · Reviewer of releases and their notes", position=1)
    addresses = _rooms({**people, "gil": guest}, workspace, now)
    _earlier(people, workspace, now)
    _elsewhere(people, now)
    _looked_after(people, workspace, now)
    link = _signing_in(people)
    cookies = {name: cookie(user) for name, user in {**people, "gil": guest, "admin": first}.items()}
    return {"cookies": cookies, "link": link, **addresses, **_pages(people["ana"])}


def _rooms(people: dict[str, User], workspace: Workspace, now: datetime) -> Json:
    """Create the sessions to visit, and return their addresses by field of the gallery's House."""
    from chat.services.sessions.actions import archive

    ana, mei = people["ana"], people["mei"]
    main = _session(ana, workspace, "Why is checkout slow on Fridays?", now)
    small = _session(ana, workspace, "Übersicht der Abfragen – and a runbook", now)
    read_only = _session(mei, workspace, "对外公告草稿", now - timedelta(minutes=5))
    archived = _session(ana, workspace, "Offsite in Ljubljana", now - timedelta(days=3))
    _let_in(main, *[people[name] for name in PEOPLE if name not in ("ana", "kenta")])
    _let_in(main, people["kenta"], role="viewer")
    scratch = _session(ana, workspace, "Scratch", now - timedelta(days=2))
    shared = _session(ana, workspace, "A note to customers", now - timedelta(minutes=12))
    _let_in(shared, *[people[name] for name in ("mei", "jonas", "priya", "gil")])
    _let_in(scratch, *[people[name] for name in PEOPLE if name != "ana"])
    _let_in(small, mei, people["jonas"])
    _let_in(read_only, ana, role="viewer")
    fill(people, main, now)
    fill_small(small, ana, now)
    fill_shared(people, shared, now)
    waiting = _session(ana, workspace, "Move the Friday report", now - timedelta(minutes=2))
    answered = _session(ana, workspace, "Move the Friday report (last week)", now - timedelta(days=7))
    for each in (waiting, answered):
        _let_in(each, mei)
        _let_in(each, people["kenta"], role="viewer")
    fill_waiting(waiting, ana, now)
    fill_answered(answered, ana, mei, now - timedelta(days=7))
    for session, author in ((read_only, mei), (archived, ana)):
        _greet(session, author, now)
    archive(user=ana, session_id=archived.pk)
    empty = _session(ana, workspace, "", now)
    rooms = {
        "empty": empty,
        "session": main,
        "small": small,
        "read_only": read_only,
        "archived": archived,
        "scratch": scratch,
        "shared": shared,
        "waiting": waiting,
        "answered": answered,
    }
    return {name: f"/sessions/{session.pk}/" for name, session in rooms.items()}


def _earlier(people: dict[str, User], workspace: Workspace, now: datetime) -> None:
    """Create thirty sessions of all users for the list, spread over months. Some are pinned, some are unread."""
    from chat.models import UserSessionState

    ana = people["ana"]
    for number in range(30):
        owner = list(people.values())[number % 6]
        when = now - timedelta(hours=3 * number**1.7)
        made = _session(owner, workspace, TITLES[number % 10], when)
        if owner != ana:
            _let_in(made, ana)
        revision = _greet(made, owner, when)
        if number % 9 != 4:
            pinned = now if number in (5, 10) else None
            UserSessionState.objects.create(user=ana, session=made, read_revision=revision, pinned_at=pinned)


def _elsewhere(people: dict[str, User], now: datetime) -> None:
    """Make Kenta a member of several workspaces with unread messages."""
    from chat.models import Membership, UserSessionState, Workspace

    kenta, mei = people["kenta"], people["mei"]
    for number, name in enumerate(WORKSPACES):
        workspace = Workspace.objects.create(name=name)
        Membership.objects.bulk_create([Membership(workspace=workspace, user=user) for user in (kenta, mei)])
        for title in TITLES[number : number + 4]:
            made = _session(mei, workspace, title, now - timedelta(hours=number))
            _let_in(made, kenta)
            revision = _greet(made, mei, now)
            if number != 1:
                UserSessionState.objects.create(user=kenta, session=made, read_revision=revision)


def _looked_after(people: dict[str, User], workspace: Workspace, now: datetime) -> None:
    """Create objects that staff administer: API tokens and a deleted session."""
    from chat.services.people import api_tokens
    from chat.services.sessions.actions import delete

    mei = people["mei"]
    for name, scope in (
        ("Nightly report", "read"),
        ("发布流水线 · a name that goes on, as machines' do", "write"),
    ):
        token, _secret = api_tokens.create(user=mei, name=name, scope=scope, days=90)
    api_tokens.revoke(user=mei, token_id=token.pk)
    gone = _session(people["jonas"], workspace, "Deleted by mistake", now - timedelta(days=1))
    _greet(gone, people["jonas"], now - timedelta(days=1))
    delete(user=people["jonas"], session_id=gone.pk)


def _signing_in(people: dict[str, User]) -> str:
    """Give one user second factors, and another a sign-in link created by staff. Return the link's address."""
    from allauth.mfa.models import Authenticator

    from chat.services.people.accounts import sign_in_link
    from tests.support.second_factors import give_app, give_codes

    kenta, priya, ana = people["kenta"], people["priya"], people["ana"]
    give_app(kenta)
    give_codes(kenta)
    for name in ("仕事用ノートPC", "Security key on the key ring, which is kept in the safe of the office"):
        Authenticator.objects.create(user=kenta, type="webauthn", data={"name": name, "credential": {}})
    return f"/accounts/link/{sign_in_link(user=priya, author=ana)}"


def _pages(ana: User) -> Json:
    """Return pages that belong to no session: the address of an invitation, and the HTML of a server error."""
    from django.template.loader import render_to_string

    from chat.assets import static_files
    from chat.models import Session
    from chat.services.people.sharing import invite

    static_files.prepare()  # so that styles and scripts have the same addresses as on the server
    _, token = invite(session=Session.objects.filter(owner=ana).earliest("created_at"), author=ana, role="editor")
    return {"invitation": f"/join/{token}", "broken": render_to_string("500.html")}


def _let_in(session: Session, *people: User, role: str = "editor") -> None:
    from chat.models import Share

    for user in people:
        Share.objects.create(session=session, user=user, role=role)


def _greet(session: Session, owner: User, when: datetime) -> int:
    """Write two sentences, and return the session's revision."""
    writer = Writer(session, when)
    writer.said(owner, "Hello! Where were we?")
    writer.agent(text="At the third point of the list.")
    writer.done(2)
    writer.close()
    return writer.sequence


def _person(name: str, shown: str, first: User) -> User:
    from chat.models import User

    if name == "ana":
        first.display_name = shown
        first.save()
        return first
    return User.objects.create_user(name, password="a long enough passphrase", display_name=shown)


def _session(owner: User, workspace: Workspace, title: str, when: datetime) -> Session:
    from chat.models import Session, SessionRun
    from chat.services.sessions.lifecycle import create_session

    session = create_session(owner=owner, workspace=workspace, title=title)
    SessionRun.objects.filter(session=session).update(wanted=0)
    session.total_tokens, session.context_used, session.context_window = 28_500, 15_234, 200_000
    session.save()
    Session.objects.filter(pk=session.pk).update(updated_at=when, created_at=when)
    session.refresh_from_db()
    return session


def main() -> None:
    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    call_command("migrate", interactive=False, verbosity=0)
    json.dump(create_showcase(timezone.now()), sys.stdout)


if __name__ == "__main__":
    main()
