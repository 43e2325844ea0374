"""Pages of a user in several workspaces: the session list, new sessions, and the search."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.models import Membership, Session, User, Workspace
from chat.services.sessions.lifecycle import create_session
from tests.support.rows import say
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
SCRIPT = {"Accept": "application/json"}


@pytest.fixture
def other(ana: User, bo: User) -> Workspace:
    made = Workspace.objects.create(name="<b>Ops</b>")
    Membership.objects.bulk_create([Membership(workspace=made, user=user) for user in (ana, bo)])
    return made


@pytest.fixture
def elsewhere(ana: User, other: Workspace) -> Session:
    return create_session(owner=ana, workspace=other, title="Elsewhere")


def page(client: Client, address: str, **asked: Any) -> str:
    answer = client.get(address, asked)
    assert answer.status_code == 200
    return answer.content.decode()


def shown(html: str) -> tuple[bool, bool]:
    """Return whether the list has the session of the first workspace, and that of the second."""
    titles = re.findall(r'class="session-title" dir="auto">([^<]*)<', html)
    return "Plan" in titles, "Elsewhere" in titles


def choices(html: str) -> list[tuple[str, bool, bool]]:
    """Return the switcher's entries: name, whether it is the current one, whether it has unread messages."""
    found = re.search(r'data-workspaces="([^"]*)"', html)
    assert found is not None
    return [(each["name"], each["here"], each["unread"]) for each in json.loads(unescape(found[1]))]


def home_of(workspace: Workspace) -> str:
    return reverse("workspace", args=[workspace.pk])


def test_one_workspace_is_not_spoken_of(signed_in: SignIn, ana: User, session: Session) -> None:
    """With one workspace, the switcher is hidden and no link leads to a workspace."""
    client = signed_in(ana)
    for address in (reverse("home"), reverse("session", args=[session.pk])):
        html = page(client, address)
        assert choices(html) == []
        assert re.search(r'id="workspace-switch"[^>]* hidden>', html)
        assert 'href="/workspaces/' not in html


def test_each_page_shows_its_workspace(
    signed_in: SignIn, ana: User, session: Session, other: Workspace, elsewhere: Session
) -> None:
    """Opening a session or the home page of another workspace switches to it; workspace names are escaped."""
    client = signed_in(ana)
    first, second = reverse("session", args=[session.pk]), reverse("session", args=[elsewhere.pk])
    went = [reverse("home"), second, reverse("home"), first, reverse("home"), home_of(other), reverse("home")]
    lists = [page(client, address) for address in went]
    assert [shown(html) for html in lists] == [(here, not here) for here in (1, 0, 0, 1, 1, 0, 0)]
    assert choices(lists[-1]) == [("Team", False, False), ("<b>Ops</b>", True, False)]
    assert "&lt;b&gt;Ops&lt;/b&gt;</span>" in lists[-1]
    assert f'id="new-session" href="{home_of(other)}"' in lists[-1]
    assert ["home-session" in html and "Elsewhere" in html.split("home-recent")[-1] for html in lists[-1:]] == [True]


def test_a_list_keeps_to_its_own_workspace(
    signed_in: SignIn, ana: User, session: Session, other: Workspace, elsewhere: Session
) -> None:
    """Each tab keeps its workspace; an id that is invalid, or not one of the user's, shows the current workspace."""
    client = signed_in(ana)
    page(client, home_of(other))
    asked = [session.workspace_id, other.pk, 10**6, 10**40, "x", "\0", "-1", ""]
    found = [shown(page(client, reverse("sessions"), workspace=each)) for each in asked]
    assert found == [(True, False)] + [(False, True)] * 7


def test_news_of_another_workspace_come_with_the_list(
    signed_in: SignIn, ana: User, session: Session, other: Workspace, elsewhere: Session
) -> None:
    """The list marks other workspaces with unread messages."""
    client = signed_in(ana)
    say(elsewhere, None, "Done")
    html = page(client, reverse("sessions"), workspace=session.workspace_id)
    assert choices(html) == [("Team", True, False), ("<b>Ops</b>", False, True)]
    assert re.search('class="unread" +title="Unread in another', page(client, reverse("home")))


def test_a_session_begins_where_its_page_is(
    signed_in: SignIn, ana: User, session: Session, workspace: Workspace, other: Workspace
) -> None:
    """The page's workspace is used, whatever other tabs show; a user who is no longer a member keeps their text."""
    client = signed_in(ana)
    assert f'name="workspace" value="{workspace.pk}"' in page(client, reverse("home"))
    page(client, home_of(other))
    begin = {"text": "Half a thought", "workspace": workspace.pk}
    client.post(reverse("new-session"), begin)
    assert Session.objects.latest("created_at").workspace == workspace
    ana.memberships.filter(workspace=workspace).delete()
    for given in (workspace.pk, "x", 10**30):
        refused = client.post(reverse("new-session"), {**begin, "workspace": given}, headers=SCRIPT)
        assert (refused.status_code, "no longer a member" in refused.json()["message"]) == (422, True)
    again = client.post(reverse("new-session"), begin)
    assert (again.status_code, "Half a thought</textarea>" in again.content.decode()) == (422, True)
    assert Session.objects.count() == 2


def test_imports_go_to_the_page_s_workspace(signed_in: SignIn, ana: User, session: Session, other: Workspace) -> None:
    client = signed_in(ana)
    exported = b"".join(client.get(reverse("session-export", args=[session.pk]), {"format": "json"}))
    answer = client.post(
        reverse("import-file"), {"file": SimpleUploadedFile("a.json", exported), "workspace": other.pk}, headers=SCRIPT
    )
    assert answer.status_code == 201
    assert sorted(Session.objects.values_list("workspace__name", flat=True)) == ["<b>Ops</b>", "Team"]


def test_what_is_found_says_where_it_is(
    signed_in: SignIn, ana: User, session: Session, other: Workspace, elsewhere: Session
) -> None:
    """The search covers all workspaces, and names the workspace of results from another one."""
    for each in (session, elsewhere):
        say(each, ana, "Zanzibar")
    client = signed_in(ana)
    for asked in ({"q": "zanzibar"}, {}, {"q": "l"}):
        html = page(client, reverse("search"), workspace=session.workspace_id, **asked)
        options = html.split('role="option"')[1:]
        assert sorted(("Elsewhere" in _plain(each), "&lt;b&gt;Ops" in each, "Team" in each) for each in options) == [
            (False, False, False),
            (True, True, False),
        ]
    assert "palette-place" not in page(client, reverse("search"), q="zanzibar")


def _plain(html: str) -> str:
    return html.replace("<mark>", "").replace("</mark>", "")


def test_query_count_does_not_grow_with_the_workspaces(
    signed_in: SignIn, ana: User, bo: User, session: Session, other: Workspace
) -> None:
    client = signed_in(ana)
    addresses = [
        reverse("home"),
        home_of(other),
        reverse("sessions"),
        reverse("search"),
        reverse("session", args=[session.pk]),
    ]

    def counts() -> list[int]:
        found = []
        for address in addresses:
            with CaptureQueriesContext(connection) as queries:
                page(client, address)
            found.append(len(queries))
        return found

    before = counts()
    for number in range(10):
        made = Workspace.objects.create(name=f"{number}")
        Membership.objects.bulk_create([Membership(workspace=made, user=user) for user in (ana, bo)])
        let_in(begun := create_session(owner=bo, workspace=made, title=f"{number}"), ana, "viewer")
        say(begun, bo, "Hello")
    assert counts() == before


def test_members_are_shown_in_whole_sentences(signed_in: SignIn, ana: User, session: Session) -> None:
    settings = page(signed_in(ana), reverse("workspace-settings", args=[session.workspace_id]))
    assert re.search(r"Your role: \w+\. Owners and admins", settings)
    assert re.search(r'</bdi>\s+<span class="help">\(you\)', settings)


def test_settings_of_a_workspace_say_what_they_are(
    signed_in: SignIn, ana: User, bo: User, session: Session, workspace: Workspace
) -> None:
    """UI-20: the settings have a heading, a way back, an explanation of invitations, and whom to ask for a role."""
    Membership.objects.get_or_create(workspace=workspace, user=bo)
    Membership.objects.filter(workspace=workspace, user=ana).update(role=Membership.Role.OWNER)
    client = signed_in(ana)
    settings = reverse("workspace-settings", args=[workspace.pk])
    html = page(client, settings)
    assert re.search(rf"<h1>\s*Workspace settings\s*<small><bdi>{workspace.name}</bdi></small>", html)
    assert "Invite people" in html
    assert "create a link under Share in that session" in html
    assert "Use “Change…” to make a guest a member." in html
    below = page(client, reverse("webhooks", args=[workspace.pk]))
    assert re.search(rf'<a class="button small" href="{settings}">.*?Workspace settings\s*</a>', below, re.DOTALL)
    client = signed_in(bo)
    assert "Owners and admins invite members, and make guests members." in page(client, settings)
    refused = client.get(reverse("webhooks", args=[workspace.pk]))
    assert refused.status_code == 403
    assert "Your role in this workspace doesn’t allow that. Ask an owner or admin." in refused.content.decode()


def test_removal_says_which_links_are_revoked(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    """UI-20: the form and the toast say that the invitation links are revoked, so that no one wonders why they fail."""
    workspace = session.workspace
    Membership.objects.get_or_create(workspace=workspace, user=bo)
    Membership.objects.filter(workspace=workspace, user=ana).update(role=Membership.Role.OWNER)
    client, settings = signed_in(ana), reverse("workspace-settings", args=[workspace.pk])
    remove = {"part": "remove", "user_id": bo.pk}
    warning = "Their messages stay. Active invitation links will be revoked, too."
    assert warning not in page(client, settings)
    client.post(settings, {"part": "invite", "uses": "5"})
    assert warning in page(client, settings)
    html = client.post(settings, remove, follow=True).content.decode()
    assert "Bo was removed. 1 invitation link was revoked." in html
    Membership.objects.create(workspace=workspace, user=bo)
    html = client.post(settings, remove, follow=True).content.decode()
    assert "Bo was removed." in html
    assert "revoked." not in html


def test_newer_name_is_not_overwritten_unseen(client: Client, ana: User) -> None:
    """UI-20: a form based on an older name keeps the entry and shows the newer name. Saved again, it replaces it."""
    workspace = create_session(owner=ana).workspace
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.OWNER)
    Workspace.objects.update(name="Newer")
    client.force_login(ana)
    address = reverse("workspace-settings", args=[workspace.pk])
    form = {"part": "name", "name": "Mine", "version": "Old"}
    response = client.post(address, form)
    page = response.content.decode()
    workspace.refresh_from_db()
    assert (response.status_code, workspace.name) == (422, "Newer")
    assert "Save again to replace “Newer”." in page
    assert 'value="Mine"' in page
    client.post(address, {**form, "version": "Newer"})
    workspace.refresh_from_db()
    assert workspace.name == "Mine"
