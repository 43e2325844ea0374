"""The access matrix of the pages: each route needs a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from pytest_django.fixtures import Settings

from chat.middleware import WITHOUT_SECOND_FACTOR
from chat.models import KnowledgeFile, KnowledgePassage, Schedule
from tests.access.people import (
    ADMIN,
    ANONYMOUS,
    EDITOR,
    EVERYONE,
    GUEST,
    LEFT,
    MESSAGE,
    OUTSIDER,
    OWN_AGENT,
    OWNER,
    SHARED_AGENT,
    SIGNED_IN,
    STAFF,
    STRANGERS,
    VIEWER,
    Answers,
    Expected,
    People,
    Status,
)
from tests.support.agreement import agree

pytestmark = pytest.mark.django_db
TO_SIGN_IN = "to sign-in"


def all_of(status: Status) -> Expected:
    return dict.fromkeys(EVERYONE, status)


ANSWERS = Answers(TO_SIGN_IN)
signed_in, seeing, editing, owning = ANSWERS.signed_in, ANSWERS.seeing, ANSWERS.editing, ANSWERS.owning
choosing, members = ANSWERS.choosing, ANSWERS.members


@dataclass(frozen=True)
class Row:
    """The answers to a request, by actor."""

    method: str
    route: str
    expected: Expected = field(repr=False, hash=False)
    data: dict[str, str] = field(default_factory=dict, hash=False)
    args: tuple[str, ...] = ()


FILE = "k_" + "1" * 24
BAD_RULE = {"part": "rule", "rule": "("}
ROLE = {"part": "role", "user_id": "0", "role": "admin"}
SCHEDULE = "c_" + "1" * 24
NEW_SCHEDULE = {"part": "add", "text": "Report", "kind": "daily", "time": "09:00", "zone": "UTC"}
EDIT_SCHEDULE = {"part": "change", "schedule": SCHEDULE}
MATRIX = [
    Row("GET", "home", signed_in(200)),
    Row("GET", "favicon", all_of(302)),
    Row(
        "GET", "workspace", {**signed_in(200), OUTSIDER: 404, STAFF: 404, LEFT: 404, GUEST: 404}, args=("{workspace}",)
    ),
    Row("GET", "workspace", signed_in(404), args=("999999999999999999999",)),
    Row("GET", "workspace-settings", members(200), args=("{workspace}",)),
    Row("GET", "workspace-settings", signed_in(404), args=("x",)),
    # tests/services/test_members.py covers who manages members.
    Row(
        "POST",
        "workspace-settings",
        {**members(403), ADMIN: 422},
        {"part": "role", "user_id": "0", "role": "admin"},
        args=("{workspace}",),
    ),
    Row(
        "POST",
        "workspace-settings",
        {**members(403), ADMIN: 302},
        {"part": "name", "name": "Ops"},
        args=("{workspace}",),
    ),
    Row(
        "POST",
        "workspace-settings",
        {**members(403), ADMIN: 200},
        {"part": "invite", "uses": "1"},
        args=("{workspace}",),
    ),
    Row(
        "POST",
        "workspace-settings",
        {**members(403), ADMIN: 302},
        {"part": "end-invitation", "invitation": "1"},
        args=("{workspace}",),
    ),
    Row("POST", "workspace-settings", {**members(403), ADMIN: 422}, BAD_RULE, args=("{workspace}",)),
    Row("POST", "workspace-settings", {**members(403), ADMIN: 422}, {"part": "remove-rule"}, args=("{workspace}",)),
    # Members propose, and owners and admins accept.
    Row(
        "POST",
        "workspace-settings",
        members(302),
        {"part": "notes", "act": "add", "text": "Hi"},
        args=("{workspace}",),
    ),
    Row(
        "POST",
        "workspace-settings",
        {**members(403), ADMIN: 422},
        {"part": "notes", "act": "accept", "note_id": "0"},
        args=("{workspace}",),
    ),
    Row("GET", "knowledge", members(200), args=("{workspace}",)),
    Row("GET", "knowledge", members(200), {"q": "plan"}, args=("{workspace}",)),
    Row("GET", "knowledge", signed_in(404), args=("x",)),
    Row("POST", "knowledge", members(422), {"part": "upload"}, args=("{workspace}",)),
    # A file that the editor has added.
    Row(
        "POST",
        "knowledge",
        {**members(403), ADMIN: 302, EDITOR: 302},
        {"part": "rename", "file_id": FILE, "name": "Plan.md"},
        args=("{workspace}",),
    ),
    Row(
        "POST",
        "knowledge-upload",
        {**all_of(422), ANONYMOUS: 401},
        args=("{workspace}",),
    ),
    Row("GET", "knowledge-file", members(200), {"passage": "1"}, args=(FILE,)),
    Row("GET", "knowledge-file", signed_in(404), args=("k_none",)),
    Row("GET", "knowledge-content", members(200), args=(FILE,)),
    # These files for installing Parley contain no user data, and are requested without cookies.
    Row("GET", "manifest", all_of(200)),
    Row("GET", "service-worker", all_of(200)),
    Row("GET", "app-icon", all_of(302), args=("icon-192",)),
    Row("GET", "app-icon", all_of(404), args=("other",)),
    # Each user's own browser.
    Row("GET", "push", signed_in(200)),
    Row("POST", "push", signed_in(422), {"act": "register", "endpoint": "https://10.0.0.1/a"}),
    Row("POST", "push", signed_in(422), {"act": "refresh", "endpoint": "https://10.0.0.1/a"}),
    Row("POST", "push", signed_in(200), {"act": "remove"}),
    Row("POST", "push-test", signed_in(422)),
    Row("POST", "settings", signed_in(302), {"part": "notifications"}),
    Row("POST", "settings", signed_in(422), {"part": "push_remove", "browser": "1"}),
    Row("GET", "sessions", signed_in(200)),
    Row("GET", "sessions", signed_in(200), {"workspace": "{workspace}"}),
    Row("GET", "search", signed_in(200), {"q": "plan"}),
    Row("GET", "sign-in", {**all_of(302), ANONYMOUS: 200}),
    Row("POST", "sign-out", all_of(302)),
    Row("GET", "sign-out", all_of(405)),
    Row("GET", "account_login", {**all_of(302), ANONYMOUS: 200}),
    Row("GET", "second-step", all_of(302)),
    Row("POST", "second-step", all_of(302), {"code": "000000"}),
    Row("GET", "mfa_authenticate", all_of(302)),
    Row("GET", "passkey-sign-in", {**all_of(302), ANONYMOUS: 200}),
    Row("POST", "passkey-sign-in", all_of(302), {"credential": "nonsense"}),
    Row("GET", "sign-in-link", all_of(410), args=("no-such-token",)),
    Row("POST", "sign-in-link", all_of(410), args=("no-such-token",)),
    Row("GET", "confirm", signed_in(200)),
    Row("POST", "confirm", signed_in(422), {"password": "wrong"}),
    Row("POST", "dismiss-notices", signed_in(302)),
    Row("GET", "workspace-agents", members(200), args=("{workspace}",)),
    Row("POST", "workspace-agents", members(302), {"part": "copy", "agent": SHARED_AGENT}, args=("{workspace}",)),
    # An agent that is not shared belongs to its maker only.
    Row(
        "POST",
        "workspace-agents",
        {**members(422), OWNER: 302},
        {"part": "copy", "agent": OWN_AGENT},
        args=("{workspace}",),
    ),
    Row("GET", "new-agent", members(200), args=("{workspace}",)),
    Row("POST", "new-agent", members(422), {"title": ""}, args=("{workspace}",)),
    Row("GET", "workspace-agent", {**members(403), OWNER: 200, ADMIN: 200}, args=("{workspace}", SHARED_AGENT)),
    Row("POST", "workspace-agent", {**members(403), OWNER: 422, ADMIN: 422}, args=("{workspace}", SHARED_AGENT)),
    Row("GET", "workspace-agent", {**signed_in(404), OWNER: 200}, args=("{workspace}", OWN_AGENT)),
    Row(
        "POST",
        "workspace-agents",
        {**members(403), OWNER: 302, ADMIN: 302},
        {"part": "archive", "agent": SHARED_AGENT},
        args=("{workspace}",),
    ),
    Row("GET", "mcp-servers", ANSWERS.managing(200), args=("{workspace}",)),
    Row("POST", "mcp-servers", ANSWERS.managing(302), {"part": "nothing"}, args=("{workspace}",)),
    Row("GET", "mcp-servers", signed_in(404), args=("x",)),
    Row("GET", "webhooks", ANSWERS.managing(200), args=("{workspace}",)),
    Row("POST", "webhooks", ANSWERS.managing(302), {"part": "nothing"}, args=("{workspace}",)),
    Row("POST", "webhooks", ANSWERS.managing(422), {"part": "add", "url": "https://10.0.0.1/"}, args=("{workspace}",)),
    Row("POST", "webhooks", ANSWERS.managing(422), {"part": "again", "delivery": "d_1"}, args=("{workspace}",)),
    Row("GET", "webhooks", signed_in(404), args=("x",)),
    # Without a sign-in that began in this browser, it redirects to the home page with a message.
    Row("GET", "mcp-callback", signed_in(302)),
    Row("GET", "two-step", signed_in(200)),
    # Each user's own account, after a recent authentication.
    Row("POST", "two-step", signed_in(302), {"part": "remove", "id": "1"}),
    Row("GET", "two-step-app", signed_in(302)),
    Row("POST", "two-step-app", signed_in(302), {"code": "000000"}),
    Row("GET", "two-step-passkey", signed_in(302)),
    Row("POST", "two-step-passkey", signed_in(302), {"name": "Mine", "credential": "nonsense"}),
    Row("GET", "join", all_of(410), args=("no-such-token",)),
    Row("POST", "join", all_of(410), args=("no-such-token",)),
    Row("GET", "image", signed_in(404), {"address": "https://example.org/a.png", "signature": "made-up"}),
    # These pages are empty; the surrounding page fills them.
    Row("GET", "diagram-frame", all_of(200)),
    Row("GET", "preview-frame", all_of(200)),
    Row("POST", "new-session", {**signed_in(302), GUEST: 422}),
    Row(
        "POST",
        "new-session",
        {**signed_in(302), OUTSIDER: 422, STAFF: 422, LEFT: 422, GUEST: 422},
        {"workspace": "{workspace}"},
    ),
    Row("GET", "new-session", {**all_of(405)}),
    Row("POST", "new-session", {**signed_in(422), OWNER: 302}, {"session": "{session}", "text": "Hi"}),
    Row("POST", "new-session-attachments", {**all_of(422), ANONYMOUS: 401}),
    Row("GET", "new-session-models", {**signed_in(200), GUEST: 403}),
    Row("GET", "session", seeing(200)),
    Row("GET", "session-messages", seeing(200), {"before": "1"}),
    Row("GET", "session-messages", seeing(200), {"around": MESSAGE}),
    Row("GET", "session-source", seeing(200), {"id": MESSAGE}),
    Row("GET", "session-details", seeing(200), {"id": MESSAGE}),
    Row("GET", "session-history", seeing(200), {"id": MESSAGE}),
    Row("GET", "session-history", seeing(200), {"id": "system_prompt"}),
    Row("GET", "session-version", seeing(200), {"id": MESSAGE, "at": "0"}),
    Row("GET", "session-removed", editing(200)),
    Row("GET", "session-suggestions", seeing(200), {"id": MESSAGE}),
    Row("POST", "session-compare", editing(200), {"id": MESSAGE, "mine": "Hi"}),
    Row("GET", "session-find", seeing(200), {"q": "plan"}),
    Row("POST", "session-attachments", {**editing(422), ANONYMOUS: 401}),
    Row("GET", "session-unsent-attachments", editing(200)),
    Row("GET", "attachment", signed_in(404), args=("a_unknown",)),
    Row("GET", "attachment-thumb", signed_in(404), args=("a_unknown",)),
    Row("POST", "attachment-remove", {**all_of(404), ANONYMOUS: 401}, args=("a_unknown",)),
    Row("GET", "session-people", seeing(200)),
    Row("GET", "settings", signed_in(200)),
    Row("POST", "settings", signed_in(302), {"part": "elsewhere"}),
    Row("POST", "settings", signed_in(200), {"part": "token", "token_name": "Mine", "scope": "read", "days": "30"}),
    Row("POST", "settings", signed_in(422), {"part": "revoke", "token": "1000000"}),
    Row("POST", "preferences", signed_in(204), {"theme": "dark"}),
    Row("POST", "settings", signed_in(302), {"part": "memory", "act": "add", "text": "Hi"}),
    Row("POST", "settings", signed_in(422), {"part": "memory", "act": "remove", "note_id": "0"}),
    Row("POST", "settings", signed_in(422), {"part": "guests", "workspace_id": "{workspace}", "user_id": "1"}),
    Row("POST", "personal-export", signed_in(200)),
    Row("GET", "picture", signed_in(404), args=("1",)),
    Row("GET", "session-models", choosing(200)),
    Row("GET", "session-panel", seeing(200)),
    Row("GET", "session-context", seeing(200)),
    Row("GET", "session-files", seeing(200)),
    Row("GET", "session-files", seeing(200), {"path": "../secret"}),
    Row("GET", "session-file", {**seeing(404), ANONYMOUS: TO_SIGN_IN}, {"path": "none"}),
    Row("GET", "session-files-archive", seeing(200)),
    Row("GET", "session-context", seeing(200), {"past": MESSAGE}),
    Row("GET", "session-export", seeing(200)),
    Row("GET", "session-export", seeing(200), {"format": "json"}),
    Row("GET", "session-export", seeing(200), {"format": "markdown"}),
    Row("GET", "import", signed_in(200)),
    Row("POST", "import-file", {**all_of(422), ANONYMOUS: 401}),
    Row(
        "POST",
        "import-file",
        {**all_of(422), OUTSIDER: 404, STAFF: 404, LEFT: 404, GUEST: 404, ANONYMOUS: 401},
        {"workspace": "{workspace}"},
    ),
    Row("GET", "session-prompts", editing(200)),
    Row("POST", "session-prompt", {**editing(422), ANONYMOUS: 401}, {"name": "none__x"}),
    Row("POST", "session-prompt", {**editing(422), ANONYMOUS: 401}, {"name": "none__x", "arguments": "[" * 100_000}),
    Row("GET", "session-schedules", seeing(200)),
    Row("POST", "session-schedules", choosing(200), NEW_SCHEDULE),
    Row("POST", "session-schedules", choosing(422), {**NEW_SCHEDULE, "text": ""}),
    # A schedule of the editor. The session's owner may turn it off and remove it.
    Row("POST", "session-schedules", {**seeing(403), EDITOR: 200}, {"part": "run", "schedule": SCHEDULE}),
    Row("POST", "session-schedules", {**seeing(403), EDITOR: 200}, {**NEW_SCHEDULE, **EDIT_SCHEDULE}),
    Row("POST", "session-schedules", {**owning(200), EDITOR: 200}, {"part": "switch", "schedule": SCHEDULE}),
    Row("POST", "session-schedules", {**owning(200), EDITOR: 200}, {"part": "remove", "schedule": SCHEDULE}),
    Row("POST", "session-schedules", {**owning(200), EDITOR: 200}, {"part": "restore", "schedule": SCHEDULE}),
    Row("POST", "session-schedules", seeing(422), {"part": "explode"}),
    Row("GET", "session-share", seeing(200)),
    Row("POST", "session-share-end", owning(200), {"invitation": "1"}),
    Row("POST", "session-share-member", owning(200), {"user": "stranger", "role": "viewer"}),
    Row("POST", "session-share-member", owning(422), {"user": "stranger", "role": "owner"}),
    Row("POST", "session-share-member", owning(422), {"user": "outsider", "role": "viewer"}),
    Row("POST", "session-share-remove", owning(200), {"user": "viewer"}),
    Row("POST", "session-share-invite", owning(200), {"role": "viewer"}),
    Row("POST", "session-share-revoke", owning(200)),
    Row("POST", "session-share-workspace", owning(200), {"role": ""}),
    Row("POST", "session-share-workspace", owning(422), {"role": "owner"}),
    Row("POST", "session-title", editing(204), {"title": "Plan"}),
    Row("POST", "apply-action", signed_in(400), {"action": "explode", "session": "{session}"}),
    Row("POST", "apply-action", seeing(200), {"action": "pin", "session": "{session}"}),
    Row("POST", "apply-action", seeing(200), {"action": "unpin", "session": "{session}"}),
    Row("POST", "apply-action", owning(200), {"action": "archive", "session": "{session}"}),
    Row("POST", "apply-action", owning(200), {"action": "restore", "session": "{session}"}),
    Row("POST", "apply-action", owning(200), {"action": "delete", "session": "{session}", "sure": "yes"}),
    Row("POST", "apply-action", {**signed_in(404), OWNER: 200}, {"action": "undelete", "session": "{session}"}),
    Row("POST", "session-undelete", signed_in(404)),
    # Leaving ends the access of the actor, so this row is last.
    Row("POST", "apply-action", {**seeing(200), OWNER: 422}, {"action": "leave", "session": "{session}"}),
]


@pytest.fixture(autouse=True)
def _added_file(people: People, own_files: None) -> None:
    file = KnowledgeFile(pk=FILE, workspace_id=people.session.workspace_id, name="Plan.md", kind="text", size=2)
    file.media_type, file.characters, file.passage_count, file.added_by = "text/plain", 2, 1, people[EDITOR]
    file.file.save("Plan.md", ContentFile(b"Hi"))
    KnowledgePassage.objects.create(file=file, number=1, text="Hi", words="hi")


@pytest.fixture(autouse=True)
def _added_schedule(people: People) -> None:
    values = {"text": "Report", "cron": "0 9 * * *", "zone": "UTC"}
    Schedule.objects.create(pk=SCHEDULE, session=people.session, owner=people[EDITOR], **values)


# The routes of a session, with ids that strangers cannot use.
OF_SESSIONS = [row for row in MATRIX if row.route == "session" or row.route.startswith("session-")]
NAMING_SESSIONS = [
    *OF_SESSIONS,
    *(row for row in MATRIX if row.route == "apply-action" and row.data["action"] != "explode"),
]


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Return the names of all routes, and the addresses of the admin's and the API's."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, address)
        else:
            yield address if address.startswith(("admin/", "api/")) else str(pattern.name)


def asked(people: People, row: Row, session_id: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the address and the values of a row's request."""
    ids = {"session": session_id or people.session.pk, "workspace": f"{people.session.workspace_id}"}
    args = [arg.format(**ids) for arg in row.args] or ([ids["session"]] if row in OF_SESSIONS else [])
    return reverse(row.route, args=args), {name: value.format(**ids) for name, value in row.data.items()}


def ask(people: People, actor: str, row: Row, session_id: str | None = None) -> tuple[int | str, bytes]:
    client = Client()
    if (user := people.users[actor]) is not None:
        client.force_login(user)
    address, data = asked(people, row, session_id)
    response = client.get(address, data) if row.method == "GET" else client.post(address, data)
    if response.status_code == 302 and response["Location"].startswith(reverse("sign-in") + "?next="):
        return TO_SIGN_IN, b""
    return response.status_code, b"".join(response) if response.streaming else response.content


def test_every_route_has_a_row() -> None:
    """LIVE-06: a new page needs a row, so that its access is decided."""
    agree(
        [row.route for row in MATRIX],
        [name for name in routes(get_resolver().url_patterns) if not name.startswith(("admin/", "api/"))],
        missing="Add a Row for the route {} to MATRIX in this file: it says what each user gets.",
        extra="Remove the rows of {} from MATRIX in this file: there is no such route.",
    )


@pytest.mark.parametrize("actor", EVERYONE)
def test_each_role_gets_the_answers_of_the_access_matrix(people: People, actor: str) -> None:
    """Each role gets exactly the answers of the access matrix (LIVE-06)."""
    assert {row: ask(people, actor, row)[0] for row in MATRIX} == {row: row.expected[actor] for row in MATRIX}


@pytest.mark.parametrize("actor", [*STRANGERS, ANONYMOUS])
def test_strangers_do_not_learn_whether_a_session_exists(people: People, actor: str) -> None:
    """LIVE-06: the answers for sessions of others and for unknown ones are the same, byte for byte."""
    unknown = "s_" + "0" * 24
    known = [ask(people, actor, row) for row in NAMING_SESSIONS]
    assert known == [ask(people, actor, row, unknown) for row in NAMING_SESSIONS]


def test_who_owes_a_second_factor_gets_no_page(people: People, settings: Settings) -> None:
    """LIVE-06: a user without the required second factor gets no page, including new ones, until it is set up."""
    settings.REQUIRE_MFA = "all"
    client = Client()
    client.force_login(people[OWNER])
    open_ones = {*WITHOUT_SECOND_FACTOR, "account_login", "mfa_authenticate"}
    for row in MATRIX:
        if row.route not in open_ones:
            address, data = asked(people, row)
            response = client.get(address, data) if row.method == "GET" else client.post(address, data)
            assert (response.status_code, response.headers.get("Location")) == (302, reverse("two-step")), row


@pytest.mark.both_databases
def test_odd_ids_are_not_found(people: People) -> None:
    """MSG-12: malformed ids are not found."""
    for session_id in ("%00", "s_" + "0" * 300, "😀"):
        for row in OF_SESSIONS:
            assert ask(people, OWNER, row, session_id)[0] == 404


@pytest.mark.both_databases
def test_lists_show_one_s_own_sessions_and_shared_ones(people: People) -> None:
    """LIVE-06: users, including staff, do not see the titles of sessions to which they have no access."""
    for route in ("home", "sessions"):
        shown = {actor: b"Plan" in ask(people, actor, Row("GET", route, {}))[1] for actor in SIGNED_IN}
        assert shown == {**dict.fromkeys(SIGNED_IN, False), OWNER: True, EDITOR: True, VIEWER: True, GUEST: True}


def test_posts_without_a_token_are_refused(people: People) -> None:
    """LIVE-06: a POST without a CSRF token is refused, so that other sites cannot act for a user."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(people[OWNER])
    for row in MATRIX:
        if row.method == "POST":
            assert client.post(*asked(people, row)).status_code == 403
